"""The data flow over the events of one kernel: which accesses no fence has covered where.

The CFG carries facts about the executing thread's own accesses; synchronisation turns them into facts about
other threads', along the barrier itself or as a message from a release to the waits that may acquire it
(handoff.py). The lattice is state.py's, thread sets are universe.py's. Joins are unions of "not covered", so
over control-flow paths a cover must hold on all; at a synchronisation the facts of the participants are
intersected, because over happens-before paths one covered chain is enough.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from ptxfence.analysis.conditions import ThreadSet
from ptxfence.analysis.conflicts import Conflicts, Operation
from ptxfence.analysis.effects import (
    Access,
    Completion,
    Direction,
    Fence,
    FenceKind,
    GroupKind,
    Order,
    Scope,
    Space,
    SyncKind,
)
from ptxfence.analysis.events import Event, Events
from ptxfence.analysis.handoff import Handoffs
from ptxfence.analysis.state import State
from ptxfence.analysis.universe import Restriction, Universe, negate

MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Message:
    """What a release hands over: unfenced own and published facts, peer facts, and what it knows of."""

    own: int
    pub: int
    peer: int
    known: int

    @property
    def covered(self) -> int:
        return self.known & ~(self.own | self.pub | self.peer)


@dataclass(frozen=True, slots=True)
class Hazard:
    """`accesses` (bits) reach `operation` unfenced; `unsynchronised` ones reach it with no synchronisation."""

    operation: Operation
    accesses: int
    unsynchronised: int
    far: int


@dataclass(slots=True)
class Step:
    """One event (or a redefinition of predicates), ready to run."""

    index: int
    event: Event | None
    inside: Restriction | None = None
    outside: Restriction | None = None
    guarded: bool = False
    members: tuple[int, ...] = ()
    cta: tuple[tuple[int, ...], ...] = ()
    warp: tuple[tuple[int, ...], ...] = ()
    redefines: tuple[int, ...] = ()
    staled: int = 0


class Flow:
    """Runs to the fixpoint on construction. `tick` is called now and then and may raise to stop the work."""

    def __init__(
        self, events: Events, conflicts: Conflicts, handoffs: Handoffs, tick: Callable[[], None] = lambda: None
    ) -> None:
        self.events = events
        self.conflicts = conflicts
        self.handoffs = handoffs
        self.cfg = events.cfg
        self.threads = events.values.threads
        self.universe = Universe(self._wanted())
        self._accessors = self._accessor_masks()
        self._depth = self._group_depth()
        self.steps: dict[int, list[Step]] = {b: self._steps(b) for b in self.cfg.order}
        self._edges: dict[tuple[int, int], Restriction | None] = {}
        self.messages: dict[int, Message] = {}
        self.inputs: dict[int, State] = {}
        self._tick = tick
        self._run()

    # --- preparation ---------------------------------------------------------------------------

    def _wanted(self) -> list[ThreadSet]:
        found: list[ThreadSet] = []
        for block in self.events.by_block.values():
            for event in block:
                if any(f.kind is FenceKind.ASYNC for f in event.effect.fences):
                    found.append(self.threads(event.index))
        for block in self.events.by_block.values():
            for event in block:
                sync = event.effect.sync
                operates = any(touch.number in self.conflicts.operations for touch in event.touches)
                if operates or (sync is not None and sync.kind is SyncKind.MBARRIER_WAIT):
                    found.append(self.threads(event.index))
        return found

    def _accessor_masks(self) -> tuple[tuple[int, ThreadSet], ...]:
        masks: dict[ThreadSet, int] = {}
        for number, touch in enumerate(self.conflicts.touches):
            masks[touch.threads] = masks.get(touch.threads, 0) | 1 << number
        return tuple((mask, threads) for threads, mask in masks.items() if threads)

    def _group_depth(self) -> int:
        pending = [
            e.pending or 0
            for block in self.events.by_block.values()
            for e in block
            if e.effect.group is not None and e.effect.group.completion is Completion.CP_ASYNC
        ]
        return min(max(pending, default=0), MAX_DEPTH) + 2

    def _steps(self, block: int) -> list[Step]:
        steps = [self._step(event) for event in self.events.by_block[block]]
        bounds = self.cfg.blocks[block]
        stale: dict[int, int] = {}
        for mask, threads in self._accessors:
            for definition in {d for atom in threads for d in atom.defs}:
                stale[definition] = stale.get(definition, 0) | mask
        for definition in self.universe.resets.keys() | stale.keys():
            if bounds.start <= definition < bounds.end:
                redefines = self.universe.resets.get(definition, ())
                steps.append(Step(definition, None, redefines=redefines, staled=stale.get(definition, 0)))
        steps.sort(key=lambda step: (step.index, step.event is not None))
        return steps

    def _step(self, event: Event) -> Step:
        step = Step(event.index, event)
        threads = self.threads(event.index)
        if event.guard:
            step.guarded = True
            step.inside = self.universe.restriction(threads, event.guard, self._accessors)
            around = (threads - event.guard) | negate(event.guard)
            step.outside = self.universe.restriction(around, negate(event.guard), self._accessors)
        elif self.cfg.instructions[event.index].guard:
            step.guarded = True
        step.members = self.universe.members(threads)
        if event.effect.sync is not None:
            step.cta = self.universe.helpers(threads, warp=False)
            step.warp = self.universe.helpers(threads, warp=True)
        return step

    # --- fixpoint ------------------------------------------------------------------------------

    def _run(self) -> None:
        if not self.cfg.order:
            return
        rank = self.cfg.rank
        self.inputs[0] = State(self.universe.size, self._depth)
        queue = [(0, 0)]
        queued = {0}
        while queue:
            self._tick()
            _, block = heapq.heappop(queue)
            queued.discard(block)
            touched = self._flow_block(block)
            for other in touched:
                if other not in queued and other in self.inputs:
                    queued.add(other)
                    heapq.heappush(queue, (rank[other], other))

    def _flow_block(self, block: int) -> set[int]:
        state = self.inputs[block].copy()
        again: set[int] = set()
        for step in self.steps[block]:
            if self.apply(step, state, None):
                again.update(self.cfg.block_of(i) for i in self.handoffs.listeners.get(step.index, ()))
        for successor in self.cfg.succs[block]:
            out = state
            restriction = self._edge(block, successor)
            if restriction is not None:
                out = state.copy()
                restrict(out, restriction)
            known = self.inputs.get(successor)
            if known is None:
                self.inputs[successor] = out.copy()
                again.add(successor)
            elif known.join(out):
                again.add(successor)
        return again

    def _edge(self, block: int, successor: int) -> Restriction | None:
        key = (block, successor)
        if key not in self._edges:
            learned = self.events.values.edge(block, successor)
            last = self.cfg.blocks[block].end - 1
            around = self.threads(last) - self.events.values.guard(last) if learned else learned
            self._edges[key] = self.universe.restriction(around | learned, learned, self._accessors)
        return self._edges[key]

    def hazards(self, report: Callable[[Hazard], None]) -> None:
        """Passes every hazard of the fixpoint to `report`, in program order."""
        for block in sorted(self.inputs):
            state = self.inputs[block].copy()
            for step in self.steps[block]:
                self.apply(step, state, report)

    # --- transfer ------------------------------------------------------------------------------

    def apply(self, step: Step, state: State, report: Callable[[Hazard], None] | None) -> bool:
        """Runs `step` on `state` in place; whether the message of a release changed."""
        if step.event is None:
            self._redefine(step, state)
            return False
        if not step.guarded:
            return self._execute(step, step.event, state, report)
        skipped = state.copy()
        if step.outside is not None:
            restrict(skipped, step.outside)
        if step.inside is not None:
            restrict(state, step.inside)
        changed = self._execute(step, step.event, state, report)
        state.join(skipped)
        return changed

    def _redefine(self, step: Step, state: State) -> None:
        for i in step.redefines:
            for facts in (state.own, state.warp, state.pub, state.peer):
                facts[i] = facts[0]
        state.stale |= step.staled & (state.own[0] | state.local)

    def _execute(self, step: Step, event: Event, state: State, report: Callable[[Hazard], None] | None) -> bool:
        changed = False
        covered = 0
        for touch in event.touches:
            operation = self.conflicts.operations.get(touch.number)
            if operation is not None:
                covered |= self._operate(operation, state, report)
        if covered:
            for facts in (state.own, state.warp, state.pub, state.peer):
                facts[:] = [bits & ~covered for bits in facts]
        for touch in event.touches:
            bits = self.conflicts.mask(touch)
            if bits:
                self._access(step, touch.access, bits, state)
        for fence in event.effect.fences:
            self._fence(fence, state)
        if event.effect.group is not None:
            self._group(step, event, state)
        if event.effect.sync is not None:
            changed = self._synchronise(step, event, state)
        return changed

    def _access(self, step: Step, access: Access, bits: int, state: State) -> None:
        if access.completion is Completion.CP_ASYNC:
            state.groups[0] |= bits
            return
        make(state, bits, step.members)

    def _operate(self, operation: Operation, state: State, report: Callable[[Hazard], None] | None) -> int:
        """Reports what reaches the operation; the facts that a fence for it would cover too."""
        near = (state.own[0] | state.warp[0] | state.pub[0]) & operation.near
        far = state.peer[0] & operation.far
        hits = near | far
        loose = state.local & operation.near & ~hits
        if report is not None and (hits or loose):
            report(Hazard(operation, hits, loose, far & ~near))
        return hits | self.conflicts.closures[operation.touch.number] if hits else 0

    def _fence(self, fence: Fence, state: State) -> None:
        if fence.kind is not FenceKind.ASYNC or fence.direction is Direction.ACQUIRE:
            return
        cta, cluster = Space.CTA in fence.covers, Space.CLUSTER in fence.covers
        if not (cta or cluster):
            return
        remote = self.conflicts.remote
        near = -1 if cluster else ~remote
        if fence.direction is Direction.RELEASE_READS:
            keep = ~(near & self.conflicts.reads & ~self.conflicts.writes)
            state.own[:] = [bits & keep for bits in state.own]
            return
        far = -1 if cluster else remote
        for facts, cleared in ((state.own, near), (state.warp, near), (state.pub, near), (state.peer, far)):
            facts[:] = [bits & ~cleared for bits in facts]

    def _group(self, step: Step, event: Event, state: State) -> None:
        group = event.effect.group
        assert group is not None
        if group.completion is not Completion.CP_ASYNC:
            return
        if group.kind is GroupKind.COMMIT:
            top = len(state.groups) - 1
            state.groups[top] |= state.groups[top - 1]
            state.groups[1:top] = state.groups[0 : top - 1]
            state.groups[0] = 0
            return
        first = 0 if group.kind is GroupKind.WAIT_ALL else (event.pending or 0) + 1
        landed = 0
        for k in range(min(first, len(state.groups)), len(state.groups)):
            landed |= state.groups[k]
            state.groups[k] = 0
        make(state, landed, step.members)

    def _synchronise(self, step: Step, event: Event, state: State) -> bool:
        sync = event.effect.sync
        assert sync is not None
        kind = sync.kind
        if kind is SyncKind.WARP:
            self._publish_warp(step, state)
        elif kind is SyncKind.BAR:
            changed = self._send(step, event, state)
            self._publish_cta(step, state)
            self._receive(step, event, state)
            return changed
        elif kind is SyncKind.MBARRIER_WAIT:
            if sync.order is not Order.RELAXED:
                self._receive(step, event, state)
        elif kind in (
            SyncKind.BAR_ARRIVE,
            SyncKind.MBARRIER_ARRIVE,
            SyncKind.CP_ASYNC_ARRIVE,
            SyncKind.TCGEN05_COMMIT,
        ):
            changed = sync.order is not Order.RELAXED and self._send(step, event, state)
            state.local = state.unjoined = 0
            return changed
        elif kind is SyncKind.CLUSTER_ARRIVE and sync.order is not Order.RELAXED:
            self._cluster_arrive(step, state)
        elif kind is SyncKind.CLUSTER_WAIT and sync.order is not Order.RELAXED:
            self._cluster_wait(step, state)
        return False

    def _publish_warp(self, step: Step, state: State) -> None:
        merged = [state.own[self.universe.uniform_index[g]] | meet(state.warp, step.warp[g]) for g in step.members]
        for g, bits in zip(step.members, merged, strict=True):
            state.warp[g] = bits
        state.own[:] = [0] * len(state.own)
        state.unjoined = 0

    def _publish_cta(self, step: Step, state: State) -> None:
        merged = [self._combined(step, state, g) for g in step.members]
        for g, bits in zip(step.members, merged, strict=True):
            state.pub[g] = bits
        state.own[:] = [0] * len(state.own)
        state.warp[:] = [0] * len(state.warp)
        state.local = state.unjoined = 0

    def _combined(self, step: Step, state: State, g: int) -> int:
        own = state.own[self.universe.uniform_index[g]]
        return own | meet(state.warp, step.warp[g]) | meet(state.pub, step.cta[g])

    def _send(self, step: Step, event: Event, state: State) -> bool:
        """Leaves the message of a release; whether it differs from the last one."""
        own = state.own[0] | meet(state.warp, step.warp[0])
        sync = event.effect.sync
        assert sync is not None
        known = state.known
        if sync.kind is SyncKind.CP_ASYNC_ARRIVE:
            flying = 0
            for bits in state.groups:
                flying |= bits
            own |= flying << 1
            known |= flying << 1
        message = Message(own, meet(state.pub, step.cta[0]), state.peer[0], known)
        if self.messages.get(event.index) == message:
            return False
        old = self.messages.get(event.index)
        if old is not None:
            message = Message(
                old.own | message.own, old.pub | message.pub, old.peer | message.peer, old.known & message.known
            )
        self.messages[event.index] = message
        return message != old

    def _receive(self, step: Step, event: Event, state: State) -> None:
        waiter = self.handoffs.waiters.get(event.index)
        if waiter is None:
            return
        own = pub = peer = covered = known = 0
        for group in waiter.groups:
            group_covered = group_known = -1
            for release in group:
                message = self.messages.get(release.index)
                if message is None:
                    continue
                crosses = release.barrier is not None and release.barrier.peer
                own |= message.own
                pub |= 0 if release.index in waiter.near else message.pub
                peer |= message.peer | (message.own | message.pub if crosses else 0)
                group_covered &= message.covered
                group_known &= message.known
            covered |= group_covered if group_covered != -1 else 0
            known |= group_known if group_known != -1 else 0
        for g in step.members:
            state.pub[g] = own | ((state.pub[g] | pub) & ~covered)
            state.peer[g] = peer | state.peer[g]
        state.known |= known

    def _cluster_arrive(self, step: Step, state: State) -> None:
        state.carry = self._combined(step, state, 0) | state.peer[0]
        state.absorbed = state.own[0] | state.warp[0] | state.local

    def _cluster_wait(self, step: Step, state: State) -> None:
        carry, keep = state.carry, ~state.absorbed
        for g in step.members:
            state.pub[g] = carry | meet(state.pub, step.cta[g])
            state.peer[g] |= carry
        state.own[:] = [bits & keep for bits in state.own]
        state.warp[:] = [bits & keep for bits in state.warp]
        state.local &= keep
        state.unjoined &= keep
        state.carry = state.absorbed = 0


def make(state: State, bits: int, members: tuple[int, ...]) -> None:
    """The executing thread makes accesses `bits`, which are new, unpublished and not fenced."""
    if not bits:
        return
    for i in members:
        state.own[i] |= bits
    state.known |= bits
    state.local |= bits
    state.unjoined |= bits
    state.stale &= ~bits
    state.absorbed &= ~bits


def meet(facts: list[int], sets: tuple[int, ...]) -> int:
    """The facts that hold for every thread set of `sets`."""
    result = -1
    for i in sets:
        result &= facts[i]
    return result if sets else facts[0]


def restrict(state: State, by: Restriction) -> None:
    """Keeps what is true on an edge (see universe.Restriction)."""
    for facts in (state.own, state.warp, state.pub, state.peer):
        for i in by.unreached:
            facts[i] = 0
        if len(by.inside) > 1:
            bits = meet(facts, by.inside)
            for i in by.inside:
                facts[i] = bits
    if by.own_drop:
        keep = ~(by.own_drop & ~state.stale)
        state.own[:] = [bits & keep for bits in state.own]
        state.local &= keep
        state.unjoined &= keep
    if by.warp_drop:
        keep = ~(by.warp_drop & ~state.stale)
        state.warp[:] = [bits & keep for bits in state.warp]


__all__ = ["Flow", "Hazard", "Message", "Scope", "Step"]
