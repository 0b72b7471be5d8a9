"""PF112 global-unfenced: global memory written generically, then read by a bulk operation."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF112",
    name="global-unfenced",
    severity=Severity.ERROR,
    conditions="`warning` where only the base (parameter or symbol) is the same.",
    summary=(
        "Global memory written by ordinary stores is read by a bulk operation of the same kernel without a "
        "proxy fence between."
    ),
    why="""\
Bulk and tensor loads read global memory through the async proxy. Inside one kernel, a store and a later bulk load
of the same address are in different proxies, so a barrier, a flag or a grid-wide synchronisation does not order
them. Across an ordinary kernel boundary nothing is needed.
""",
    bad="""\
st.global.b32 [%rd1], %r0;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    good="""\
st.global.b32 [%rd1], %r0;
fence.proxy.async.global;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    how_to_fix="""\
`fence.proxy.async.global` in the writers after the last store and before the hand-off, or in the thread that issues
the bulk load after it has acquired.
""",
    when_to_ignore="""\
When the two pointers have a base in common but never address the same bytes. A global write beside an opaque tensor
map is reported under `--strict` only; silence of this rule is not a proof.
""",
    sources=(
        "PTX ISA 9.1, 8.6 Proxies; 9.7.13.4 fence.proxy.async.global",
        "deepseek-ai/DeepEP issue 621, PR 632; Dao-AILab/flash-attention FA3 append-KV",
        "NVIDIA/cccl PR 3197 (fails on hardware)",
    ),
)
