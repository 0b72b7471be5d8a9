"""Paths along which knowledge of one access spreads unfenced (recheck.py says what that means)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from ptxfence.analysis.conditions import Atom, ThreadSet, disjoint, subset
from ptxfence.analysis.effects import (
    Completion,
    Direction,
    Fence,
    FenceKind,
    Group,
    GroupKind,
    Mode,
    Order,
    Space,
    SyncKind,
)
from ptxfence.analysis.events import Event, Touch
from ptxfence.rewrite.partners import Partners

MAX_COMMITS = 16


class Phase(Enum):
    """What the walking thread is to the access."""

    FLYING = "its cp.async has not landed"
    OWN = "the thread made it"
    WARP = "a lane of the thread's warp made it"
    CARRIED = "under way to a cluster barrier's wait"
    KNOWN = "a thread of the CTA made it, and this one has synchronised with that"
    PEER = "a thread of the peer CTA made it, and this one has synchronised with that"


@dataclass(frozen=True, slots=True)
class Stand:
    """A thread about to run live event `position` of `block`. `since`: what told it; `who`: which threads these are."""

    block: int
    position: int
    phase: Phase
    since: int
    who: ThreadSet
    commits: int = 0


class Trails:
    """All uncovered trails of one access; `hits` are the async touches they come to, each with its trail.

    Accesses with one `key` have the same trails.
    """

    def __init__(self, partners: Partners, access: Touch, stops: frozenset[int]) -> None:
        self.partners = partners
        self.events = partners.events
        self.cfg = partners.events.cfg
        self.access = access
        self.stops = stops  # waits behind which the bytes are another's
        self.remote = access.region.peer or access.access.completion is Completion.MBARRIER
        self.hits: dict[int, Stand] = {}
        self.parents: dict[Stand, Stand | None] = {}
        self._queue: deque[Stand] = deque()
        self._covered_releases: frozenset[int] | None = None
        self._walk()

    @staticmethod
    def key(partners: Partners, access: Touch, stops: frozenset[int]) -> tuple[object, ...]:
        """What the trails depend on."""
        what = access.access
        return (
            partners.behind(access.index),
            what.completion,
            what.mbarrier,
            bool(what.mode & Mode.WRITE),
            access.region.peer,
            access.threads,
            stops,
        )

    def route(self, stand: Stand) -> tuple[int, ...]:
        """Indices of the events passed on the way to `stand`, the access first."""
        found: list[int] = []
        step: Stand | None = stand
        while step is not None:
            events = self.partners.live[step.block]
            if step.position < len(events):
                found.append(events[step.position].index)
            step = self.parents[step]
        return tuple(dict.fromkeys((self.access.index, *reversed(found))))

    # --- the walk --------------------------------------------------------------------------------

    def _walk(self) -> None:
        for start in self._starts():
            self._push(start, None)
        while self._queue:
            stand = self._queue.popleft()
            for following in self._steps(stand):
                self._push(following, stand)

    def _push(self, stand: Stand, parent: Stand | None) -> None:
        if stand not in self.parents:
            self.parents[stand] = parent
            self._queue.append(stand)

    def _starts(self) -> Iterator[Stand]:
        index = self.access.index
        flying = self.access.access.completion is Completion.CP_ASYNC
        phase = Phase.FLYING if flying else Phase.OWN
        block, position = self.partners.behind(index)
        yield Stand(block, position, phase, index, self.access.threads)
        if self.access.access.completion is Completion.MBARRIER and self.access.access.mbarrier is not None:
            barrier = self.events.values.mbarrier_region(index, self.access.access.mbarrier)
            for wait in self.partners.waits_on(barrier):
                yield self._told(wait, Phase.KNOWN)
                yield self._told(wait, Phase.PEER)

    def _told(self, wait: Event, phase: Phase) -> Stand:
        """A thread right behind a wait that has told it of the access."""
        block, position = self.partners.behind(wait.index)
        return Stand(block, position, phase, wait.index, self.events.values.threads(wait.index))

    def _steps(self, stand: Stand) -> Iterator[Stand]:
        events = self.partners.live[stand.block]
        if stand.position == len(events):
            yield from self._leave(stand)
            return
        event = events[stand.position]
        there = self.events.values.threads(event.index)
        guarded = self.cfg.instructions[event.index].guard is not None
        all_run_it = bool(event.guard) and subset(stand.who, event.guard)
        if (guarded and not all_run_it) or disjoint(stand.who, there):
            yield replace(stand, position=stand.position + 1, who=_outside(stand.who, event, guarded))
        if disjoint(stand.who, there):
            return
        yield from self._run(stand, event)

    def _leave(self, stand: Stand) -> Iterator[Stand]:
        who = self._renewed(stand.block, stand.who)
        for successor in self.cfg.succs[stand.block]:
            if not disjoint(who, self.partners.edge(stand.block, successor)):
                yield replace(stand, block=successor, position=0, who=self._renewed(successor, who))

    def _renewed(self, block: int, who: ThreadSet) -> ThreadSet:
        """Without the conditions that the block gives a new value."""
        bounds = self.cfg.blocks[block]
        return frozenset(a for a in who if not any(bounds.start <= d < bounds.end for d in a.defs))

    def _run(self, stand: Stand, event: Event) -> Iterator[Stand]:
        for touch in event.touches:
            if touch.is_async and self._meets(touch, stand.phase):
                self.hits.setdefault(touch.number, stand)
        if event.index in self.stops or any(self.covers(fence, stand.phase) for fence in event.effect.fences):
            return
        onward = replace(stand, position=stand.position + 1)
        if event.effect.group is not None:
            yield _landed(onward, event.effect.group, event.pending)
        elif event.effect.sync is not None and event.effect.sync.order is not Order.RELAXED:
            yield from self._synchronise(onward, event, event.effect.sync.kind)
        else:
            yield onward

    def _meets(self, operation: Touch, phase: Phase) -> bool:
        """Whether the operation can touch the very bytes: those of this CTA, or of the peer's."""
        crosses = operation.access.multicast or operation.access.both_ctas or operation.region.peer
        if phase is Phase.PEER:
            return crosses or self.remote
        return phase in (Phase.OWN, Phase.WARP, Phase.KNOWN) and (not operation.region.peer or self.remote)

    def covers(self, fence: Fence, phase: Phase) -> bool:
        """Whether a thread that runs the fence in this phase covers the access."""
        if fence.kind is not FenceKind.ASYNC or fence.direction is Direction.ACQUIRE:
            return False
        if phase in (Phase.FLYING, Phase.CARRIED):
            return False
        if fence.direction is Direction.RELEASE_READS and (
            self.access.access.mode & Mode.WRITE or phase is not Phase.OWN
        ):
            return False
        distant = self.remote is not (phase is Phase.PEER)
        return Space.CLUSTER in fence.covers or (Space.CTA in fence.covers and not distant)

    # --- synchronisation -------------------------------------------------------------------------

    def _synchronise(self, onward: Stand, event: Event, kind: SyncKind) -> Iterator[Stand]:
        if kind in (SyncKind.MBARRIER_ARRIVE, SyncKind.CP_ASYNC_ARRIVE, SyncKind.TCGEN05_COMMIT, SyncKind.BAR_ARRIVE):
            yield onward
            if onward.phase is not Phase.CARRIED and (
                onward.phase is not Phase.FLYING or kind is SyncKind.CP_ASYNC_ARRIVE
            ):
                yield from self._hand_over(onward, event)
        elif kind is SyncKind.BAR:
            yield from self._barrier(onward, event)
        elif kind is SyncKind.WARP and onward.phase is Phase.OWN:
            yield replace(onward, phase=Phase.WARP, since=event.index)
        elif kind is SyncKind.CLUSTER_ARRIVE and onward.phase is not Phase.FLYING:
            yield onward
            yield replace(onward, phase=Phase.CARRIED)
        elif kind is SyncKind.CLUSTER_WAIT and onward.phase is Phase.CARRIED:
            everyone = self.events.values.threads(event.index)
            yield replace(onward, phase=Phase.KNOWN, since=event.index, who=everyone)
            yield replace(onward, phase=Phase.PEER, since=event.index, who=everyone)
        elif not (kind is SyncKind.MBARRIER_WAIT and onward.phase is Phase.KNOWN and self._told_covered(event)):
            yield onward

    def _hand_over(self, stand: Stand, release: Event) -> Iterator[Stand]:
        for wait in self.partners.waits_for(release):
            if self._no_news(stand, wait):
                continue
            yield self._told(wait, Phase.KNOWN)
            if release.barrier is not None and release.barrier.peer:
                yield self._told(wait, Phase.PEER)

    def _barrier(self, onward: Stand, event: Event) -> Iterator[Stand]:
        if onward.phase in (Phase.FLYING, Phase.CARRIED):
            yield onward
            return
        if onward.phase is not Phase.OWN and self._helped(onward, event):
            return
        phase = Phase.PEER if onward.phase is Phase.PEER else Phase.KNOWN
        everyone = self.events.values.threads(event.index)
        yield replace(onward, phase=phase, since=event.index, who=everyone)
        yield from self._hand_over(onward, event)

    def _no_news(self, stand: Stand, wait: Event) -> bool:
        """Whether the waiting threads stood at the barrier that told the releasing one (they have their own trails)."""
        if stand.phase is not Phase.KNOWN or not self.partners.is_bar(stand.since):
            return False
        return subset(self.events.values.threads(wait.index), self.events.values.threads(stand.since))

    def _helped(self, stand: Stand, barrier: Event) -> bool:
        """Whether some thread of every warp (CTA) fenced between being told and the barrier, whatever path it took."""
        for event in self.partners.fences:
            if not any(self.covers(fence, stand.phase) for fence in event.effect.fences):
                continue
            # Conditions that the whole CTA shares do not say who helps; the paths below tell whether anyone does.
            helpers = frozenset(_varying(self.events.values.threads(event.index)))
            if not subset(helpers, frozenset(_varying(self.events.values.threads(stand.since)))):
                continue
            nobody_missing = _in_each_warp(helpers) if stand.phase is Phase.WARP else _in_each_cta(helpers)
            if nobody_missing and self.partners.always_between(stand.since, event.index, barrier.index, helpers):
                return True
        return False

    def _told_covered(self, wait: Event) -> bool:
        """Whether every thread of some role fenced the access before the release that this wait waits for."""
        if self._covered_releases is None:
            self._covered_releases = self.partners.fenced_releases(self.access, self.covers_own)
        roles = self.partners.roles_of(wait)
        return any(all(r.index in self._covered_releases for r in role) for role in roles)

    def covers_own(self, event: Event) -> bool:
        """Whether the event is a fence that covers the access for the thread that made it."""
        return any(self.covers(fence, Phase.OWN) for fence in event.effect.fences)


