"""Which generic accesses can meet which async operations, and the bits they get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ptxfence.analysis.effects import Access, Completion, Matrix, Mode, Proxy, Role, SyncKind
from ptxfence.analysis.events import SHARED, Event, Events, Touch, in_order
from ptxfence.analysis.region import Region
from ptxfence.analysis.regions import Overlap, overlap


@dataclass(frozen=True, slots=True)
class Operation:
    """One async touch and the accesses that may conflict with it, as bit masks.

    `near` are accesses by threads of this CTA, `far` those by a peer CTA's threads, which reach the operation
    through a cluster-scope synchronisation. An access to peer memory meets operations on the other CTA's bytes.
    `unresolved` are accesses whose bytes are unbounded: they may conflict, but accuse nobody. `certain` ones overlap
    for sure.
    """

    touch: Touch
    near: int
    far: int
    writes: int
    unresolved: int
    certain: int


class Conflicts:
    """Bits of the generic accesses that matter and the conflicts of every async touch."""

    def __init__(
        self,
        events: Events,
        tracked: Sequence[Touch] | None = None,
        operating: Sequence[Touch] | None = None,
        clash: Callable[[Access, Access], bool] | None = None,
    ) -> None:
        """By default the pairs of PF101 to PF104; other rules track other touches with the same machinery."""
        self.events = events
        self.barrier_regions = _barriers(events)
        self._clash = _conflict if clash is None else clash
        if tracked is None:
            tracked = [t for t in events.touches if t.access.proxy is Proxy.GENERIC and self._is_data(t)]
        if operating is None:
            operating = [t for t in events.touches if t.is_async and t.region.space in SHARED]
        meetings = self._meetings(tracked, operating)
        self.touches: list[Touch] = []  # by bit number
        self.via_mbarrier = 0  # bits of cp.async data whose completion an mbarrier tells
        self._mask: dict[int, tuple[int, int]] = {}
        self.reads = self.writes = self.remote = 0
        for touch in tracked:
            if touch.number in meetings:
                self._add(touch)
        self.operations = {t.number: self._operation(t, tracked, meetings) for t in operating}

    def _is_data(self, touch: Touch) -> bool:
        region = touch.region
        if touch.access.role not in (Role.DATA, Role.TMEM_SLOT, Role.MBARRIER) or region.space not in SHARED:
            return False
        return not any(barrier.holds(region) for barrier in self.barrier_regions)

    def _meetings(self, generic: Sequence[Touch], asynchronous: Sequence[Touch]) -> dict[int, set[int]]:
        """For each generic touch the async touches it overlaps; compared once per pair of distinct regions."""
        by_region: dict[Region, list[Touch]] = {}
        for touch in asynchronous:
            by_region.setdefault(touch.region, []).append(touch)
        cache: dict[Region, list[tuple[Region, Overlap]]] = {}
        self.overlaps: dict[tuple[Region, Region], Overlap] = {}
        found: dict[int, set[int]] = {}
        for touch in generic:
            if touch.region not in cache:
                pairs = [(r, overlap(touch.region, r)) for r in by_region]
                cache[touch.region] = [(r, how) for r, how in pairs if how is not Overlap.NO]
            for region, how in cache[touch.region]:
                self.overlaps[touch.region, region] = how
                for other in by_region[region]:
                    if self._clash(touch.access, other.access):
                        found.setdefault(touch.number, set()).add(other.number)
        return found

    def _add(self, touch: Touch) -> None:
        first = 1 << len(self.touches)
        self.touches.append(touch)
        second = first
        if touch.access.completion is Completion.CP_ASYNC:
            second = 1 << len(self.touches)
            self.touches.append(touch)
            self.via_mbarrier |= second
        self._mask[touch.number] = (first, second)
        both = first | second
        if touch.access.mode & Mode.READ:
            self.reads |= both
        if touch.access.mode & Mode.WRITE:
            self.writes |= both
        if touch.region.peer:
            self.remote |= both

    def mask(self, touch: Touch) -> int:
        """The bit set when the data has landed (the access has happened)."""
        return self._mask.get(touch.number, (0, 0))[0]

    def async_mask(self, touch: Touch) -> int:
        """The bit set when an mbarrier tells that the data of a cp.async has landed."""
        return self._mask.get(touch.number, (0, 0))[1]

    def _operation(self, touch: Touch, generic: Sequence[Touch], meetings: dict[int, set[int]]) -> Operation:
        hits = writes = unresolved = certain = 0
        for other in generic:
            if touch.number not in meetings.get(other.number, ()):
                continue
            bits = self.mask(other) | self.async_mask(other)
            hits |= bits
            if other.access.mode & Mode.WRITE:
                writes |= bits
            if not (other.region.bounded and touch.region.bounded):
                unresolved |= bits
            elif self._surely(other.region, touch.region):
                certain |= bits
        crosses = touch.access.multicast or touch.access.both_ctas
        local, remote = hits & ~self.remote, hits & self.remote
        near = remote if touch.region.peer else local  # what threads of this CTA did to the bytes meant
        far = local if touch.region.peer else remote  # what the peer's threads did to them
        if crosses:
            near, far = hits, hits
        return Operation(touch, near, far, writes, unresolved, certain)

    def _surely(self, a: Region, b: Region) -> bool:
        """Whether the two overlap for certain, in whichever CTA's memory they are."""
        if self.overlaps[a, b] is Overlap.CERTAIN:
            return True
        return (a.peer or b.peer) and a.exact and b.exact and (a.holds(b) or b.holds(a))

    @cached_property
    def components(self) -> dict[int, int]:
        """For each async touch the mask of all accesses in its alias class."""
        groups: list[tuple[int, set[int]]] = []
        for number, operation in self.operations.items():
            mask, members = operation.near | operation.far, {number}
            rest: list[tuple[int, set[int]]] = []
            for other_mask, others in groups:
                if other_mask & mask:
                    mask |= other_mask
                    members |= others
                else:
                    rest.append((other_mask, others))
            groups = [*rest, (mask, members)]
        return {number: mask for mask, members in groups for number in members}

    @cached_property
    def closures(self) -> dict[int, int]:
        """For each async touch the accesses that one fence for it would cover as well.

        That is its alias class as far as it conflicts with it; for a matrix operand also that of the same
        operand of the instructions that follow with no synchronisation between: the k-steps of one tile.
        """
        found = {number: self._alike(operation) for number, operation in self.operations.items()}
        for chain in self._chains():
            together = 0
            for number in chain:
                together |= found[number]
            for number in chain:
                found[number] = together
        return found

    def _alike(self, operation: Operation) -> int:
        component = self.components[operation.touch.number]
        return component if operation.touch.access.mode & Mode.WRITE else component & self.writes

    def _chains(self) -> list[list[int]]:
        """Runs of matrix operands of one kind with no synchronisation or commit between, in text order."""
        chains: list[list[int]] = []
        current: dict[tuple[str, int], list[int]] = {}
        for event in in_order(self.events):
            if event.effect.sync is not None or event.effect.group is not None:
                current = {}
            for touch in event.touches:
                if touch.number in self.operations and isinstance(touch.access.footprint, Matrix):
                    key = (event.effect.family, touch.access.operand)
                    if key not in current:
                        current[key] = []
                        chains.append(current[key])
                    current[key].append(touch.number)
        return chains

    def touches_of(self, bits: int) -> Iterable[tuple[int, Touch]]:
        """(bit, touch) for each set bit, lowest first."""
        while bits:
            low = bits & -bits
            yield low, self.touches[low.bit_length() - 1]
            bits ^= low


def _conflict(generic: Access, operation: Access) -> bool:
    """Whether the two matter to each other. Not so for the write of tcgen05.alloc into its slot: an operation that
    reads there reads what has been written since, and one that writes there is judged by the load of the address."""
    if generic.role is Role.TMEM_SLOT:
        return False
    return bool((generic.mode | operation.mode) & Mode.WRITE)


def _barriers(events: Events) -> tuple[Region, ...]:
    regions: dict[Region, None] = {}
    for block in events.by_block.values():
        for event in block:
            if event.barrier is not None and event.barrier.bounded and not _invalidated(event, events):
                regions.setdefault(event.barrier)
    return tuple(regions)


def _invalidated(event: Event, events: Events) -> bool:
    return any(
        other.effect.sync is not None
        and other.effect.sync.kind is SyncKind.MBARRIER_INVAL
        and other.barrier is not None
        and event.barrier is not None
        and overlap(other.barrier, event.barrier) is not Overlap.NO
        for block in events.by_block.values()
        for other in block
    )
