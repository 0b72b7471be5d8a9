"""How far a tensor copy reaches: the box is in the tensor map, so its size is bounded from what surrounds it.

A load's box is no larger than the `expect_tx` of the mbarrier that it completes on, and two loads (two stores) of one
kernel start at least a box apart, as do the slots of a ring; no box reaches into an mbarrier. Where the distances of
all loads on one mbarrier sum up to its `expect_tx`, they are the boxes (proxy-semantics E.6).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ptxfence.analysis.effects import Access, Box, Effect, Mode, Role, Space
from ptxfence.analysis.isa import effect, lookup
from ptxfence.analysis.overlaps import Overlap, overlap, unnamed
from ptxfence.analysis.region import Base, Region
from ptxfence.analysis.regions import Shape, region_of, slots
from ptxfence.analysis.values_nodes import Node

if TYPE_CHECKING:
    from ptxfence.analysis.values import Values

LEAST = 16  # bytes of the innermost box dimension are a multiple of it
LARGEST = 232_448  # shared memory that one CTA can have (227 KB, sm_90 and later)
SHAPES = ("1d", "2d", "3d", "4d", "5d", "tile", "im2col")  # qualifiers that say how a map's box is read
MANY = 64  # slots of one operand that are listed


@dataclass(frozen=True, slots=True)
class Copy:
    """One tensor copy: region of its first 16 bytes, and of its mbarrier."""

    index: int
    access: Access
    start: Region
    barrier: Region | None


class Boxes:
    """Sizes of all tensor boxes of one function, computed together when first asked for."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def region(self, index: int, access: Access) -> Region:
        return self._regions.get((index, access.operand)) or self._start(index, access)

    def _start(self, index: int, access: Access) -> Region:
        node = self._values.node(index, access.operand)
        return region_of(self._values, index, node, Shape(access.space, LEAST, LEAST, False))

    @cached_property
    def _effects(self) -> list[tuple[int, Effect]]:
        cfg = self._values.cfg
        relevant = {opcode for opcode in cfg.opcodes if lookup(opcode).relevant}
        return [
            (i.index, effect(i.opcode, i.operands))
            for i in cfg.instructions
            if i.opcode in relevant and cfg.home[i.index] in cfg.rank
        ]

    @cached_property
    def _copies(self) -> list[Copy]:
        found: list[Copy] = []
        for index, what in self._effects:
            for access in what.accesses:
                if isinstance(access.footprint, Box) and access.space in (Space.CTA, Space.CLUSTER):
                    barrier = access.mbarrier
                    region = self._values.mbarrier_region(index, barrier) if barrier is not None else None
                    found.append(Copy(index, access, self._start(index, access), region))
        return found

    @cached_property
    def _expected(self) -> list[tuple[Region, int]]:
        """(mbarrier, bytes) of every `expect_tx` with a constant count, once where they are alike."""
        found: dict[tuple[object, int], Region] = {}
        for index, what in self._effects:
            sync = what.sync
            if sync is None or sync.tx is None or sync.address is None:
                continue
            bounds = self._values.range(index, sync.tx)
            if bounds is not None and 0 < bounds[1] <= LARGEST:
                region = self._values.mbarrier_region(index, sync.address)
                found.setdefault((unnamed(region), bounds[1]), region)
        return [(region, count) for (_, count), region in found.items()]

    @cached_property
    def _marks(self) -> dict[tuple[Base, Mode | None], list[int]]:
        """Where boxes must end: starts of mbarriers (None) and of tensor loads and stores, ascending."""
        marks: dict[tuple[Base, Mode | None], set[int]] = {}
        for index, what in self._effects:
            operands = {a.operand for a in what.accesses if a.role is Role.MBARRIER}
            if what.sync is not None and what.sync.address is not None:
                operands.add(what.sync.address)
            for operand in operands:
                region = self._values.mbarrier_region(index, operand)
                if region.base is not None:
                    marks.setdefault((region.base, None), set()).update(starts(region))
        for copy in self._copies:
            if copy.start.base is not None:
                marks.setdefault((copy.start.base, copy.access.mode), set()).update(starts(copy.start))
        return {key: sorted(places) for key, places in marks.items()}

    def _size(self, copy: Copy) -> tuple[int, str]:
        """Upper bound of a box in bytes and what gave it."""
        size, reason = LARGEST, "symbol"
        base = copy.start.base
        assert base is not None
        symbol = self._values.builder.symbols.get(base.name)
        if symbol is not None and symbol.size is not None and copy.start.lo is not None:
            size = max(LEAST, symbol.size - copy.start.lo)
        if copy.access.mode & Mode.WRITE and copy.barrier is not None:
            counts = [n for barrier, n in self._expected if overlap(barrier, copy.barrier) is not Overlap.NO]
            if counts and max(counts) < size:
                size, reason = max(counts), "expect_tx"
        for key in ((base, None), (base, copy.access.mode)):
            places = self._marks.get(key, [])
            for start in starts(copy.start):
                at = bisect_right(places, start)
                if at < len(places) and places[at] - start < size and places[at] - start >= LEAST:
                    size, reason = places[at] - start, "neighbour"
        return size, reason

    @cached_property
    def _limits(self) -> dict[Copy, tuple[int, str]]:
        """Upper bounds of all boxes: those of one tensor map have one size (PTX ISA 5.5, tensor-map objects)."""
        found = {copy: self._size(copy) for copy in self._copies if copy.start.bounded}
        least: dict[object, tuple[int, str]] = {}
        for copy, bound in found.items():
            if (key := self._map(copy)) is not None:
                least[key] = min(least.get(key, bound), bound)
        return {copy: least.get(self._map(copy), bound) for copy, bound in found.items()}

    @cached_property
    def _rewritten(self) -> bool:
        """Whether the kernel changes tensor maps."""
        accesses = (a for _, what in self._effects for a in what.accesses)
        return any(a.mode & Mode.WRITE and a.role is Role.TENSOR_MAP for a in accesses)

    def _map(self, copy: Copy) -> tuple[Node, frozenset[str]] | None:
        """The tensor map of a copy and how it is used; None where one instruction may use several maps."""
        instruction = self._values.cfg.instructions[copy.index]
        what = effect(instruction.opcode, instruction.operands)
        operand = next((a.operand for a in what.accesses if a.role is Role.TENSOR_MAP), None)
        if operand is None or self._rewritten:
            return None
        node = self._values.node(copy.index, operand)
        if self._values.guards.varies(node) or self._values.guards.defs(node):
            return None
        return node, frozenset(word for word in what.qualifiers if word.startswith(SHAPES) and word != "tile")

    @cached_property
    def _regions(self) -> dict[tuple[int, int], Region]:
        found: dict[tuple[int, int], Region] = {}
        sizes: dict[tuple[int, int], int] = {}
        for copy in self._copies:
            if not copy.start.bounded:
                continue
            size, reason = self._limits[copy]
            sizes[copy.index, copy.access.operand] = size
            found[copy.index, copy.access.operand] = _sized(copy.start, size, reason)
        for copy in self._exact_copies(sizes):
            key = copy.index, copy.access.operand
            found[key] = found[key]._replace(exact=found[key].terms is not None)
        return found

    def _exact_copies(self, sizes: dict[tuple[int, int], int]) -> list[Copy]:
        """Loads whose bounds sum up to the bytes that their mbarrier expects."""
        groups: dict[Region, list[Copy]] = {}
        for copy in self._copies:
            if copy.barrier is not None and copy.barrier.bounded and (copy.index, copy.access.operand) in sizes:
                groups.setdefault(copy.barrier._replace(lost=None), []).append(copy)
        exact: list[Copy] = []
        for barrier, copies in groups.items():
            counts = {n for other, n in self._expected if overlap(barrier, other) is not Overlap.NO}
            if len(counts) == 1 and sum(sizes[c.index, c.access.operand] for c in copies) in counts:
                exact.extend(copies)
        return exact


def _sized(start: Region, size: int, reason: str) -> Region:
    assert start.lo is not None and start.hi is not None
    step, span = slots(start, size)
    return start._replace(hi=start.hi - LEAST + size, step=step, span=span, width=size, bounded_by=reason)


def starts(region: Region) -> list[int]:
    """Addresses at which instances of a region start; only the lowest where there are many."""
    if region.lo is None:
        return []
    if region.terms is None or region.origin is None:
        return [region.lo]
    found = [region.origin]
    for term in region.terms:
        values = range(term.lo, term.hi + 1, term.step)
        if len(found) * len(values) > MANY:
            return [region.lo]
        found = [place + term.scale * value for place in found for value in values]
    return sorted(set(found))
