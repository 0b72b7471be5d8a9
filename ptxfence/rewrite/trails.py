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
WARP, TID = 32, "tid.x"


class Phase(Enum):
    """What the walking thread is to the access."""

    FLYING = "its cp.async has not landed"
    OWN = "the thread made it"
    WARP = "a lane of the thread's warp made it"
    CARRIED = "under way to a cluster barrier's wait"
    KNOWN = "a thread of the CTA made it, and this one has synchronised with that"
    PEER = "a thread of the peer CTA made it, and this one has synchronised with that"


ABROAD = (Phase.CARRIED, Phase.PEER)


@dataclass(frozen=True, slots=True)
class Stand:
    """A thread about to run live event `position` of `block`. `since`: what told it; `who`: which threads these are.

    `refused`: thread sets that it is not in, where no single condition of `who` can say so. `spread`: a cluster barrier
    has told everybody, each of whom goes on by himself.
    """

    block: int
    position: int
    phase: Phase
    since: int
    who: ThreadSet
    commits: int = 0
    refused: frozenset[ThreadSet] = frozenset()
    spread: bool = False

    def moved(self) -> Stand:
        """Behind the event."""
        return replace(self, position=self.position + 1)

    def handed(self, phase: Phase, since: int, who: ThreadSet) -> Stand:
        """Another thread, one of `who`, that synchronisation `since` has told."""
        return replace(self, phase=phase, since=since, who=who, refused=frozenset())


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
        self._lasting = frozenset(a for a in access.threads if not a.varies and not a.defs)  # true of the whole CTA
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
        none_runs_it = self._apart(stand.who, there, stand) or any(subset(there, r) for r in stand.refused)
        if (guarded and not all_run_it) or none_runs_it:
            yield _past(stand, event, guarded)
        if not none_runs_it:
            yield from self._run(stand, event)

    def _leave(self, stand: Stand) -> Iterator[Stand]:
        who = frozenset(a for a in stand.who if not self._renewed(stand.block, a))
        refused = frozenset(r for r in stand.refused if not any(self._renewed(stand.block, a) for a in r))
        for successor in self.cfg.succs[stand.block]:
            edge = self.partners.edge(stand.block, successor)
            if self._apart(who, edge, stand) or any(subset(edge, r) for r in refused):
                continue
            kept = frozenset(a for a in who if not self._renewed(successor, a))
            still = frozenset(r for r in refused if not any(self._renewed(successor, a) for a in r))
            yield replace(stand, block=successor, position=0, who=kept, refused=still)

    def _apart(self, who: ThreadSet, there: ThreadSet, stand: Stand) -> bool:
        """Whether none of `who` is among `there`, or nobody is in a CTA whose threads have made the access."""
        return disjoint(who, there) or (stand.phase not in ABROAD and disjoint(self._lasting, there))

    def _renewed(self, block: int, atom: Atom) -> bool:
        """Whether the block gives the condition a new value."""
        bounds = self.cfg.blocks[block]
        return any(bounds.start <= d < bounds.end for d in atom.defs)

    def _run(self, stand: Stand, event: Event) -> Iterator[Stand]:
        for touch in event.touches:
            if touch.is_async and self._meets(touch, stand.phase):
                self.hits.setdefault(touch.number, stand)
        if event.index in self.stops or any(self.covers(fence, stand.phase) for fence in event.effect.fences):
            return
        onward = stand.moved()
        if event.effect.group is not None:
            yield _landed(onward, event.effect.group, event.pending)
        elif event.effect.sync is not None and event.effect.sync.order is not Order.RELAXED:
            yield from self._synchronise(onward, event, event.effect.sync.kind)
        else:
            arrive = self.partners.released_by(event)
            yield onward if arrive is None else replace(onward, spread=onward.spread or _of_cluster(arrive))
            if arrive is not None:
                yield from self._release(onward, arrive)

    def _release(self, stand: Stand, arrive: Event) -> Iterator[Stand]:
        """What a thread fence releases: the relaxed arrive behind it hands over what is so at the fence."""
        if stand.phase in (Phase.FLYING, Phase.CARRIED):
            return
        if not _of_cluster(arrive):
            yield from self._hand_over(stand, arrive)
        elif not stand.spread:
            yield replace(stand, phase=Phase.CARRIED)

    def _meets(self, operation: Touch, phase: Phase) -> bool:
        """Whether the operation can touch the very bytes: those of this CTA, or of the peer's."""
        if phase in (Phase.FLYING, Phase.CARRIED):
            return False
        crosses = operation.access.multicast or operation.access.both_ctas
        distant = self.remote is not (phase is Phase.PEER)
        return crosses or operation.region.peer is distant

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
            yield onward.handed(Phase.WARP, event.index, _warps(onward.who))
        elif kind is SyncKind.CLUSTER_ARRIVE and onward.phase is not Phase.FLYING:
            yield replace(onward, spread=True)
            if not onward.spread:
                yield replace(onward, phase=Phase.CARRIED)
        elif kind is SyncKind.CLUSTER_WAIT and onward.phase is Phase.CARRIED:
            everyone, told = self.events.values.threads(event.index), replace(onward, spread=True)
            yield told.handed(Phase.KNOWN, event.index, everyone)
            yield told.handed(Phase.PEER, event.index, everyone)
        elif kind is SyncKind.CLUSTER_WAIT and onward.spread:
            peers = replace(onward, phase=Phase.KNOWN)  # what this CTA's threads fence, the peer's fence as well
            if onward.phase in (Phase.KNOWN, Phase.PEER) and not (
                self._helped(onward, event) or self._helped(peers, event)
            ):
                yield onward
        elif not (kind is SyncKind.MBARRIER_WAIT and onward.phase is Phase.KNOWN and self._told_covered(event)):
            yield onward

    def _hand_over(self, stand: Stand, release: Event) -> Iterator[Stand]:
        crosses = release.barrier is not None and release.barrier.peer
        here = Phase.PEER if stand.phase is Phase.PEER else Phase.KNOWN
        for wait in self.partners.waits_for(release):
            if not self._no_news(stand, wait):
                for phase in (Phase.KNOWN, Phase.PEER) if crosses else (here,):
                    yield self._told(wait, phase)

    def _barrier(self, onward: Stand, event: Event) -> Iterator[Stand]:
        if onward.phase in (Phase.FLYING, Phase.CARRIED):
            yield onward
            return
        if onward.phase is not Phase.OWN and self._helped(onward, event):
            return
        phase = Phase.PEER if onward.phase is Phase.PEER else Phase.KNOWN
        everyone = self.events.values.threads(event.index)
        yield onward.handed(phase, event.index, everyone)
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
            if any(not atom.varies for atom in event.guard):
                continue  # in some CTAs nobody runs it
            # Other conditions that a whole CTA shares do not say who helps; the paths below tell whether anyone does.
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


