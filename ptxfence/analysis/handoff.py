"""Which release may be acquired by which wait (PTX ISA 8.9: synchronizes-with through barriers and mbarriers).

Two instructions can pair when they name the same barrier and different threads can execute them, or the same
threads do and the release comes before that wait with no other wait on the barrier between. A pairing through
an unresolved barrier is uncertain: it neither clears nor accuses.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.conditions import ThreadSet, disjoint
from ptxfence.analysis.effects import Completion, Fence, FenceKind, Order, Proxy, Scope, SyncKind
from ptxfence.analysis.events import Event, Events, FlagUse
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.region import Region
from ptxfence.analysis.universe import by_index, one_thread, uniform_part, varying

MBARRIER_BYTES = 8
ARRIVES = (SyncKind.MBARRIER_ARRIVE, SyncKind.CP_ASYNC_ARRIVE, SyncKind.TCGEN05_COMMIT)
NAMED = (SyncKind.BAR, SyncKind.BAR_ARRIVE)


@dataclass(slots=True)
class Waiter:
    """A wait and the releases that may satisfy it, grouped by role: alternatives stand in one group. Where one arrival
    ends a phase, all of them are alternatives.

    Only thread indices tell roles apart. The arms of any other condition may be alternatives of one thread.

    `near` holds releases of the wait's own role: what others had published to them, the waiting thread has met
    on its own way, so only what they did themselves since is news. `commits`: a tcgen05.commit is among them.
    """

    event: Event
    alone: bool = False  # the waiting thread's own arrival may have ended the phase, and tells it nothing
    near: set[int] = field(default_factory=lambda: set[int]())
    groups: list[list[Event]] = field(default_factory=lambda: list[list[Event]]())
    uncertain: list[Event] = field(default_factory=lambda: list[Event]())
    commits: bool = False


class Handoffs:
    """All pairings of one kernel."""

    def __init__(self, events: Events) -> None:
        self.cfg = events.cfg
        self.threads = events.values.threads
        everything = [e for block in events.by_block.values() for e in block if e.effect.sync]
        self._arrives = [e for e in everything if _kind(e) in ARRIVES] + self._landings(events)
        self.copies = any(_kind(e) is SyncKind.CP_ASYNC_ARRIVE for e in everything)
        arrives = (e for e in everything if _kind(e) in (*ARRIVES, SyncKind.CLUSTER_ARRIVE))
        self.relaxed = [e for e in arrives if e.effect.sync is not None and e.effect.sync.order is Order.RELAXED]
        self._waits = [e for e in everything if _kind(e) is SyncKind.MBARRIER_WAIT]
        self._bars = [e for e in everything if _kind(e) in NAMED]
        self._inits = [e for e in everything if _kind(e) is SyncKind.MBARRIER_INIT]
        self._reach: dict[int, frozenset[int]] = {}
        self._last: dict[int, int | None] = {}
        self._roles: dict[int, ThreadSet] = {}
        self._partners: dict[tuple[tuple[int, int] | None, ThreadSet], list[Event]] = {}
        self._common: dict[int, list[int]] = {}
        for barrier in sorted(events.common_barriers[False]):
            self._common.setdefault(self.cfg.block_of(barrier), []).append(barrier)
        self.waiters: dict[int, Waiter] = {}
        for wait in self._waits:
            self._add(wait, self._arrives, self._mbarrier_pair)
        for bar in self._bars:
            if _kind(bar) is SyncKind.BAR:
                self._add(bar, self._meeting(bar), self._bar_pair)
        flags = [e for block in events.by_block.values() for e in block if e.flag is not None]
        for wait in flags:
            if wait.flags in (FlagUse.ACQUIRE, FlagUse.BOTH):
                self._add(wait, [e for e in flags if e.flags in (FlagUse.RELEASE, FlagUse.BOTH)], self._flag_pair)
        self.listeners: dict[int, list[int]] = {}
        for number, waiter in self.waiters.items():
            for release in (r for group in waiter.groups for r in group):
                self.listeners.setdefault(release.index, []).append(number)

    @cached_property
    def murky(self) -> bool:
        """Whether some synchronisation of the kernel is not understood."""
        if any(waiter.uncertain for waiter in self.waiters.values()):
            return True
        return any(w.barrier is not None and not w.barrier.bounded for w in self._waits)

    @cached_property
    def _bar_kinds(self) -> dict[tuple[tuple[int, int] | None, ThreadSet], list[int]]:
        """Positions of the named barriers that are alike: loops repeat few kinds many times."""
        found: dict[tuple[tuple[int, int] | None, ThreadSet], list[int]] = {}
        for number, bar in enumerate(self._bars):
            found.setdefault((bar.ids, self.threads(bar.index)), []).append(number)
        return found

    def _meeting(self, wait: Event) -> list[Event]:
        """Named barriers with an id and threads that could pair with this one."""
        key = wait.ids, self.threads(wait.index)
        if key not in self._partners:
            kinds = [(ids, threads) for ids, threads in self._bar_kinds if _ids_meet(ids, key[0])]
            numbers = [n for kind in kinds if disjoint(kind[1], key[1]) for n in self._bar_kinds[kind]]
            self._partners[key] = [self._bars[n] for n in sorted(numbers)]
        return self._partners[key]

    @staticmethod
    def _landings(events: Events) -> list[Event]:
        """st.async and red.async: the data arrives together with the count of its mbarrier."""
        found: list[Event] = []
        for event in (e for block in events.by_block.values() for e in block):
            for access in event.effect.accesses:
                generic = access.proxy is Proxy.GENERIC and access.completion is Completion.MBARRIER
                if generic and access.mbarrier is not None:
                    barrier = events.values.mbarrier_region(event.index, access.mbarrier)
                    found.append(replace(event, barrier=barrier))
        return found

    def _add(self, wait: Event, candidates: list[Event], pair: Callable[[Event, Event], bool | None]) -> None:
        waiter = Waiter(wait)
        lone = wait.barrier is not None and self._lone(wait.barrier)
        for release in candidates:
            answer = pair(release, wait)
            if answer is None:
                continue
            sync = release.effect.sync
            waiter.commits = waiter.commits or (sync is not None and sync.kind is SyncKind.TCGEN05_COMMIT)
            if not answer:
                waiter.uncertain.append(release)
                continue
            self._place(waiter, release, lone)
            if not disjoint(self.threads(release.index), self.threads(wait.index)):
                waiter.near.add(release.index)
        waiter.alone = lone and any(self._same_thread(release, wait) for release in candidates)
        if waiter.groups or waiter.uncertain:
            self.waiters[wait.index] = waiter

    def _lone(self, barrier: Region) -> bool:
        """Whether the region is one mbarrier, and it expects one arrival."""
        if barrier.lo is None or barrier.hi is None or barrier.hi - barrier.lo > MBARRIER_BYTES:
            return False
        meets = (e for e in self._inits if e.barrier is not None and overlap(e.barrier, barrier) is not Overlap.NO)
        return any(event.count == 1 for event in meets)

    def _place(self, waiter: Waiter, release: Event, lone: bool) -> None:
        threads = self._role(release.index)
        for group in waiter.groups:
            if lone or any(not disjoint(self._role(other.index), threads) for other in group):
                group.append(release)
                return
        waiter.groups.append([release])

    def _role(self, index: int) -> ThreadSet:
        found = self._roles.get(index)
        if found is None:
            found = self._roles[index] = by_index(self.threads(index))
        return found

    def _mbarrier_pair(self, release: Event, wait: Event) -> bool | None:
        """True: pairs; False: may pair; None: cannot."""
        a, b = release.barrier, wait.barrier
        if a is None or b is None:
            return None
        if not a.bounded or not b.bounded:
            return False if a.base == b.base or a.base is None or b.base is None else None
        if overlap(a, b) is Overlap.NO or self._exclusive(release, wait):
            return None
        mine, theirs = self.threads(release.index), self.threads(wait.index)
        if disjoint(mine, theirs):
            return True
        if self._same_thread(release, wait):
            return None
        if wait.index in self._next_waits(release):
            return True
        apart = not self.cfg.leads(release.index, wait.index)
        return True if apart else None  # no thread comes from one to the other: two roles

    def _same_thread(self, release: Event, wait: Event) -> bool:
        """Whether one thread arrives at a barrier and waits there itself."""
        a, b = release.barrier, wait.barrier
        mine = self.threads(release.index)
        if a is None or b is None or not one_thread(mine) or mine != self.threads(wait.index):
            return False
        return overlap(a, b) is not Overlap.NO

    def _bar_pair(self, release: Event, wait: Event) -> bool | None:
        """Of two that could pair (`_meeting`). The whole CTA comes to one of two of its barriers together."""
        if not (varying(self.threads(release.index)) or varying(self.threads(wait.index))):
            return None
        if release is wait or self._exclusive(release, wait):
            return None
        return release.ids is not None and wait.ids is not None

    @staticmethod
    def _flag_pair(release: Event, wait: Event) -> bool | None:
        """Strong accesses to one flag in global memory, whose threads may be any in the grid."""
        a, b = release.flag, wait.flag
        if release is wait or a is None or b is None or a.base is None or a.base != b.base:
            return None
        return None if overlap(a, b) is Overlap.NO else True

    def _past(self, release: Event, wait: Event) -> bool:
        """Whether every thread has done the wait before any comes to the release: a barrier of the whole CTA stands
        before the release, and nobody comes from it to the wait."""
        barrier = self._last_before(release.index)  # an earlier one leads to all that this one leads to
        return barrier is not None and not self.cfg.leads(barrier, wait.index)

    def _last_before(self, index: int) -> int | None:
        """The last barrier of the whole CTA that every way to an instruction passes."""
        block = self.cfg.block_of(index)
        at = bisect_left(self._common.get(block, []), index)
        if at:
            return self._common[block][at - 1]
        found, walked = None, [block]
        while (parent := self.cfg.idom.get(block, block)) != block:
            block = parent
            if block in self._common or block in self._last:
                found = self._common[block][-1] if block in self._common else self._last[block]
                break
            walked.append(block)
        self._last.update(dict.fromkeys((b for b in walked if b not in self._common), found))
        return found

    def _exclusive(self, release: Event, wait: Event) -> bool:
        """Whether the two never meet: in arms of one condition of the whole CTA, or with a barrier of it between.

        A release to the barrier of a peer says nothing of that kind: there the other CTA waits.
        """
        if release.barrier is not None and release.barrier.peer:
            return False
        if self._past(release, wait):
            return True
        mine = frozenset(a for a in uniform_part(self.threads(release.index)) if not a.defs)
        return disjoint(mine, uniform_part(self.threads(wait.index)))

    def _next_waits(self, release: Event) -> frozenset[int]:
        """Waits on the release's barrier that its own threads can come to next."""
        if release.index not in self._reach:
            stops = {
                w.index
                for w in self._waits
                if w.barrier is not None and release.barrier is not None
                if overlap(w.barrier, release.barrier) is not Overlap.NO
            }
            self._reach[release.index] = reachable(self.cfg, release.index, frozenset(stops))
        return self._reach[release.index]


