"""The second opinion: each sentence of its definition of cover as a kernel, and agreement with the analysis."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Cause, Report
from ptxfence.grammar import parse
from ptxfence.rewrite import assemble
from ptxfence.rewrite.recheck import recheck
from ptxfence.rewrite.roots import roots

ROOT = Path(__file__).parent.parent.parent
MISSING = frozenset({"PF101", "PF102", "PF103", "PF104", "PF111"})

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
.reqntid 128
{
	.reg .pred %p<9>;
	.reg .b32 %r<20>;
	.reg .b64 %rd<9>;
	.shared .align 128 .b8 tile[2048];
	.shared .align 8 .b8 full[8];
	.shared .align 8 .b8 empty[8];
	ld.param.u64 %rd1, [out];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	shl.b32 %r3, %r2, 4;
	mov.u32 %r4, tile;
	add.s32 %r5, %r4, %r3;
	mov.u32 %r6, full;
	mov.u32 %r7, empty;
	setp.ne.s32 %p1, %r2, 0;
	setp.gt.s32 %p2, %r1, 7;
	setp.lt.u32 %p3, %r2, 32;
	setp.lt.u32 %p4, %r2, 64;
	setp.ge.u32 %p5, %r2, 64;
"""
STORE = "st.shared.v4.b32 [%r5], {%r1, %r1, %r1, %r1};"
LOAD = "ld.shared.b32 %r8, [%r5];"
FENCE = "fence.proxy.async.shared::cta;"
BAR = "bar.sync 0;"
ISSUE = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r4], 2048; cp.async.bulk.commit_group;"
BULK_LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 2048, [%r6];"
BY_ONE = f"@%p1 bra $SKIP;\n{ISSUE}\n$SKIP:"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [%r6];"
WAIT = "$W: mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r6], 0;\n@!%p6 bra $W;"
INIT = f"@%p1 bra $I;\nmbarrier.init.shared::cta.b64 [%r6], 64;\n$I:\n{BAR}"


def roles(first: str, second: str) -> str:
    """Warps 0 and 1 do one thing, warps 2 and 3 the other."""
    return f"{INIT}\n@%p5 bra $SECOND;\n{first}\nbra $END;\n$SECOND:\n{second}\n$END:"


def kernel(body: str) -> str:
    return f"{HEAD}{body}\nret;\n}}\n"


def pairs(text: str) -> set[tuple[str, str]]:
    """Uncovered pairs by opcode."""
    file = parse(text)
    assert not file.errors
    found: set[tuple[str, str]] = set()
    for module, function in roots(file):
        for pair in recheck(module, function):
            assert pair.trail[0] == pair.access
            assert pair.trail[-1] == pair.operation
            code = function.instructions
            found.add((code[pair.access].opcode, code[pair.operation].opcode))
    return found


def lines(*parts: str) -> str:
    return "\n".join(parts)


COVERED = {
    "by the writers": lines(STORE, FENCE, BAR, BY_ONE),
    "release half": lines(
        STORE, "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;", BAR, BY_ONE
    ),
    "wider form": lines(STORE, "fence.proxy.async;", BAR, BY_ONE),
    "by the issuer": lines(STORE, BAR, "@%p1 bra $SKIP;", FENCE, ISSUE, "$SKIP:"),
    "by one thread that stores and issues": lines("@%p1 bra $SKIP;", STORE, FENCE, ISSUE, "$SKIP:"),
    "on both arms": lines(STORE, "@%p2 bra $A;", FENCE, "bra $B;", "$A:", FENCE, "$B:", BAR, BY_ONE),
    "under the condition of the store": lines(f"@%p3 {STORE}", f"@%p3 {FENCE}", BAR, BY_ONE),
    "by a third warp between two barriers": lines(STORE, BAR, f"@%p3 {FENCE}", BAR, BY_ONE),
    "by one lane of each warp": lines(
        STORE, "bar.warp.sync -1;", "elect.sync %r9|%p7, -1;", f"@%p7 {FENCE}", BAR, BY_ONE
    ),
    "before the arrive": roles(lines(STORE, FENCE, ARRIVE), lines(WAIT, ISSUE)),
    "after the wait": roles(lines(STORE, ARRIVE), lines(WAIT, FENCE, ISSUE)),
    "read, by the reader": lines(LOAD, FENCE, BAR, f"@%p1 bra $SKIP;\n{BULK_LOAD}\n$SKIP:"),
    "read and async read": lines(LOAD, BAR, BY_ONE),
    "other bytes": lines("st.shared.b32 [%r7], %r1;", BAR, BY_ONE),
    "cp.async, after its wait": lines(
        "cp.async.cg.shared.global [%r5], [%rd1], 16;", "cp.async.commit_group;", "cp.async.wait_group 0;", FENCE, BAR,
        BY_ONE,
    ),
    "cluster barrier, before the arrive": lines(
        STORE, FENCE, "barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;", BY_ONE
    ),
    "fence in the loop of the store": lines("$L:", STORE, FENCE, BAR, "add.s32 %r1, %r1, -1;",
                                            "setp.gt.s32 %p7, %r1, 0;", "@%p7 bra $L;", BY_ONE),
}  # fmt: skip

