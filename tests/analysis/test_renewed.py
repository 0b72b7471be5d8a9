"""Scratch data in another role's tile: the tile's own writer fills it again before the next read (overwrite.py).

Warp 0 fills a tile that thread 64 copies to tensor memory, round by round. Warp 1 waits for each copy, and after the
last one leaves scratch data in the tile, then arrives once more on the barrier that the copying thread waits for.
Nobody waits for that last arrival, but only phases and trip counts say so.
"""

from __future__ import annotations

import pytest

import ptxfence
from ptxfence.analysis.report import Confidence, Finding, Severity, Verdict
from tests.litmus.table import kernel

BODY = """
    INITS 1 32 32 1
    shr.u32 r1, buf, 4;
    mov.b64 desc, {r1, 16392};
    mov.u32 r2, 0;
    setp.eq.u32 q, tid, 64;
    and.b32 r3, tid, 31;
    shl.b32 r3, r3, 4;
    add.u32 r3, r3, buf;
    mov.u32 i, 0;
    @w1 bra SCRATCH;
    @w2 bra COPY;
    FILL:
    add.u32 j, i, 1;
    and.b32 j, j, 1;
    FREE: mbarrier.try_wait.parity.shared::cta.b64 done, [m3], j;
    @!done bra FREE;
    st.shared.v4.b32 [r3], {i, i, i, i};
    FENCE
    ARRIVE
    add.u32 i, i, 1;
    setp.lt.u32 p, i, n;
    @p bra FILL;
    bra DONE;
    SCRATCH:
    and.b32 j, i, 1;
    COPIED: mbarrier.try_wait.parity.shared::cta.b64 done, [m3], j;
    @!done bra COPIED;
    add.u32 i, i, 1;
    setp.ge.u32 p, i, n;
    @p bra LAST;
    ARRIVE2
    bra SCRATCH;
    LAST:
    st.shared.v4.b32 [r3], {tid, tid, tid, tid};
    ARRIVE2
    bra DONE;
    COPY:
    @!q bra DONE;
    ROUND:
    add.u32 j, i, 1;
    and.b32 j, j, 1;
    READ: mbarrier.try_wait.parity.shared::cta.b64 done, [m2], j;
    @!done bra READ;
    and.b32 j, i, 1;
    FULL: mbarrier.try_wait.parity.shared::cta.b64 done, [m1], j;
    @!done bra FULL;
    tcgen05.cp.cta_group::1.32x128b.warpx4 [r2], desc;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m3];
    add.u32 i, i, 1;
    setp.lt.u32 p, i, n;
    @p bra ROUND;
    DONE:"""


def finding_of(body: str) -> Finding:
    row = kernel("renewed", "phases", "", body, threads=96, target="sm_100a")
    report = ptxfence.check(row.text)
    assert report.verdict is Verdict.HAZARD
    (found,) = (f for f in report.findings if f.rule == "PF101")
    return found


def test_a_doubt_is_a_warning() -> None:
    found = finding_of(BODY)
    assert (found.severity, found.confidence) == (Severity.WARNING, Confidence.POSSIBLE)
    assert "{tid, tid, tid, tid}" in found.first.text
    assert "a matter of phases" in found.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("COPIED: mbarrier.try_wait.parity.shared::cta.b64 done, [m3], j;\n    @!done bra COPIED;\n", ""),
        ("FULL: mbarrier.try_wait.parity.shared::cta.b64 done, [m1], j;\n    @!done bra FULL;\n", ""),
        ("{i, i, i, i};\n    FENCE\n", "{i, i, i, i};\n"),
    ],
    ids=["scratch without a wait", "copy without a wait", "tile without a fence"],
)
def test_without_a_doubt_it_is_an_error(old: str, new: str) -> None:
    assert old in BODY
    row = kernel("renewed", "phases", "", BODY.replace(old, new), threads=96, target="sm_100a")
    found = [f for f in ptxfence.check(row.text).findings if f.rule == "PF101"]
    assert {f.severity for f in found} == {Severity.ERROR}
