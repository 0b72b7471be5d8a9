"""PF103 missing-fence-war: generic read, then asynchronous write."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule

RULE = Rule(
    id="PF103",
    name="missing-fence-war",
    severity=Severity.ERROR,
    conditions=(
        "`warning` where every loaded value reaches a store, an atomic, a reduction or the guard of one "
        "before the hand-off on every path; `note`, and no `hazard` verdict, for the load of the TMEM address "
        "from the slot that `tcgen05.alloc` wrote, with a CTA or cluster barrier between."
    ),
    summary=(
        "Bytes read by ordinary loads are overwritten by an asynchronous operation without a proxy fence "
        "between."
    ),
    why="""\
A barrier and an mbarrier arrive do not wait for loads that are still outstanding: the hardware lets them pass, and
an asynchronous write that starts after the hand-off may overtake the load, which then returns the new data. On an
H200 9 to 26 % of the words were wrong across a full `bar.sync`, 6 to 14 % across an mbarrier, none with a proxy
fence in the readers. Using the value in arithmetic, `mma.sync` or a shuffle before the barrier does not help,
because ptxas moves such uses below it; only a value that reached memory before the hand-off is known to have
arrived.
""",
    bad="""\
ld.shared.b32 %r4, [%r3];
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
st.global.b32 [%rd1], %r4;
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    good="""\
ld.shared.b32 %r4, [%r3];
fence.proxy.async.shared::cta;
bar.sync 0;
@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [full], 512;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 512, [full];
st.global.b32 [%rd1], %r4;
wait:
mbarrier.try_wait.parity.shared.b64 %p1, [full], 0;
@!%p1 bra wait;
""",
    how_to_fix="""\
Fence in every reading thread after its last load and before the arrive or barrier that frees the buffer:
`fence.proxy.async.shared::cta`. PTX 9.4 adds the cheaper release form restricted to `::read`.
""",
    when_to_ignore="""\
When the loaded values are provably consumed before the buffer is handed over by means that the analysis cannot see.
Warnings of this rule (pinned values) were never caught failing and may be silenced where every cycle counts.
""",
    sources=(
        "PTX ISA 9.1, 9.7.13.17: the release and acquire around clusterlaunchcontrol.try_cancel; 9.4: ::read",
        "H200: 9 to 26 % wrong words across bar.sync; pinned loads 0 of 396 configurations (docs/hardware.md)",
        "Seen in: deepseek-ai/DeepEP issue 621 and PR 642 (GB200); NVIDIA/TransformerEngine PR 2695",
        "Seen in: Dao-AILab/quack 0ab127b",
        "triton-lang/triton PR 7262 (proxy fence pass) and PR 9464",
    ),
)
