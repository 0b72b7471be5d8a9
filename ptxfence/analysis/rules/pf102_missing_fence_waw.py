"""PF102 missing-fence-waw: generic write, then asynchronous write."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF102",
    name="missing-fence-waw",
    severity=Severity.ERROR,
    conditions=(
        "`warning` where the bytes may overlap but need not; at most `note` for the slot that `tcgen05.alloc` "
        "wrote."
    ),
    summary=(
        "Bytes written by ordinary stores are overwritten by an asynchronous operation without a proxy fence "
        "between."
    ),
    why="""\
The store and the asynchronous write travel through different proxies, and nothing but a proxy fence orders them.
The older store can arrive last and then stands where the loaded data should be. Typical shapes are a tile that is
cleared and then filled by a bulk load, and a scratch or staging buffer of one iteration that the load of the next
iteration reuses.
""",
    bad="""\
st.shared.b32 [%r3], 0;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    good="""\
st.shared.b32 [%r3], 0;
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    how_to_fix="""\
Fence in every writing thread after its last store, before the synchronisation that lets the issuing thread start
the load: `fence.proxy.async.shared::cta`. Where the clearing is not needed because the load fills the whole tile,
delete it.
""",
    when_to_ignore="""\
When the bytes that both write are never read, or when both write the same value.
""",
    sources=(
        "PTX ISA 9.1, 8.6 Proxies; 9.7.9.25.2 Async proxy",
        "H200: fails across a full bar.sync (docs/hardware.md)",
        "triton-lang/triton, ProxyFenceInsertion: store, then TMA load",
    ),
)
