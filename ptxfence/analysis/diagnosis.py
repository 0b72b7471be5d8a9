"""Why the fence that is there does not count: the cause of a missing-fence finding (contract 2)."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from ptxfence.analysis.conditions import subset
from ptxfence.analysis.effects import Direction, Fence, FenceKind, Mode, Space, SyncKind
from ptxfence.analysis.events import Event, Touch
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.paths import Paths
from ptxfence.analysis.report import Cause
from ptxfence.analysis.state import State
from ptxfence.analysis.universe import varying

ATTEMPTS = (FenceKind.ASYNC, FenceKind.THREAD, FenceKind.ALIAS, FenceKind.TENSORMAP)


_RANKS = {cause: number for number, cause in enumerate((*tuple(Cause)[1:], Cause.NO_FENCE))}


def rank(cause: Cause) -> int:
    """Precedence of a cause: the order of contract 2; that no fence was meant is left when nothing else holds."""
    return _RANKS[cause]


@dataclass(frozen=True, slots=True)
class Sighting:
    """A fence of the kernel with what was pending when it ran (union over all paths)."""

    event: Event
    fence: Fence
    own: int
    shared: int
    flying: int


class Diagnosis:
    """Causes for the hazards of one kernel; built only when there is one."""

    def __init__(self, flow: Flow, paths: Paths) -> None:
        self.flow = flow
        self.paths = paths
        self.cfg = flow.cfg
        self.threads = flow.threads
        self._syncs = frozenset(
            step.index
            for steps in flow.steps.values()
            for step in steps
            if step.event is not None
            and step.event.effect.sync is not None
            and step.event.effect.sync.kind not in (SyncKind.MBARRIER_INIT, SyncKind.MBARRIER_INVAL)
        )
        self._known: dict[object, tuple[Cause, Sighting | None]] = {}

    @cached_property
    def _marks(self) -> list[int]:
        return sorted({seen.event.index for seen in self.sightings} | self._syncs)

    @cached_property
    def sightings(self) -> list[Sighting]:
        """Every fence that could be meant for data, with what was pending when it ran."""
        found: list[Sighting] = []
        for block in sorted(self.flow.inputs):
            state = self.flow.inputs[block].copy()
            for step in self.flow.steps[block]:
                event = step.event
                if event is not None:
                    found.extend(_sight(event, fence, state) for fence in event.effect.fences)
                self.flow.transfer.apply(step, state, None)
        return [s for s in found if s.fence.kind in ATTEMPTS and not self._for_init(s.event)]

    def _for_init(self, event: Event) -> bool:
        """Whether the fence directly follows an mbarrier.init: the older convention, no attempt at data."""
        block = self.cfg.block_of(event.index)
        previous = [s for s in self.flow.steps[block] if s.event is not None and s.index < event.index]
        last = previous[-1].event if previous else None
        return last is not None and last.effect.sync is not None and last.effect.sync.kind is SyncKind.MBARRIER_INIT

    def cause(
        self, bit: int, access: Touch, operation: Touch, space: Space = Space.CTA
    ) -> tuple[Cause, Sighting | None]:
        """The cause and the fence it speaks of, for an access to `space` that reaches `operation` unfenced."""
        key = (self._slot(access.index), self._slot(operation.index), self._signature(bit), space, _kind(access))
        if key not in self._known:
            self._known[key] = self._cause(bit, access, operation, space)
        return self._known[key]

    def _slot(self, index: int) -> tuple[int, int]:
        """Instructions with one slot stand in one block with no fence or synchronisation between."""
        return self.cfg.block_of(index), bisect_left(self._marks, index)

    def _signature(self, bit: int) -> tuple[int, ...]:
        """How every fence of the kernel meets the access."""
        return tuple(
            bool(seen.own & bit) | bool(seen.shared & bit) << 1 | bool(seen.flying & (bit | bit >> 1)) << 2
            for seen in self.sightings
        )

    def _cause(
        self, bit: int, access: Touch, operation: Touch, space: Space
    ) -> tuple[Cause, Sighting | None]:
        best: tuple[Cause, Sighting | None] = (Cause.NO_FENCE, None)
        for sighting in self.sightings:
            cause = self._judge(sighting, bit, access, operation, space)
            if cause is not None and rank(cause) < rank(best[0]):
                best = (cause, sighting)
        return best

    def _judge(self, seen: Sighting, bit: int, access: Touch, operation: Touch, space: Space) -> Cause | None:
        fence, index = seen.fence, seen.event.index
        flawed = self._flaw(fence, access, operation, space)
        between = self._between(index, access.index, operation.index)
        if flawed is not None:
            in_place = between and (seen.own | seen.shared) & bit
            return flawed if in_place else None
        if between:
            return self._misplaced(seen, bit, access, operation)
        if self._foreign(seen, bit, operation):
            return None
        if self._hoisted(index, access, operation):
            return Cause.HOISTED_OUT
        if index < access.index and (self._adjacent(index, access.index) or self._same_pass(index, access.index)):
            return Cause.FENCE_BEFORE_ACCESS
        if self._adjacent(operation.index, index):
            return Cause.FENCE_AFTER_USE
        return Cause.OFF_PATH if self._too_early(index, access.index, operation.index) else None

    def _flaw(self, fence: Fence, access: Touch, operation: Touch, space: Space) -> Cause | None:
        """What is wrong with the form of the fence, wherever it stands."""
        if fence.kind is not FenceKind.ASYNC:
            return Cause.NOT_A_PROXY_FENCE
        far = access.region.peer or operation.region.peer or operation.access.multicast or operation.access.both_ctas
        wanted = (Space.CLUSTER,) if far else (Space.CTA, Space.CLUSTER)
        if space is Space.GLOBAL:
            wanted = (Space.GLOBAL,)
        if not any(s in fence.covers for s in (Space.CTA, Space.CLUSTER, Space.GLOBAL)):
            return Cause.WRONG_SPACE
        if fence.direction is Direction.ACQUIRE:
            return Cause.WRONG_DIRECTION
        if fence.direction is Direction.RELEASE_READS and access.access.mode & Mode.WRITE:
            return Cause.WRONG_DIRECTION
        return None if any(s in fence.covers for s in wanted) else Cause.WRONG_SPACE

    def _between(self, fence: int, access: int, operation: int) -> bool:
        """Whether the fence lies on a path from the access to the operation that passes neither again."""
        ends = (access, operation)
        return self.paths.reaches(access, fence, ends) and self.paths.reaches(
            fence, operation, (access,)
        )

    def _misplaced(self, seen: Sighting, bit: int, access: Touch, operation: Touch) -> Cause | None:
        index = seen.event.index
        if seen.flying & (bit | bit >> 1):
            return Cause.BEFORE_COMPLETION
        mine, users = varying(self.threads(index)), self.threads(operation.index)
        if seen.own & bit:
            unpublished = self.paths.reaches(access.index, index, self._syncs, leap=False)
            if not unpublished:
                return Cause.OFF_PATH
            return Cause.SOME_PATHS if subset(access.threads, mine) else Cause.PARTIAL_THREADS
        if seen.shared & bit:
            return Cause.SOME_PATHS if subset(users, mine) else Cause.OFF_PATH
        return Cause.OFF_PATH

    def _foreign(self, seen: Sighting, bit: int, operation: Touch) -> bool:
        """Whether the fence has other work only: accesses of other alias classes wait for it, none of this one."""
        component = self.flow.conflicts.components[operation.number] | bit
        pending = seen.own | seen.shared
        return bool(pending & ~component) and not (pending | seen.flying) & component

    def _hoisted(self, fence: int, access: Touch, operation: Touch) -> bool:
        """Whether the fence runs before a loop that repeats the access, or the operation on what others write."""
        block = self.cfg.block_of(fence)
        for loop in self.cfg.loops:
            if block in loop.blocks or not self.cfg.dominates(block, loop.header):
                continue
            if self.cfg.block_of(access.index) in loop.blocks:
                return True
            elsewhere = not self.paths.reaches(access.index, fence, leap=False)
            if self.cfg.block_of(operation.index) in loop.blocks and elsewhere:
                return True
        return False

    def _too_early(self, fence: int, access: int, operation: int) -> bool:
        """Whether a role that does not make the access fences before it has waited for those who do."""
        return not self.paths.reaches(fence, access, leap=False) and self.paths.reaches(fence, operation, (access,))

    def _same_pass(self, fence: int, access: int) -> bool:
        """Whether the fence comes before the access in each pass of the loop that runs both."""
        a, b = self.cfg.block_of(fence), self.cfg.block_of(access)
        loops = self.cfg.loops_of
        return bool(loops.get(a)) and loops.get(a) == loops.get(b) and self.cfg.dominates(a, b)

    def _adjacent(self, source: int, target: int) -> bool:
        """Whether the same thread comes from one to the other with no synchronisation between."""
        return self.paths.reaches(source, target, self._syncs, leap=False)


def _kind(access: Touch) -> object:
    return access.access.mode, access.access.completion, access.region.peer, access.threads


def _sight(event: Event, fence: Fence, state: State) -> Sighting:
    flying = 0
    for bits in state.groups:
        flying |= bits
    shared = state.warp[0] | state.pub[0] | state.peer[0]
    return Sighting(event, fence, state.own[0], shared, flying)
