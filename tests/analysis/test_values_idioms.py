"""Address idioms of real compilers, each as a few lines of PTX with the bytes that come out."""

from __future__ import annotations

import pytest
from values_text import access, analysed, region

from ptxfence.analysis.isa import effect

LOOP_END = "ld.param.u32 %r50, [n];\nsetp.lt.u32 %p9, %r1, %r50;\n@%p9 bra LOOP;\n"
IDIOMS = {
    "thread index": ("mov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 4;\nmov.u32 %r3, smem;\n"
    "add.u32 %r4, %r3, %r2;", 0, 4084, 16),
    "or of disjoint bits": (
        "mov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 7;\nshl.b32 %r2, %r2, 4;\nor.b32 %r2, %r2, 1024;\n"
        "mov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;",
        1024, 1140, 16,
    ),
    "swizzle": (
        "mov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 4;\nand.b32 %r2, %r2, 2032;\nshl.b32 %r5, %r1, 1;\n"
        "and.b32 %r5, %r5, 112;\n"
        "xor.b32 %r2, %r2, %r5;\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;",
        0, 2036, 16,
    ),
    "address swizzle": (
        "mov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, smem;\nadd.u32 %r3, %r3, %r2;\n"
        "and.b32 %r5, %r3, 896;\n"
        "shr.u32 %r5, %r5, 3;\nxor.b32 %r4, %r3, %r5;",
        0, 1024, 0,
    ),
    "signed division of a thread index": (
        "mov.u32 %r1, %tid.x;\nshr.s32 %r2, %r1, 31;\nshr.u32 %r2, %r2, 27;\nadd.s32 %r2, %r1, %r2;\n"
        "shr.s32 %r2, %r2, 5;\n"
        "shl.b32 %r2, %r2, 10;\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;",
        0, 7172, 1024,
    ),
    "product of two indices": (
        "mov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 3;\nshr.u32 %r5, %r1, 6;\nmul.lo.u32 %r2, %r2, %r5;\n"
        "shl.b32 %r2, %r2, 4;\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;",
        0, 3 * 3 * 16 + 4, 16,
    ),
    "generic address": (
        "mov.u64 %rd1, fixed;\ncvta.shared.u64 %rd2, %rd1;\nadd.s64 %rd2, %rd2, 64;\ncvta.to.shared.u64 %rd3, %rd2;\n"
        "cvt.u32.u64 %r4, %rd3;",
        64, 68, 0,
    ),
    "packed halves": (
        "mov.u32 %r1, smem;\nmov.b64 %rd1, {%r1, %r1};\nmov.b64 {%r2, %r4}, %rd1;\nadd.u32 %r4, %r4, 16;", 16, 20, 0,
    ),
    "warp broadcast": (
        "mov.u32 %r1, %tid.x;\nshr.u32 %r1, %r1, 5;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nshl.b32 %r2, %r2, 7;\n"
        "mov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;",
        0, 900, 128,
    ),
    "ring by compare and select": (
        "mov.u32 %r1, 0;\nLOOP:\nshl.b32 %r2, %r1, 13;\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;\n"
        "st.shared.u32 [%r4], 0;\n"
        "add.u32 %r6, %r1, 1;\nsetp.eq.u32 %p1, %r6, 5;\nselp.b32 %r1, 0, %r6, %p1;\n" + LOOP_END,
        0, 4 * 8192 + 4, 8192,
    ),
    "ring tested on the old index": (
        "mov.u32 %r1, 0;\nLOOP:\nshl.b32 %r2, %r1, 13;\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;\n"
        "st.shared.u32 [%r4], 0;\n"
        "setp.eq.u32 %p1, %r1, 30;\nadd.u32 %r6, %r1, 1;\nselp.b32 %r1, 0, %r6, %p1;\n" + LOOP_END,
        0, 30 * 8192 + 4, 8192,
    ),
    "ring by branch": (
        "mov.u32 %r1, 0;\nLOOP:\nshl.b32 %r2, %r1, 10;\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;\n"
        "st.shared.u32 [%r4], 0;\n"
        "add.u32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r1, 7;\n@%p1 bra KEEP;\nmov.u32 %r1, 0;\nKEEP:\n" + LOOP_END,
        0, 6 * 1024 + 4, 1024,
    ),
    "ring by mask": (
        "mov.u32 %r1, 0;\nLOOP:\nand.b32 %r2, %r1, 3;\nshl.b32 %r2, %r2, 10;\nmov.u32 %r3, smem;\n"
        "add.u32 %r4, %r3, %r2;\n"
        "st.shared.u32 [%r4], 0;\nadd.u32 %r1, %r1, 1;\n" + LOOP_END,
        0, 3 * 1024 + 4, 1024,
    ),
    "ring by magic number": (
        "mov.u32 %r1, 0;\nLOOP:\nmul.hi.u32 %r2, %r1, -1431655765;\nshr.u32 %r2, %r2, 1;\nmul.lo.s32 %r2, %r2, 3;\n"
        "sub.s32 %r2, %r1, %r2;\nshl.b32 %r2, %r2, 12;\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;\n"
        "st.shared.u32 [%r4], 0;\n"
        "add.u32 %r1, %r1, 1;\n" + LOOP_END,
        0, 2 * 4096 + 4, 4096,
    ),
    "strength-reduced modulo": (
        "mov.u32 %r1, 0;\nmov.u32 %r7, smem;\nLOOP:\nmul.hi.u32 %r2, %r1, -1431655765;\nshr.u32 %r2, %r2, 1;\n"
        "mad.lo.s32 %r4, %r2, -24576, %r7;\nst.shared.u32 [%r4], 0;\nadd.u32 %r1, %r1, 1;\n"
        "add.u32 %r7, %r7, 8192;\n" + LOOP_END,
        0, 2 * 8192 + 4, 8192,
    ),
    "pointer bounded by a trip count": (
        "mov.u32 %r1, 0;\nmov.u32 %r4, smem;\nLOOP:\nst.shared.u32 [%r4], 0;\nadd.u32 %r4, %r4, 64;\n"
        "add.u32 %r1, %r1, 1;\n"
        "setp.lt.u32 %p1, %r1, 10;\n@%p1 bra LOOP;\n",
        0, 9 * 64 + 4, 64,
    ),
    "role branch bounds the thread index": (
        "mov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 7;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra DONE;\nshl.b32 %r2, %r1, 3;\n"
        "mov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;\nst.shared.u32 [%r4], 0;\nDONE:\n",
        1024, 2044, 8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IDIOMS)
def test_idiom(name: str) -> None:
    body, lo, hi, step = IDIOMS[name]
    if "st.shared" not in body:
        body += "\nst.shared.u32 [%r4], 0;"
    found = region(body)
    assert found.bounded
    assert (found.lo, found.hi, found.step if step > 4 else 0) == (lo, hi, step)


def test_a_register_shared_by_two_counters_is_told_apart() -> None:
    found = region(
        "mov.u32 %r1, 7000;\nst.global.u32 [%rd1], %r1;\nmov.u32 %r1, 64;\nmov.u32 %r3, smem;\n"
        "add.u32 %r4, %r3, %r1;\n"
        "st.shared.u32 [%r4], 0;"
    )
    assert (found.lo, found.hi) == (64, 68)


def test_an_unknown_index_is_lost_at_the_load_that_gave_it() -> None:
    values = analysed(
        "ld.param.u64 %rd1, [g];\nld.global.u32 %r1, [%rd1];\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r1;\n"
        "st.shared.u32 [%r4], 0;"
    )
    index, what = access(values, "st.shared")
    found = values.region(index, what)
    assert found.base is not None
    assert not found.bounded
    lost = values.unresolved(index, what)
    assert lost is not None
    assert values.function.instructions[lost[0]].opcode == "ld.global.u32"


def test_shuffle_does_not_take_over_the_reading_lanes_condition() -> None:
    found = region(
        "mov.u32 %r1, %tid.x;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nsetp.ne.u32 %p1, %r1, 37;\n@%p1 bra DONE;\n"
        "shl.b32 %r2, %r2, 2;\nmov.u32 %r3, smem;\nadd.u32 %r4, %r3, %r2;\nst.shared.u32 [%r4], 0;\nDONE:\n"
    )
    assert found.lo is not None
    assert found.lo <= 128  # lane 0 of warp 1 is thread 32
    assert found.bounded


def test_another_ctas_memory_is_marked() -> None:
    store = "mov.u32 %r3, smem;\nmapa.shared::cluster.u32 %r4, %r3, 1;\nst.shared::cluster.u32 [%r4+32], 0;\n"
    found = region(store + "barrier.cluster.arrive;\nbarrier.cluster.wait;", "st")
    assert found.peer
    assert (found.lo, found.hi) == (32, 36)
    assert not region(store, "st").peer  # nothing that a cluster of several CTAs needs


def test_a_counter_bounded_through_another_one() -> None:
    found = region(
        "mov.u32 %r1, %tid.x;\nmov.u32 %r2, smem;\nshl.b32 %r3, %r1, 2;\nadd.u32 %r4, %r2, %r3;\n"
        "add.s32 %r5, %r1, -4096;\nLOOP:\nst.shared.u32 [%r4], 0;\nadd.s32 %r4, %r4, 4096;\n"
        "add.s32 %r5, %r5, 1024;\nsetp.lt.s32 %p1, %r5, 0;\n@%p1 bra LOOP;"
    )
    assert (found.lo, found.hi) == (0, 13312)


@pytest.mark.parametrize(("k_step", "lo"), [(0, 1024), (2, 1024), (6, 1024), (64, 2048)])
def test_wgmma_descriptor(k_step: int, lo: int) -> None:
    body = (
        "mov.u32 %r3, smem;\nadd.u32 %r3, %r3, 1024;\nshr.u32 %r3, %r3, 4;\nand.b32 %r3, %r3, 16383;\n"
        "cvt.u64.u32 %rd1, %r3;\n"
        f"or.b64 %rd1, %rd1, 4611686293305294848;\nadd.s64 %rd1, %rd1, {k_step};\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r10,%r11,%r12,%r13}, %rd1, %rd1, 1, 1, 1, 0, 0;"
    )
    values = analysed(body)
    index, _ = access(values, "wgmma")
    instruction = values.function.instructions[index]
    first = effect(instruction.opcode, instruction.operands).accesses[0]
    found = values.region(index, first)
    assert (found.lo, found.hi) == (lo, lo + 64 // 8 * 1024)  # 8 groups of 8 rows, 1024 bytes apart


def test_constants_and_ranges() -> None:
    values = analysed("mov.u32 %r1, %tid.x;\nshr.u32 %r1, %r1, 7;\nadd.u32 %r1, %r1, 1;\nbar.sync %r1, 128;")
    index = next(i.index for i in values.function.instructions if i.opcode == "bar.sync")
    assert values.constant(index, 0) is None
    assert values.range(index, 0) == (1, 2)
    assert values.constant(index, 1) == 128


def test_deep_chains_are_no_recursion() -> None:
    steps = "".join(
        "add.u32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 6;\nselp.b32 %r1, 0, %r2, %p1;\nxor.b32 %r5, %r5, %r1;\n"
        "" for _ in range(1000)
    )
    found = region(
        f"mov.u32 %r1, %tid.x;\nand.b32 %r1, %r1, 3;\nmov.u32 %r5, 0;\n{steps}shl.b32 %r2, %r1, 4;\n"
        f"mov.u32 %r3, smem;\n"
        "add.u32 %r4, %r3, %r2;\nst.shared.u32 [%r4], 0;"
    )
    assert (found.lo, found.hi) == (0, 84)


def test_a_ring_index_that_an_unrolled_loop_steps_many_times_stays_in_its_ring() -> None:
    step = "add.u32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 3;\nselp.b32 %r1, 0, %r2, %p1;\n"
    found = region(
        f"mov.u32 %r1, 0;\nmov.u32 %r3, smem;\nmov.u32 %r6, 0;\nld.param.u32 %r7, [n];\nLOOP:\n{step * 61}"
        "shl.b32 %r4, %r1, 10;\nadd.u32 %r5, %r3, %r4;\nst.shared.u32 [%r5], 0;\nadd.u32 %r6, %r6, 1;\n"
        "setp.lt.u32 %p2, %r6, %r7;\n@%p2 bra LOOP;"
    )
    assert (found.lo, found.hi, found.step) == (0, 2052, 1024)


def test_waits_leave_no_conditions_behind() -> None:
    wait = (
        "W{0}:\nmbarrier.try_wait.parity.shared.b64 %p1, [smem+{1}], %r9;\n@!%p1 bra W{0};\n"
        "st.shared.u32 [smem+4096], 0;\n"
    )
    values = analysed("mov.u32 %r9, 0;\n" + "".join(wait.format(i, 8 * i) for i in range(40)))
    stores = [i.index for i in values.function.instructions if i.opcode.startswith("st.")]
    assert values.env_at(stores[-1]) is values.env_at(stores[0])
    assert not values.threads(stores[-1])


@pytest.mark.parametrize(("start", "lo", "hi"), [(1664, 1664, 2688), (1696, 1664, 2688), (2048, 2048, 3072)])
def test_a_swizzled_tile_begins_at_its_row(start: int, lo: int, hi: int) -> None:
    body = (
        f"mov.u32 %r3, smem;\nadd.u32 %r3, %r3, {start};\nshr.u32 %r3, %r3, 4;\nand.b32 %r3, %r3, 16383;\n"
        "cvt.u64.u32 %rd1, %r3;\nor.b64 %rd1, %rd1, 4611686293305294848;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r10,%r11,%r12,%r13}, {%r4,%r5,%r6,%r7}, %rd1, 1, 1, 1, 0;"
    )
    found = region(body, "wgmma.mma_async")
    assert (found.lo, found.hi) == (lo, hi)


SUMS = {
    "remainders of one index": (
        "mov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 31;\nand.b32 %r3, %r1, 28;\nsub.s32 %r4, %r2, %r3;\n"
        "shl.b32 %r4, %r4, 3;\nmov.u32 %r5, smem;\nadd.u32 %r5, %r5, %r4;\nst.shared.u32 [%r5+1920], 0;",
        1920, 1948,
    ),
    "ring of seven stages": (
        "ld.param.u32 %r9, [n];\nmov.u32 %r1, 0;\nLOOP:\nshl.b32 %r2, %r1, 3;\nmov.u32 %r3, smem;\n"
        "add.u32 %r3, %r3, %r2;\nst.shared.u32 [%r3], 0;\nadd.s32 %r4, %r1, %r9;\n"
        "mul.wide.u32 %rd1, %r4, 613566757;\nshr.u64 %rd2, %rd1, 32;\ncvt.u32.u64 %r5, %rd2;\n"
        "sub.s32 %r6, %r4, %r5;\nshr.u32 %r6, %r6, 1;\nadd.s32 %r6, %r6, %r5;\nshr.u32 %r6, %r6, 2;\n"
        "mul.lo.s32 %r6, %r6, 7;\nsub.s32 %r1, %r4, %r6;\nsetp.ne.u32 %p1, %r1, %r9;\n@%p1 bra LOOP;",
        0, 52,
    ),
    "condition on a sum": (
        "mov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 5;\nand.b32 %r3, %r1, 31;\nmad.lo.s32 %r4, %r3, 3, %r2;\n"
        "setp.gt.u32 %p1, %r4, 31;\n@%p1 bra DONE;\nshl.b32 %r6, %r4, 9;\nmov.u32 %r5, smem;\n"
        "add.u32 %r5, %r5, %r6;\nst.shared.u32 [%r5], 0;\nDONE:",
        0, 15876,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_terms_that_depend_on_each_other(name: str) -> None:
    body, lo, hi = SUMS[name]
    found = region(body)
    assert (found.lo, found.hi) == (lo, hi)
