"""Fences that a proven kernel does not need as they are: redundant, wider than needed, inside a loop for nothing.

Each answer is a proof by trial: the flow runs again with the fence left out (narrowed, moved in front of the loop),
and the kernel must come out as clean as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ptxfence.analysis.cfg import Loop
from ptxfence.analysis.effects import Direction, Fence, FenceKind, Proxy, Space, SyncKind
from ptxfence.analysis.events import Event
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.paths import Paths
from ptxfence.analysis.state import State
from ptxfence.analysis.transfer import Changes, Hazard

MOST_FENCES = 48
"""Kernels with more fences get no notes from `check`: each costs up to three runs of the flow."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a fence of the text is for, `event` its first copy where calls are substituted. `needed` are accesses (bits)
    that would be unfenced without it; `global_memory`: it may serve accesses to global memory, which no proof here
    speaks about."""

    event: Event
    fence: Fence
    needed: int
    redundant: bool
    over_wide: bool
    hoistable: bool
    global_memory: bool
    issuer_side: bool


@dataclass(frozen=True, slots=True)
class Copies:
    """One fence of the text: the events that it is, one a call site where its function is called."""

    fence: Fence
    events: list[Event]

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(event.index for event in self.events)


class Redundancy:
    """Answers for the fences of one kernel whose flow is `flow`."""

    def __init__(self, flow: Flow, baseline: Mapping[int, int] | None = None) -> None:
        """`baseline`: what reaches each async touch unfenced, where the caller knows."""
        self.flow = flow
        self.baseline = verdicts(flow) if baseline is None else baseline
        self._dropped: set[int] = set()

    @cached_property
    def fences(self) -> list[Copies]:
        """The generic-async proxy fences of the text in its order, each with its copies at the call sites.

        The acquire half is left out: it covers nothing by itself, and the pair is the manual's own (A.3).
        """
        found: dict[int, Copies] = {}
        for event in self.flow.events.ordered:
            for fence in event.effect.fences:
                if fence.kind is FenceKind.ASYNC and fence.direction is not Direction.ACQUIRE:
                    start = self.flow.cfg.instructions[event.index].start
                    found.setdefault(start, Copies(fence, [])).events.append(event)
        return list(found.values())

    def uses(self) -> Iterator[Use]:
        """Every fence with its use, last one first: of two equal fences the later one is redundant."""
        for copies in reversed(self.fences):
            yield self._use(copies)

    def remarkable(self) -> Iterator[Use]:
        """As `uses`, but without a trial where the need is plain: then `needed` is what is plain, not all of it."""
        for copies in reversed(self.fences):
            needed = next((need for event in copies.events if (need := self._plain_need(event))), 0)
            yield self._judged(copies, needed) if needed else self._use(copies)

    def _use(self, copies: Copies) -> Use:
        without = verdicts(self.flow.trial(Changes(without=frozenset((*self._dropped, *copies.indices)))))
        needed = 0
        for number, bits in without.items():
            needed |= bits & ~self.baseline.get(number, 0)
        return self._judged(copies, needed)

    def _judged(self, copies: Copies, needed: int) -> Use:
        global_memory = Space.GLOBAL in copies.fence.covers and self._serves_global()
        redundant = not needed and not global_memory
        if redundant:
            self._dropped.update(copies.indices)
        return Use(
            event=copies.events[0],
            fence=copies.fence,
            needed=needed,
            redundant=redundant,
            over_wide=not redundant and not global_memory and self._over_wide(copies),
            hoistable=not redundant and self._hoistable(copies, needed),
            global_memory=global_memory,
            issuer_side=bool(needed) and all(self._issuer_side(event, needed) for event in copies.events),
        )

    def _plain_need(self, event: Event) -> int:
        """Accesses that wait at the fence and come to an operation with no other fence (nor, for those of other
        threads, any message that could tell of one) on the way. Zero says nothing."""
        state = self._before(event.index)
        mine = state.own[0] | state.warp[0]
        others = tuple(index for index in self._indices if index != event.index)
        for operation in self.flow.conflicts.operations.values():
            target = operation.touch.index
            if mine & operation.near and self._paths.reaches(event.index, target, others):
                return mine & operation.near
            if state.pub[0] & operation.near and self._paths.reaches(event.index, target, self._marks, leap=False):
                return state.pub[0] & operation.near
        return 0

    @cached_property
    def _indices(self) -> tuple[int, ...]:
        return tuple(index for copies in self.fences for index in copies.indices)

    @cached_property
    def _paths(self) -> Paths:
        return Paths(self.flow.cfg, self.flow.handoffs)

    @cached_property
    def _marks(self) -> frozenset[int]:
        """Fences, and waits that receive messages."""
        return frozenset((*self.flow.handoffs.waiters, *self._indices))

    def _before(self, index: int) -> State:
        """The facts right before an instruction."""
        block = self.flow.cfg.block_of(index)
        state = self.flow.inputs.get(block)
        state = State(self.flow.program.universe.size, self.flow.program.depth) if state is None else state.copy()
        for step in self.flow.steps[block]:
            if step.index == index and step.event is not None:
                break
            self.flow.apply(step, state)
        return state

    def _same(self, changes: Changes) -> bool:
        return all(not bits & ~self.baseline.get(n, 0) for n, bits in verdicts(self.flow.trial(changes)).items())

    def _over_wide(self, copies: Copies) -> bool:
        if Space.CLUSTER not in copies.fence.covers or copies.fence.direction is not Direction.BOTH:
            return False
        return self._same(Changes(without=frozenset(self._dropped), narrowed=frozenset(copies.indices)))

    def _hoistable(self, copies: Copies, needed: int) -> bool:
        cfg = self.flow.cfg
        moved: set[tuple[int, int, int]] = set()
        for index in copies.indices:
            numbers = cfg.loops_of.get(cfg.block_of(index), ())
            if not numbers or self._waits_inside(cfg.loops[numbers[-1]]):
                return False
            loop = cfg.loops[numbers[-1]]
            makers = (touch.index for _, touch in self.flow.conflicts.touches_of(needed))
            if any(cfg.block_of(maker) in loop.blocks for maker in makers):
                return False
            moved.update((index, p, loop.header) for p in cfg.preds[loop.header] if p not in loop.blocks)
        return self._same(Changes(without=frozenset((*self._dropped, *copies.indices)), moved=frozenset(moved)))

    def _waits_inside(self, loop: Loop) -> bool:
        """Whether the loop receives from other roles: what it polls for is never outside."""
        for block in loop.blocks:
            for event in self.flow.events.by_block.get(block, ()):
                sync = event.effect.sync
                waits = sync is not None and sync.kind is SyncKind.MBARRIER_WAIT
                if waits and event.index in self.flow.handoffs.waiters:
                    return True
        return False

    def _issuer_side(self, event: Event, needed: int) -> bool:
        """Whether the fence covers only what others had handed over before (behind the synchronisation)."""
        state = self._before(event.index)
        return not (state.own[0] | state.warp[0]) & needed

    def _serves_global(self) -> bool:
        """Whether generic and async accesses to global memory may stand on the two sides of the fence."""
        kinds = [lookup(i.opcode) for i in self.flow.cfg.instructions]
        if any(k.sync is not None and k.sync.kind in (SyncKind.GRID_LAUNCH, SyncKind.GRID_WAIT) for k in kinds):
            return True
        for what in kinds:
            for access in what.accesses:
                if access.space is Space.GLOBAL and access.proxy in (Proxy.GENERIC, Proxy.ASYNC):
                    return True
                if access.space is Space.TENSOR or (access.space is Space.ANY and access.proxy is Proxy.GENERIC):
                    return True
        return False


def verdicts(flow: Flow) -> dict[int, int]:
    """For each async touch the accesses that reach it unfenced."""
    hazards: list[Hazard] = []
    flow.hazards(hazards.append)
    return reaching(hazards)


def reaching(hazards: Iterable[Hazard]) -> dict[int, int]:
    """The accesses of hazards by async touch."""
    found: dict[int, int] = {}
    for hazard in hazards:
        number = hazard.operation.touch.number
        if hazard.accesses:
            found[number] = found.get(number, 0) | hazard.accesses
    return found