def _past(stand: Stand, event: Event, guarded: bool) -> Stand:
    """A thread that passes an event without running it: the guard does not hold for it."""
    if not guarded or not event.guard:
        return stand.moved()
    if len(event.guard) > 1:
        return replace(stand.moved(), refused=stand.refused | {event.guard})
    (atom,) = event.guard
    return replace(stand.moved(), who=stand.who | {atom._replace(negated=not atom.negated, occupied=False)})


def _of_cluster(arrive: Event) -> bool:
    return arrive.effect.sync is not None and arrive.effect.sync.kind is SyncKind.CLUSTER_ARRIVE


def _warps(who: ThreadSet) -> ThreadSet:
    """The threads of all warps that have one of `who`."""
    found: set[Atom] = set()
    for atom in who:
        lo, hi = atom.lo // WARP * WARP, -(-atom.hi // WARP) * WARP
        if not atom.varies or (atom.key == TID and (lo, hi) == (atom.lo, atom.hi)):
            found.add(atom)
        elif atom.key == TID and not atom.negated:
            found.add(atom._replace(lo=lo, hi=hi))
    return frozenset(found)


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
    ranges = [a for a in atoms if a.key == TID and not a.negated]
    if len(lanes) + len(ranges) != len(atoms) or not all(a.occupied for a in atoms):
        return False
    if not lanes:
        return len(ranges) <= 1
    whole = all(a.lo % WARP == 0 and a.hi - a.lo >= WARP for a in ranges)
    return len(lanes) == 1 and len(ranges) <= 1 and whole