UNCOVERED = {
    "no fence": lines(STORE, BAR, BY_ONE),
    "no fence, one thread": lines("@%p1 bra $SKIP;", STORE, ISSUE, "$SKIP:"),
    "before the store": lines(FENCE, STORE, BAR, BY_ONE),
    "after the operation": lines(STORE, BAR, "@%p1 bra $SKIP;", ISSUE, FENCE, "$SKIP:"),
    "by one thread before the barrier": lines(STORE, f"@!%p1 {FENCE}", BAR, BY_ONE),
    "by one warp before the barrier": lines(STORE, f"@%p3 {FENCE}", BAR, BY_ONE),
    "on one arm": lines(STORE, "@%p2 bra $A;", FENCE, "$A:", BAR, BY_ONE),
    "by a third warp on one arm": lines(STORE, BAR, "@%p2 bra $A;", f"@%p3 {FENCE}", "$A:", BAR, BY_ONE),
    "by another third warp after the last barrier": lines(STORE, BAR, f"@%p5 {FENCE}", BY_ONE),
    "under a narrower condition": lines(f"@%p4 {STORE}", f"@%p3 {FENCE}", BAR, BY_ONE),
    "wrong space": lines(STORE, "fence.proxy.async.global;", BAR, BY_ONE),
    "a thread fence": lines(STORE, "fence.acq_rel.gpu;", BAR, BY_ONE),
    "acquire half": lines(
        STORE, BAR, "@%p1 bra $SKIP;", "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
        ISSUE, "$SKIP:",
    ),
    "one lane of the warp before the warp barrier": lines(
        STORE, "elect.sync %r9|%p7, -1;", f"@%p7 {FENCE}", "bar.warp.sync -1;", BAR, BY_ONE
    ),
    "between arrive and the next arrive": roles(lines(STORE, ARRIVE, FENCE), lines(WAIT, ISSUE)),
    "before the wait": roles(lines(STORE, ARRIVE), lines(FENCE, WAIT, ISSUE)),
    "read": lines(LOAD, BAR, f"@%p1 bra $SKIP;\n{BULK_LOAD}\n$SKIP:"),
    "overwritten": lines(STORE, BAR, f"@%p1 bra $SKIP;\n{BULK_LOAD}\n$SKIP:"),
    "cp.async, before its wait": lines(
        "cp.async.cg.shared.global [%r5], [%rd1], 16;", "cp.async.commit_group;", FENCE, "cp.async.wait_group 0;", BAR,
        BY_ONE,
    ),
    "cp.async, wait for an older group": lines(
        "cp.async.cg.shared.global [%r5], [%rd1], 16;", "cp.async.commit_group;", "cp.async.wait_group 1;", FENCE,
        "cp.async.wait_group 0;", BAR, BY_ONE,
    ),
    "cluster barrier, after the arrive": lines(
        STORE, "barrier.cluster.arrive.aligned;", FENCE, "barrier.cluster.wait.aligned;", BY_ONE
    ),
    "hoisted out of the loop of the store": lines("$L:", STORE, BAR, BY_ONE, BAR, "add.s32 %r1, %r1, -1;",
                                                  "setp.gt.s32 %p7, %r1, 0;", "@%p7 bra $L;", FENCE),
}  # fmt: skip


@pytest.mark.parametrize("name", COVERED)
def test_covered(name: str) -> None:
    assert pairs(kernel(COVERED[name])) == set()


@pytest.mark.parametrize("name", UNCOVERED)
def test_uncovered(name: str) -> None:
    assert pairs(kernel(UNCOVERED[name]))


@pytest.mark.parametrize("name", [*COVERED, *UNCOVERED])
def test_the_analysis_says_the_same(name: str) -> None:
    body = COVERED.get(name) or UNCOVERED[name]
    assert missing(analyse(parse(kernel(body)))) == (name in UNCOVERED)


def test_ptxas_takes_the_kernels() -> None:
    if not assemble.available():
        pytest.skip("no ptxas on this machine")
    for body in (*COVERED.values(), *UNCOVERED.values()):
        assemble.assemble(kernel(body))


def test_only_wanted_pairs() -> None:
    (module, function) = next(iter(roots(parse(kernel(UNCOVERED["no fence"])))))
    (pair,) = recheck(module, function)
    assert recheck(module, function, lambda a, o: (a, o) == (pair.access, pair.operation)) == (pair,)
    assert recheck(module, function, lambda a, o: False) == ()


def missing(report: Report) -> bool:
    return any(f.rule in MISSING and f.cause is not Cause.UNSYNCHRONISED for f in report.findings)


SAMPLE = [
    *sorted((ROOT / "corpus" / "hand").glob("*.ptx")),
    *sorted((ROOT / "corpus" / "ptx" / "nvcc-13.0").glob("*.ptx")),
    *sorted((ROOT / "bench" / "hardware" / "ptx").glob("*.ptx")),
    *sorted((ROOT / "corpus" / "ptx" / "triton-3.9.0").glob("ws_*.sm_90.ptx")),
    *sorted((ROOT / "corpus" / "ptx" / "triton-3.7.0").glob("*gemm.sm_90.ptx")),
]


@pytest.mark.parametrize("path", SAMPLE, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_agreement_on_the_corpus(path: Path) -> None:
    file = parse(path.read_text(), path.name)
    found = any(recheck(module, function) for module, function in roots(file))
    assert found == missing(analyse(file))
