"""Comparing regions: numeric ranges, ring slots, linear forms, alias classes, tensor boxes."""

from __future__ import annotations

from values_text import analysed, region

from ptxfence.analysis.effects import Box, Space
from ptxfence.analysis.isa import effect, lookup
from ptxfence.analysis.overlaps import Overlap, classes, covers, overlap, same_thread_overlap
from ptxfence.analysis.region import Base, BaseKind, Region, Term
from ptxfence.analysis.regions import slots
from ptxfence.analysis.values import Values

SMEM = Base(BaseKind.SYMBOL, "smem")


def place(lo: int, width: int, terms: tuple[Term, ...] = (), base: Base = SMEM) -> Region:
    reach = sum(t.scale * t.hi for t in terms)
    return Region(Space.CTA, base, lo, lo + reach + width, width=width, exact=True, origin=lo, terms=terms)


def term(name: str, scale: int, count: int, varies: bool = True) -> Term:
    return Term(name, scale, 0, count - 1, varies)


def test_apart_touching_and_equal() -> None:
    assert overlap(place(0, 16), place(16, 16)) is Overlap.NO
    assert overlap(place(0, 17), place(16, 16)) is Overlap.MAYBE
    assert overlap(place(0, 16), place(0, 16)) is Overlap.CERTAIN


def test_different_symbols_never_meet_but_unknown_bases_may() -> None:
    assert overlap(place(0, 16), place(0, 16, base=Base(BaseKind.SYMBOL, "other"))) is Overlap.NO
    assert overlap(place(0, 16), place(0, 16, base=Base(BaseKind.OPAQUE, "param p"))) is Overlap.MAYBE
    assert overlap(place(0, 16), Region(Space.CTA, None)) is Overlap.MAYBE


def test_ring_slots_stay_apart() -> None:
    first = place(0, 16, (term("tid.x", 16, 128), term("stage", 8192, 4, False)))
    second = place(4096, 16, (term("tid.x", 16, 128), term("other", 8192, 4, False)))
    assert first.lo is not None
    assert first.hi is not None
    assert first.hi > 4096  # the hulls overlap
    assert overlap(first, second) is Overlap.NO
    assert overlap(first, place(2032, 64)) is Overlap.MAYBE


def test_equal_terms_cancel_for_one_thread() -> None:
    one = place(0, 4, (term("tid.x", 8, 128),))
    two = place(8, 4, (term("tid.x", 8, 128),))
    assert overlap(one, two) is Overlap.MAYBE
    assert same_thread_overlap(one, two) is Overlap.NO
    assert same_thread_overlap(one, one) is not Overlap.NO


def test_covers_needs_one_exact_place() -> None:
    assert covers(place(0, 64), place(16, 16))
    assert not covers(place(0, 64, (term("stage", 64, 2, False),)), place(16, 16))
    assert not covers(place(16, 16), place(0, 64))


def test_classes_group_what_shares_bytes() -> None:
    regions = [place(0, 16), place(1024, 16), place(8, 16), place(1032, 4), Region(Space.CTA, None)]
    assert sorted(sorted(group) for group in classes(regions)) == [[0, 2], [1, 3], [4]]


def boxes(values: Values) -> list[Region]:
    found: list[Region] = []
    for instruction in values.function.instructions:
        if not lookup(instruction.opcode).relevant:
            continue
        for access in effect(instruction.opcode, instruction.operands).accesses:
            if isinstance(access.footprint, Box) and access.space in (Space.CTA, Space.CLUSTER):
                found.append(values.region(instruction.index, access))
    return found


LOAD = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[{0}], [%rd{2}, {{%r20, %r20}}], [{1}];\n"
)


def test_boxes_that_sum_up_to_the_expected_bytes_are_exact() -> None:
    values = analysed(
        "ld.param.u64 %rd1, [g];\nadd.u64 %rd2, %rd1, 128;\nmov.u32 %r1, smem;\nadd.u32 %r2, %r1, 8192;\n"
        "add.u32 %r3, %r1, 12288;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 12288;\n"
        + LOAD.format("%r1", "%r3", 1)
        + LOAD.format("%r2", "%r3", 2)
    )
    assert [(r.lo, r.hi, r.exact) for r in boxes(values)] == [(0, 8192, True), (8192, 12288, True)]


