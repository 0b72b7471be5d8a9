"""Which generic accesses can meet which async operations, and the bits they get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ptxfence.analysis.effects import Access, Completion, Matrix, Mode, Proxy, Role
from ptxfence.analysis.events import SHARED, Events, Touch, in_order
from ptxfence.analysis.overlaps import Outline, Overlap, outline, overlap, unnamed
from ptxfence.analysis.region import Region


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
    crosses: bool = False  # it touches both CTAs' memory


NOWHERE = Outline(0, (), 1)
UNBOUNDED, POSSIBLE, CERTAIN = 1, 2, 3
"""How sure an overlap is; 0 is none."""


class _Places:
    """Numbers for distinct regions, and how they overlap, compared once."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._regions: list[Region] = []
        self._outlines: list[Outline] = []

    def of(self, region: Region) -> int:
        number = self._numbers.setdefault(unnamed(region), len(self._regions))
        if number == len(self._regions):
            self._regions.append(region)
            self._outlines.append(outline(region) if region.bounded else NOWHERE)
        return number

    def rank(self, first: int, second: int) -> int:
        a, b = self._regions[first], self._regions[second]
        how = overlap(a, b, (self._outlines[first], self._outlines[second]))
        if how is Overlap.NO:
            return 0
        if not (a.bounded and b.bounded):
            return UNBOUNDED
        apart = (a.peer or b.peer) and a.exact and b.exact and (a.holds(b) or b.holds(a))
        return CERTAIN if how is Overlap.CERTAIN or apart else POSSIBLE


class _Group:
    """Operations of one kind on one region, and the accesses that meet them."""

    __slots__ = ("access", "certain", "hits", "place", "unresolved", "writes")

    def __init__(self, access: Access, place: int) -> None:
        self.access = access
        self.place = place
        self.hits = self.writes = self.unresolved = self.certain = 0

    def add(self, bits: int, access: Access, rank: int) -> None:
        self.hits |= bits
        if access.mode & Mode.WRITE:
            self.writes |= bits
        if rank == UNBOUNDED:
            self.unresolved |= bits
        elif rank == CERTAIN:
            self.certain |= bits


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
        self.barrier_regions = events.live_barriers
        self._clash = _conflict if clash is None else clash
        if tracked is None:
            tracked = [t for t in events.touches if t.access.proxy is Proxy.GENERIC and self._is_data(t)]
        if operating is None:
            operating = [t for t in events.touches if t.is_async and t.region.space in SHARED]
        self.touches: list[Touch] = []  # by bit number
        self.via_mbarrier = 0  # bits of cp.async data whose completion an mbarrier tells
        self._mask: dict[int, tuple[int, int]] = {}
        self.reads = self.writes = self.remote = 0
        groups = self._meet(tracked, operating)
        self.operations = {t.number: self._operation(t, groups[t.number]) for t in operating}

    def _is_data(self, touch: Touch) -> bool:
        region = touch.region
        if touch.access.role not in (Role.DATA, Role.TMEM_SLOT, Role.MBARRIER) or region.space not in SHARED:
            return False
        return not any(barrier.holds(region) for barrier in self.barrier_regions)

    def _meet(self, tracked: Sequence[Touch], operating: Sequence[Touch]) -> dict[int, _Group]:
        """Gives bits to the tracked touches that meet an operation; each operation's group.

        Work is done once per pair of distinct regions, and once per kind of tracked touch and group of like operations.
        """
        places = _Places()
        groups: dict[tuple[int, Access], _Group] = {}
        by_place: dict[int, list[_Group]] = {}
        member: dict[int, _Group] = {}
        for touch in operating:
            place = places.of(touch.region)
            key = (place, touch.access)
            if key not in groups:
                groups[key] = _Group(touch.access, place)
                by_place.setdefault(place, []).append(groups[key])
            member[touch.number] = groups[key]
        near: dict[int, list[tuple[_Group, int]]] = {}
        met: dict[tuple[int, Access], list[tuple[_Group, int]]] = {}
        bits: dict[tuple[int, Access], int] = {}
        for touch in tracked:
            place = places.of(touch.region)
            kind = (place, touch.access)
            if place not in near:
                ranked = ((places.rank(place, other), found) for other, found in by_place.items())
                near[place] = [(group, rank) for rank, found in ranked if rank for group in found]
            if kind not in met:
                met[kind] = [(group, rank) for group, rank in near[place] if self._clash(touch.access, group.access)]
            if met[kind]:
                bits[kind] = bits.get(kind, 0) | self._bits(touch)
        for kind, found in bits.items():
            for group, rank in met[kind]:
                group.add(found, kind[1], rank)
        return member

    def _bits(self, touch: Touch) -> int:
        if touch.number not in self._mask:
            self._add(touch)
        first, second = self._mask[touch.number]
        return first | second

    def how(self, access: Touch, operation: Touch) -> Overlap:
        """How the bytes of the two overlap."""
        return overlap(access.region, operation.region)

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

    def _operation(self, touch: Touch, group: _Group) -> Operation:
        crosses = touch.access.multicast or touch.access.both_ctas
        local, remote = group.hits & ~self.remote, group.hits & self.remote
        near = remote if touch.region.peer else local  # what threads of this CTA did to the bytes meant
        far = local if touch.region.peer else remote  # what the peer's threads did to them
        if crosses:
            near, far = group.hits, group.hits
        return Operation(touch, near, far, group.writes, group.unresolved, group.certain, crosses)

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
