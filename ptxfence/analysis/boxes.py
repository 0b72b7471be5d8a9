"""How large a tensor box can be: its size is in the tensor map, not in the text.

Bounds (proxy-semantics E.6): a box ends before the next base that a bulk operation or an mbarrier uses, within its
ring slot, within the bytes that the mbarrier expects, and within the symbol. What none of them bounds ends with
the last byte that anything else in the kernel touches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ptxfence.analysis.effects import Box, Bytes
from ptxfence.analysis.events import Event, Touch
from ptxfence.analysis.region import Base, Region
from ptxfence.analysis.regions import Overlap, overlap
from ptxfence.analysis.values import Values

SMALLEST = 16  # bytes: the alignment and least size of a tensor copy's shared side


class Boxes:
    """Bounds the boxes of one kernel from everything that is known of its shared memory."""

    def __init__(self, values: Values, touches: Sequence[Touch], events: Iterable[Event]) -> None:
        self._values = values
        self._expected: list[tuple[Region, int]] = []
        self._starts: dict[Base, list[int]] = {}
        self._ends: dict[Base, int] = {}
        starts: dict[Base, set[int]] = {}
        for event in events:
            if event.barrier is None:
                continue
            self._note(event.barrier, starts)
            if event.bytes is not None:
                self._expected.append((event.barrier, event.bytes))
        for touch in touches:
            if isinstance(touch.access.footprint, Box):
                self._note(self._seed(touch), starts)
            elif touch.is_async and touch.region.exact:
                self._note(touch.region, starts)
            elif touch.region.bounded:
                self._reach(touch.region)
        self._starts = {base: sorted(found) for base, found in starts.items()}

    def _seed(self, touch: Touch) -> Region:
        return self._values.region(touch.index, replace(touch.access, footprint=Bytes(SMALLEST)))

    def _note(self, region: Region, starts: dict[Base, set[int]]) -> None:
        if region.base is None or region.lo is None:
            return
        starts.setdefault(region.base, set()).add(region.lo)
        self._reach(region)

    def _reach(self, region: Region) -> None:
        if region.base is not None and region.hi is not None:
            self._ends[region.base] = max(self._ends.get(region.base, 0), region.hi)

    def bound(self, touch: Touch) -> Touch:
        """The touch with a bounded region, if the address of its box is bounded."""
        seed = self._seed(touch)
        if not seed.bounded:
            return replace(touch, region=replace(seed, width=0, exact=False))
        assert seed.base is not None
        assert seed.lo is not None
        assert seed.hi is not None
        size, why = self._size(touch, seed, seed.base, seed.lo)
        region = replace(seed, hi=seed.hi - SMALLEST + size, width=size, exact=False, bounded_by=why)
        return replace(touch, region=region)

    def _size(self, touch: Touch, seed: Region, base: Base, lo: int) -> tuple[int, str]:
        limits: list[tuple[int, str]] = []
        starts = self._starts.get(base, [])
        after = bisect_right(starts, lo)
        if after < len(starts):
            limits.append((starts[after] - lo, "neighbour"))
        if seed.step:
            limits.append((seed.step, "neighbour"))
        expected = self._expectation(touch)
        if expected:
            limits.append((expected, "expect_tx"))
        variable = self._values.module.variables.get(base.name)
        if variable is not None and variable.size:
            limits.append((variable.size - lo, "symbol"))
        if not limits:
            limits.append((self._ends.get(base, 0) - lo, "symbol"))
        size, why = min(limits)
        return max(size, SMALLEST), why

    def _expectation(self, touch: Touch) -> int:
        """The most bytes that the mbarrier of a load is told to expect, 0 where the text does not say."""
        operand = touch.access.mbarrier
        if operand is None:
            return 0
        barrier = self._values.mbarrier_region(touch.index, operand)
        return max((n for region, n in self._expected if overlap(region, barrier) is not Overlap.NO), default=0)