def test_a_box_is_bounded_by_what_its_mbarrier_expects() -> None:
    values = analysed(
        "ld.param.u64 %rd1, [g];\nmov.u32 %r1, smem;\nadd.u32 %r3, %r1, 65536;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4096;\n" + LOAD.format("%r1", "%r3", 1)
    )
    (found,) = boxes(values)
    assert (found.lo, found.hi, found.bounded_by) == (0, 4096, "expect_tx")


def test_boxes_of_one_tensor_map_have_one_size() -> None:
    values = analysed(
        "ld.param.u64 %rd1, [g];\nmov.u32 %r1, smem;\nadd.u32 %r2, %r1, 2048;\nadd.u32 %r3, %r1, 65536;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 8192;\n"
        + LOAD.format("%r1", "%r3", 1)
        + LOAD.format("%r2", "%r3", 1)
    )
    assert [(r.lo, r.hi) for r in boxes(values)] == [(0, 2048), (2048, 4096)]


def test_boxes_as_wide_as_their_distance_have_no_slots() -> None:
    """Halves of a stage, one for each of two CTAs: what starts in the second half is touched as well."""
    values = analysed(
        "ld.param.u64 %rd1, [g];\nmov.u32 %r1, smem;\nmov.u32 %r3, %cluster_ctarank;\nand.b32 %r4, %r3, 1;\n"
        "shl.b32 %r5, %r4, 11;\nld.param.u32 %r6, [n];\nand.b32 %r7, %r6, 3;\nshl.b32 %r8, %r7, 12;\n"
        "add.u32 %r9, %r1, %r5;\nadd.u32 %r2, %r9, %r8;\nadd.u32 %r10, %r1, 65536;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 2048;\n" + LOAD.format("%r2", "%r10", 1)
    )
    (found,) = boxes(values)
    assert (found.lo, found.hi, found.width) == (0, 16384, 2048)
    assert found.step == 0


def test_slots_that_begin_below_the_lowest_address_are_not_told() -> None:
    """Where threads keep a swizzle off the first bytes, the lowest address is no start of a slot."""
    found = region(
        "mov.u32 %r1, smem;\nmov.u32 %r2, %tid.x;\nand.b32 %r3, %r2, 3;\nshl.b32 %r4, %r3, 8;\n"
        "shl.b32 %r5, %r3, 5;\nxor.b32 %r6, %r5, 32;\nsub.u32 %r7, %r4, %r6;\nadd.u32 %r8, %r1, %r7;\n"
        "st.shared.b32 [%r8+1024], %r2;"
    )
    places = [1024 + 256 * (t & 3) - (32 * (t & 3) ^ 32) for t in range(256)]
    assert found.lo is not None
    assert all(not found.step or (p - found.lo) % found.step < max(found.span, found.width) for p in places)


def test_one_common_byte_is_an_overlap_from_either_side() -> None:
    tail, head = place(0, 17), place(16, 16)
    assert overlap(tail, head) is Overlap.MAYBE
    assert overlap(head, tail) is Overlap.MAYBE
    ring = place(0, 17, (term("stage", 64, 4, False),))
    assert overlap(place(80, 16), ring) is Overlap.MAYBE
    assert overlap(ring, place(80, 16)) is Overlap.MAYBE
    assert overlap(place(81, 16), ring) is Overlap.NO


def test_slots_are_apart_only_if_an_instance_of_all_threads_fits_in() -> None:
    lanes = term("tid.x", 16, 128)
    assert slots(place(0, 16, (lanes, term("stage", 4096, 4, False))), 16) == (4096, 2048)
    assert slots(place(0, 16, (lanes, term("stage", 1024, 4, False))), 16) == (0, 0)
    assert slots(place(0, 16, (lanes,)), 16) == (0, 0)
    assert slots(place(0, 16, (lanes,)), 8) == (16, 8)