def releases_widely(event: Event) -> bool:
    """Whether a thread fence releases at cluster scope or wider."""
    return any(_releases(fence, Scope.CLUSTER) for fence in event.effect.fences)


def releases(event: Event, arrive: Event | None) -> bool:
    """Whether a thread fence makes a release of the relaxed `arrive` behind it."""
    sync = arrive.effect.sync if arrive is not None else None
    wide = sync is not None and sync.kind is SyncKind.CLUSTER_ARRIVE
    return any(_releases(fence, Scope.CLUSTER if wide else Scope.CTA) for fence in event.effect.fences)


def _releases(fence: Fence, scope: Scope) -> bool:
    if fence.kind is not FenceKind.THREAD or fence.order is Order.ACQUIRE:
        return False
    return fence.scope is not None and fence.scope.value >= scope.value


def reaches_peers(release: Event) -> bool:
    """Whether a release is of a scope that a thread of another CTA can acquire; complete_tx always is."""
    sync = release.effect.sync
    return sync is None or sync.scope.value >= Scope.CLUSTER.value


def reachable(cfg: Cfg, index: int, stops: frozenset[int]) -> frozenset[int]:
    """The members of `stops` that control flow can come to from `index` without passing another of them."""
    ordered = sorted(stops)
    found: set[int] = set()
    start = cfg.block_of(index)
    seen: set[int] = set()
    work = [(start, index + 1)]
    while work:
        block, first = work.pop()
        end = cfg.blocks[block].end
        hit = next((s for s in ordered if first <= s < end), None)
        if hit is not None:
            found.add(hit)
            continue
        for successor in cfg.succs[block]:
            if successor not in seen:
                seen.add(successor)
                work.append((successor, cfg.blocks[successor].start))
    return frozenset(found)


def _ids_meet(a: tuple[int, int] | None, b: tuple[int, int] | None) -> bool:
    if a is None or b is None:
        return True
    return a[0] <= b[1] and b[0] <= a[1]


def _kind(event: Event) -> SyncKind:
    assert event.effect.sync is not None
    return event.effect.sync.kind
