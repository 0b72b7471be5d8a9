"""What each step does to the facts (the lattice is state.py's)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ptxfence.analysis.conflicts import Operation
from ptxfence.analysis.effects import (
    Access,
    Completion,
    Direction,
    Fence,
    FenceKind,
    GroupKind,
    Order,
    Space,
    SyncKind,
)
from ptxfence.analysis.events import Event, FlagUse
from ptxfence.analysis.handoff import Handoffs, reaches_peers, releases_widely
from ptxfence.analysis.program import Program, Step
from ptxfence.analysis.state import State
from ptxfence.analysis.updates import commit, landed, make, restrict

NARROW = frozenset((Space.CTA,))


class Message(NamedTuple):
    """What a release hands over: unfenced own and published facts, and peer facts.

    `loose` are accesses that other threads made as well, whose part is neither fenced nor ordered before the release.
    `apart` are those that whole other warps made, fenced or not, which the sender has not joined.
    """

    own: int
    pub: int
    peer: int
    loose: int = 0
    heard: int = 0
    apart: int = 0


@dataclass(frozen=True, slots=True)
class Hazard:
    """`accesses` (bits) reach `operation` unfenced; `unsynchronised` ones reach it with no synchronisation.

    `far` are those of the former that only a peer CTA's threads made. `loose` ones were handed over by a thread that
    had not waited for the others who made them. `bare` are those of the last two that not everybody fenced.
    `unheard` are accesses of which the issuer knows nothing here, whether they come earlier, later or never. `alone`
    are those of `accesses` that the issuing thread has made itself and joined with no other's. `flying` are copies
    whose end nothing has told of.
    """

    operation: Operation
    accesses: int
    unsynchronised: int
    far: int
    loose: int = 0
    bare: int = 0
    unheard: int = 0
    alone: int = 0
    flying: int = 0


@dataclass(frozen=True, slots=True)
class Changes:
    """What a trial run takes to be different from the text.

    `without` are fences (by instruction) left out, `narrowed` those limited to `.shared::cta`, `moved` are
    (fence, source block, target block): the fence runs on that edge as well. `open`: what is reported is not
    taken as fenced from there on. `announced` are accesses that every wait at the cluster barrier tells of.
    """

    without: frozenset[int] = frozenset()
    narrowed: frozenset[int] = frozenset()
    moved: frozenset[tuple[int, int, int]] = frozenset()
    open: bool = False
    announced: int = 0


class Transfer:
    """Runs steps; keeps the messages of releases.

    `clears`: whether a release that has an access covered tells the receiver so. `flags`: whether facts travel
    through flags in global memory (those about shared memory do not: the other thread may be in another CTA).
    `landing`: whether cp.async data counts from its wait on instead of from its issue.
    """

    clears = True
    flags = False
    landing = True

    def __init__(self, program: Program, handoffs: Handoffs, changes: Changes, given: Mapping[int, int]) -> None:
        """`given`: what each release is known to know of (knowledge.py)."""
        self.given = given
        self.program = program
        self.conflicts = program.conflicts
        self.universe = program.universe
        self.handoffs = handoffs
        self.changes = changes
        self.messages: dict[int, Message] = {}

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
        for touch in self.program.touches(event):
            operation = self.conflicts.operations.get(touch.number)
            if operation is not None:
                covered |= self._operate(operation, state, report)
        if covered:
            for facts in (state.own, state.warp, state.pub, state.peer):
                facts[:] = [bits & ~covered for bits in facts]
        for touch in self.program.touches(event):
            bits = self.conflicts.mask(touch)
            if bits:
                changed |= self.access(step, touch.access, bits, state)
        if event.effect.fences and event.index not in self.changes.without:
            before = state.own[0]
            self._order(event, step, state)
            for fence in event.effect.fences:
                self.fence(event.index, fence, state)
            state.others &= ~(before & ~state.own[0] & step.alone)
        if event.effect.group is not None:
            self.group(step, event, state)
        if event.effect.sync is not None:
            changed |= self.synchronise(step, event, state)
        if self.flags and event.flag is not None:
            changed |= self._signal(step, event, state)
        return changed

    def _signal(self, step: Step, event: Event, state: State) -> bool:
        """A strong access to a flag in global memory; a relaxed one counts with the fence beside it."""
        changed = False
        if event.flags in (FlagUse.RELEASE, FlagUse.BOTH):
            orders = {access.order for access in event.effect.accesses}
            if orders & {Order.RELEASE, Order.ACQ_REL, Order.SC}:
                changed = self._send(step, event, state)
            elif state.behind:
                changed = self._leave(event.index, Message(state.behind, 0, 0, 0, state.behind))
        if event.flags in (FlagUse.ACQUIRE, FlagUse.BOTH):
            self._receive(step, event, state)
        return changed

    def _order(self, event: Event, step: Step, state: State) -> None:
        """A thread fence that releases at cluster scope or wider stands behind the relaxed arrivals that follow."""
        if releases_widely(event):
            state.behind = self._combined(step, state, 0) | state.peer[0]

    def access(self, step: Step, access: Access, bits: int, state: State) -> bool:
        """An access of the executing thread; whether a message changed."""
        if access.completion is Completion.CP_ASYNC:
            state.groups[0] |= bits
            return False
        if access.completion is Completion.MBARRIER:  # st.async: the data lands with its own arrival
            return self._leave(step.index, Message(bits, 0, 0, 0, bits))
        make(state, bits, step.members)
        return False

    def _operate(self, operation: Operation, state: State, report: Callable[[Hazard], None] | None) -> int:
        """Reports what reaches the operation; the facts that a fence for it would cover too."""
        near = (state.own[0] | state.warp[0] | state.pub[0]) & operation.near
        far = state.peer[0] & operation.far
        hits = near | far
        local = state.local & operation.near & ~hits
        loose = (state.loose | state.apart) & operation.near & ~hits
        ordered = state.made | state.heard
        abroad = operation.far if operation.crosses else operation.far & ~operation.near
        unheard = (operation.near & ~ordered) | (abroad & ~state.afar)
        copies = self.conflicts.via_mbarrier
        # A copy that nobody waited for has not happened yet.
        unheard &= ~(copies | copies >> 1 if self.handoffs.copies else copies)
        if not self.handoffs.relaxed:
            unheard &= operation.certain
        flying = self._flying(state) & operation.near
        if report is not None and (hits or local or loose or unheard or flying):
            bare = state.others & local | loose & state.loose
            alone = state.local & hits & ~(state.warp[0] | state.pub[0])
            report(Hazard(operation, hits, local, far & ~near, loose, bare, unheard, alone, flying))
        if not hits or self.changes.open:
            return 0
        return hits | self.conflicts.closures[operation.touch.number]

    def _flying(self, state: State) -> int:
        """Copies of the executing thread that nothing tells to have landed."""
        flying = 0
        for bits in state.groups if self.landing and not self.handoffs.copies else ():
            flying |= bits
        return flying

    def fence(self, index: int, fence: Fence, state: State) -> None:
        """Clears what the fence covers."""
        if fence.kind is not FenceKind.ASYNC or fence.direction is Direction.ACQUIRE:
            return
        covers = NARROW if index in self.changes.narrowed else fence.covers
        cta, cluster = Space.CTA in covers, Space.CLUSTER in covers
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

    def group(self, step: Step, event: Event, state: State) -> None:
        """A commit or wait of cp.async groups."""
        group = event.effect.group
        assert group is not None
        if group.completion is not Completion.CP_ASYNC:
            return
        if group.kind is GroupKind.COMMIT:
            commit(state)
            return
        make(state, landed(state, event), step.members)

    def synchronise(self, step: Step, event: Event, state: State) -> bool:
        """A barrier, arrive or wait; whether the message that it leaves changed."""
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
            orders = sync.order is not Order.RELAXED or self.program.behind_fence(step)
            changed = orders and self._send(step, event, state)
            state.local = state.unjoined = 0
            return changed
        elif kind is SyncKind.CLUSTER_ARRIVE and (sync.order is not Order.RELAXED or self.program.behind_fence(step)):
            self._cluster_arrive(step, state)
        elif kind is SyncKind.CLUSTER_ARRIVE and state.behind:
            state.carry = state.behind
            state.news = state.behind
        elif kind is SyncKind.CLUSTER_WAIT and sync.order is not Order.RELAXED:
            self._cluster_wait(step, state)
        return False

    def _publish_warp(self, step: Step, state: State) -> None:
        owners = self.universe.uniform_index
        merged = [state.own[owners[g]] | state.meet(state.warp, step.warp[g]) for g in step.members]
        for g, bits in zip(step.members, merged, strict=True):
            state.warp[g] = bits
        state.own[:] = [0] * len(state.own)
        state.unjoined = state.others = 0

    def _publish_cta(self, step: Step, state: State) -> None:
        met: dict[tuple[int, ...], int] = {}
        warps = any(state.warp)
        merged: list[int] = []
        for g in step.members:
            helpers = step.cta[g]
            if helpers not in met:
                met[helpers] = state.meet(state.pub, helpers)
            bits = state.own[self.universe.uniform_index[g]] | met[helpers]
            merged.append(bits | state.meet(state.warp, step.warp[g]) if warps else bits)
        for g, bits in zip(step.members, merged, strict=True):
            state.pub[g] = bits
        state.own[:] = [0] * len(state.own)
        state.warp[:] = [0] * len(state.warp)
        state.local = state.unjoined = state.others = state.loose = state.apart = 0
        state.heard |= state.made

    def _combined(self, step: Step, state: State, g: int) -> int:
        own = state.own[self.universe.uniform_index[g]]
        return own | state.meet(state.warp, step.warp[g]) | state.meet(state.pub, step.cta[g])

    def _send(self, step: Step, event: Event, state: State) -> bool:
        """Leaves the message of a release; whether it differs from the last one."""
        own = state.own[0] | state.meet(state.warp, step.warp[0])
        sync = event.effect.sync
        if sync is not None and sync.kind is SyncKind.CP_ASYNC_ARRIVE:
            flying = 0
            for bits in state.groups:
                flying |= bits
            own |= flying << 1
        loose = state.others & ~step.alone & ~own
        heard = state.made | state.heard | own
        pub = state.meet(state.pub, step.cta[0])
        message = Message(own, pub, state.peer[0], loose, heard, state.local & step.beyond)
        return self._leave(event.index, message)

    def _leave(self, index: int, message: Message) -> bool:
        """Merges a message into what the release at `index` has left before; whether that changed it."""
        old = self.messages.get(index)
        if old is not None:
            message = Message(
                old.own | message.own,
                old.pub | message.pub,
                old.peer | message.peer,
                old.loose | message.loose,
                old.heard | message.heard,
                old.apart | message.apart,
            )
        self.messages[index] = message
        return message != old

    def _receive(self, step: Step, event: Event, state: State) -> None:
        """Takes what the releases have left.

        What they know of counts only as far as it has been shown before (`given`): roles that learn from each other
        must not vouch for each other.
        """
        waiter = self.handoffs.waiters.get(event.index)
        if waiter is None:
            return
        own = pub = peer = covered = loose = heard = afar = apart = joined = 0
        for group in waiter.groups:
            group_covered = group_known = -1
            for release in group:
                message = self.messages.get(release.index)
                group_known &= self.given.get(release.index, -1)
                if message is None:
                    continue
                crosses = release.barrier is not None and release.barrier.peer
                own |= message.own
                pub |= 0 if release.index in waiter.near else message.pub
                loose |= message.loose
                heard |= message.heard
                apart |= message.apart
                joined |= message.heard & ~message.apart
                afar |= message.heard if crosses and reaches_peers(release) else 0
                peer |= message.peer | (message.own | message.pub if crosses else 0)
                group_covered &= ~(message.own | message.pub | message.peer)
            if self.clears and not waiter.alone and group_known != -1:
                covered |= group_covered & group_known
        for g in step.members:
            state.pub[g] = own | ((state.pub[g] | pub) & ~covered)
            state.peer[g] = peer | state.peer[g]
        state.absorbed &= ~own
        state.loose |= loose
        state.apart |= apart & ~joined
        state.heard |= heard
        state.afar |= afar

    def _cluster_arrive(self, step: Step, state: State) -> None:
        """Takes along what the peers have not been told of at the last cluster barrier. Of the rest, what this CTA's
        threads have fenced since, the peer's have fenced as well."""
        told, bare = state.absorbed, self._combined(step, state, 0)
        state.carry = (bare | state.peer[0]) & ~told
        if self.program.waits_at_once(step):
            state.peer[:] = [bits & ~(told & ~bare) for bits in state.peer]
        state.news = state.made | state.heard | state.afar
        state.absorbed = -1

    def _cluster_wait(self, step: Step, state: State) -> None:
        carry, keep = state.carry, ~state.absorbed
        owners = self.universe.uniform_index
        joined = [state.own[owners[g]] | state.meet(state.warp, step.warp[g]) for g in step.members]
        for g, bits in zip(step.members, joined, strict=True):
            state.pub[g] = bits & ~keep | carry | state.meet(state.pub, step.cta[g])
            state.peer[g] |= carry
        state.own[:] = [bits & keep for bits in state.own]
        state.warp[:] = [bits & keep for bits in state.warp]
        state.local &= keep
        state.unjoined &= keep
        state.others &= keep
        state.loose &= keep
        state.apart &= keep
        state.heard |= state.news
        state.afar |= state.news
        state.carry = state.news = 0