def _landed(stand: Stand, group: Group, pending: int | None) -> Stand:
    """The stand behind a commit or a wait of cp.async groups."""
    if stand.phase is not Phase.FLYING or group.completion is not Completion.CP_ASYNC:
        return stand
    if group.kind is GroupKind.COMMIT:
        return replace(stand, commits=min(stand.commits + 1, MAX_COMMITS))
    needed = 0 if group.kind is GroupKind.WAIT_ALL else (pending or 0) + 1
    return replace(stand, phase=Phase.OWN, commits=0) if stand.commits >= needed else stand


def _outside(who: ThreadSet, event: Event, guarded: bool) -> ThreadSet:
    """The threads that pass a guarded event without running it, where one condition tells them."""
    if not guarded or len(event.guard) != 1:
        return who
    (atom,) = event.guard
    return who | {atom._replace(negated=not atom.negated, occupied=False)}


def _varying(who: ThreadSet) -> list[Atom]:
    return [atom for atom in who if atom.varies]


def _in_each_warp(who: ThreadSet) -> bool:
    """Whether the set has a thread in every warp, for certain."""
    atoms = _varying(who)
    return len(atoms) <= 1 and all(a.key in ("elect", "lane") and a.occupied for a in atoms)


def _in_each_cta(who: ThreadSet) -> bool:
    """Whether the set has a thread in every CTA, for certain: one lane, and one range that holds whole warps."""
    atoms = _varying(who)
    lanes = [a for a in atoms if a.key in ("elect", "lane")]
    ranges = [a for a in atoms if a.key == "tid.x" and not a.negated]
    if len(lanes) + len(ranges) != len(atoms) or not all(a.occupied for a in atoms):
        return False
    if not lanes:
        return len(ranges) <= 1
    whole = all(a.lo % 32 == 0 and a.hi - a.lo >= 32 for a in ranges)
    return len(lanes) == 1 and len(ranges) <= 1 and whole
