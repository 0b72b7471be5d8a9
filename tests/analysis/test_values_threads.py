"""Thread sets: who executes an instruction, from guards and dominating branches."""

from __future__ import annotations

import pytest
from values_text import analysed

from ptxfence.analysis.conditions import ThreadSet, disjoint, subset
from ptxfence.analysis.values import Values


def threads_of(values: Values, opcode: str) -> ThreadSet:
    index = next(i.index for i in values.function.instructions if i.opcode.startswith(opcode))
    return values.threads(index)


def ranges(atoms: ThreadSet) -> set[tuple[str, int, int, bool]]:
    return {(a.key, a.lo, a.hi, a.negated) for a in atoms}


TID = "mov.u32 %r1, %tid.x;\nmov.u32 %r9, smem;\n"
CASES = {
    "one thread": ("setp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [%r9], 0;", {("tid.x", 0, 1, False)}),
    "all but one": ("setp.eq.u32 %p1, %r1, 3;\n@!%p1 st.shared.u32 [%r9], 0;", {("tid.x", 3, 4, True)}),
    "warp by shift": ("shr.u32 %r2, %r1, 5;\nsetp.eq.u32 %p1, %r2, 2;\n"
    "@%p1 st.shared.u32 [%r9], 0;", {("tid.x", 64, 96, False)}),
    "warp by broadcast": (
        "shr.u32 %r2, %r1, 5;\nshfl.sync.idx.b32 %r2, %r2, 0, 31, -1;\nsetp.eq.u32 %p1, %r2, 1;\n"
        "@%p1 st.shared.u32 [%r9], 0;",
        {("tid.x", 32, 64, False)},
    ),
    "range test": ("add.s32 %r2, %r1, -32;\nsetp.lt.u32 %p1, %r2, 96;\n"
    "@%p1 st.shared.u32 [%r9], 0;", {("tid.x", 32, 128, False)}),
    "flag round trip": (
        "setp.lt.u32 %p1, %r1, 32;\nselp.u32 %r2, 1, 0, %p1;\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 st.shared.u32 [%r9], 0;",
        {("tid.x", 0, 32, False)},
    ),
    "conjunction": (
        "setp.lt.u32 %p1, %r1, 64;\nsetp.ge.u32 %p2, %r1, 32;\nand.pred %p3, %p1, %p2;\n@%p3 st.shared.u32 [%r9], 0;",
        {("tid.x", 32, 64, False)},
    ),
    "lane of a known warp": (
        "setp.gt.u32 %p1, %r1, 31;\n@%p1 bra DONE;\nand.b32 %r2, %r1, 31;\nsetp.eq.u32 %p2, %r2, 0;\n"
        "@%p2 st.shared.u32 [%r9], 0;\nDONE:",
        {("tid.x", 0, 1, False)},
    ),
    "elected lane": ("elect.sync _|%p1, -1;\n@%p1 st.shared.u32 [%r9], 0;", {("elect", 1, 2, False)}),
    "other than one group of warps": (
        "shr.u32 %r2, %r1, 5;\nand.b32 %r3, %r2, -2;\nsetp.eq.s32 %p1, %r3, 2;\n@!%p1 st.shared.u32 [%r9], 0;",
        {("tid.x", 64, 128, True)},
    ),
    "early return": ("setp.ge.u32 %p1, %r1, 128;\n@%p1 ret;\nst.shared.u32 [%r9], 0;", {("tid.x", 0, 128, False)}),
    "after a join": ("setp.eq.u32 %p1, %r1, 0;\n@%p1 bra NEXT;\nadd.u32 %r2, %r1, 1;\nNEXT:\n"
    "st.shared.u32 [%r9], 0;", set()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_thread_set(name: str) -> None:
    body, expected = CASES[name]
    assert ranges(threads_of(analysed(TID + body), "st.shared")) == expected


def test_one_thread_is_part_of_its_warp_and_apart_from_others() -> None:
    one = threads_of(analysed(TID + CASES["one thread"][0]), "st.shared")
    warp = threads_of(analysed(TID + "setp.lt.u32 %p1, %r1, 32;\n@%p1 st.shared.u32 [%r9], 0;"), "st.shared")
    other = threads_of(analysed(TID + CASES["warp by shift"][0]), "st.shared")
    assert subset(one, warp)
    assert not subset(warp, one)
    assert disjoint(one, other)


def test_a_condition_on_a_parameter_does_not_vary() -> None:
    values = analysed(TID + "ld.param.u32 %r2, [n];\nsetp.gt.s32 %p1, %r2, 5;\n@%p1 st.shared.u32 [%r9], 0;")
    (atom,) = threads_of(values, "st.shared")
    assert not atom.varies


def test_a_loop_redefines_its_predicate() -> None:
    values = analysed(
        TID + "mov.u32 %r2, 0;\nLOOP:\nand.b32 %r3, %r2, 3;\nshr.u32 %r4, %r1, 5;\nsetp.eq.u32 %p1, %r4, %r3;\n"
        "@%p1 st.shared.u32 [%r9], 0;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 40;\n@%p2 bra LOOP;"
    )
    (atom,) = threads_of(values, "st.shared")
    assert atom.varies
    assert atom.defs


def test_occupied_needs_a_thread_that_exists() -> None:
    inside = threads_of(analysed(TID + CASES["warp by shift"][0]), "st.shared")
    outside = threads_of(analysed(TID + CASES["warp by shift"][0], ".maxntid 256"), "st.shared")
    assert [a.occupied for a in inside] == [True]
    assert [a.occupied for a in outside] == [False]
