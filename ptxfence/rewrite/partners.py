"""Who may synchronise with whom, and what lies between: the questions that trails.py asks about a kernel.

Written for recheck.py alone: the flow answers the same questions elsewhere and in another way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ptxfence.analysis.conditions import Atom, ThreadSet, disjoint
from ptxfence.analysis.effects import FenceKind, Order, SyncKind
from ptxfence.analysis.events import Event, Events, Touch
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.region import Region

_ARRIVALS = (SyncKind.MBARRIER_ARRIVE, SyncKind.CP_ASYNC_ARRIVE, SyncKind.TCGEN05_COMMIT)
_RELAXABLE = (SyncKind.MBARRIER_ARRIVE, SyncKind.CLUSTER_ARRIVE)
_ORDINARY = (SyncKind.MBARRIER_ARRIVE, SyncKind.BAR_ARRIVE, SyncKind.BAR, SyncKind.TCGEN05_COMMIT)


class Partners:
    """One kernel's synchronising events."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.cfg = events.cfg
        self._waits_for: dict[int, tuple[Event, ...]] = {}
        self._between: dict[tuple[int, int, int], bool] = {}
        self._roles: dict[int, list[list[Event]]] = {}
        self._edges: dict[tuple[int, int], ThreadSet] = {}
        self.live = {block: [e for e in found if _live(e)] for block, found in events.by_block.items()}

    def behind(self, index: int) -> tuple[int, int]:
        """The place behind an instruction: its block, and how many live events of the block come no later."""
        block = self.cfg.block_of(index)
        return block, sum(event.index <= index for event in self.live[block])

    def edge(self, block: int, successor: int) -> ThreadSet:
        """What is known of threads that take a control-flow edge."""
        key = (block, successor)
        found = self._edges.get(key)
        if found is None:
            found = self._edges[key] = self.events.values.edge(block, successor)
        return found

    @cached_property
    def all(self) -> tuple[Event, ...]:
        """Events that make, end or look at a trail; generic accesses do not."""
        return tuple(event for found in self.live.values() for event in found)

    @cached_property
    def _by_index(self) -> dict[int, Event]:
        return {event.index: event for event in self.all}

    @cached_property
    def fences(self) -> tuple[Event, ...]:
        return tuple(e for e in self.all if any(f.kind is FenceKind.ASYNC for f in e.effect.fences))

    def _of(self, *kinds: SyncKind) -> list[Event]:
        return [e for e in self.all if e.effect.sync is not None and e.effect.sync.kind in kinds]

    @cached_property
    def _waits(self) -> list[Event]:
        return self._of(SyncKind.MBARRIER_WAIT)

    @cached_property
    def _bars(self) -> list[Event]:
        return self._of(SyncKind.BAR)

    def is_bar(self, index: int) -> bool:
        """Whether the instruction is a CTA (or named) barrier that its threads wait at."""
        event = self._by_index.get(index)
        return event is not None and event.effect.sync is not None and event.effect.sync.kind is SyncKind.BAR

    def released_by(self, fence: Event) -> Event | None:
        """The relaxed arrive that makes a release of a thread fence: the next thing of its block that synchronises."""
        if not any(f.kind is FenceKind.THREAD and f.order is not Order.ACQUIRE for f in fence.effect.fences):
            return None
        block = self.live[self.cfg.block_of(fence.index)]
        following = (e for e in block if e.index > fence.index and e.effect.sync is not None)
        arrive = next(following, None)
        sync = arrive.effect.sync if arrive is not None else None
        return arrive if sync is not None and sync.order is Order.RELAXED and sync.kind in _RELAXABLE else None

    def waits_on(self, barrier: Region) -> list[Event]:
        """Waits on an mbarrier; none if it is not known which one it is."""
        return [w for w in self._waits if w.barrier is not None and _same(w.barrier, barrier)]

    def waits_for(self, release: Event) -> tuple[Event, ...]:
        """Waits that the release may end."""
        found = self._waits_for.get(release.index)
        if found is None:
            found = self._waits_for[release.index] = tuple(self._partners(release))
        return found

    def _partners(self, release: Event) -> list[Event]:
        kind = _kind(release)
        mine = self.events.values.threads(release.index)
        if kind in (SyncKind.BAR, SyncKind.BAR_ARRIVE):
            others = (b for b in self._bars if b is not release and _ids_meet(release, b) and self._others(mine, b))
            return [b for b in others if not _never_both(mine, self.events.values.threads(b.index))]
        if kind not in _ARRIVALS or release.barrier is None:
            return []
        candidates = self.waits_on(release.barrier)
        nearest = self._nearest(release.index, frozenset(w.index for w in candidates))
        return [w for w in candidates if self._others(mine, w) or (w.index in nearest and not self._alone(mine, w))]

    def _others(self, mine: ThreadSet, wait: Event) -> bool:
        return disjoint(mine, self.events.values.threads(wait.index))

    def _apart(self, mine: ThreadSet, release: Event) -> bool:
        """Whether no thread can make both releases, whatever path it takes: their thread indices differ."""
        theirs = self.events.values.threads(release.index)
        return any(disjoint(frozenset((a,)), frozenset((b,))) for a in mine for b in theirs if _index(a) and _index(b))

    def _alone(self, mine: ThreadSet, wait: Event) -> bool:
        """Whether one and the same thread releases and waits."""
        single = any(
            not a.negated and (a.key == "elect" or (a.key in ("tid.x", "lane") and a.hi - a.lo == 1)) for a in mine
        )
        return single and mine == self.events.values.threads(wait.index)

    def _own_arrival(self, release: Event, wait: Event) -> bool:
        if release.barrier is None or wait.barrier is None or not _same(release.barrier, wait.barrier):
            return False
        return self._alone(self.events.values.threads(release.index), wait)

    def roles_of(self, wait: Event) -> list[list[Event]]:
        """Releases that the wait waits for, those that one thread may choose between in one list; all in one list where
        a single arrival ends the phase."""
        found = self._roles.get(wait.index)
        if found is None:
            found = self._roles[wait.index] = self._sorted_by_role(wait)
        return found

    def _sorted_by_role(self, wait: Event) -> list[list[Event]]:
        roles: list[list[Event]] = []
        lone = [i.barrier for i in self._of(SyncKind.MBARRIER_INIT) if i.count == 1 and i.barrier is not None]
        single = wait.barrier is not None and any(wait.barrier.holds(b) and b.holds(wait.barrier) for b in lone)
        arrivals = self._of(*_ARRIVALS)
        if single and any(self._own_arrival(release, wait) for release in arrivals):
            return []  # which may have ended the phase, and tells nothing
        for release in (r for r in arrivals if wait in self.waits_for(r)):
            mine = self.events.values.threads(release.index)
            home = next((r for r in roles if single or any(not self._apart(mine, other) for other in r)), None)
            if home is None:
                roles.append([release])
            else:
                home.append(release)
        return roles

    # --- control flow ----------------------------------------------------------------------------

    def _nearest(self, index: int, wanted: frozenset[int]) -> frozenset[int]:
        """The wanted instructions that control flow comes to first."""
        found: set[int] = set()

        def visit(i: int) -> bool:
            if i in wanted:
                found.add(i)
            return i not in wanted

        self._explore(index, visit)
        return frozenset(found)

    def always_between(self, first: int, fence: int, last: int, who: ThreadSet) -> bool:
        """Whether every path that threads `who` take from one event to the next passes `fence`."""
        key = (first, fence, last)
        if key not in self._between:
            reached = False

            def visit(i: int) -> bool:
                nonlocal reached
                reached |= i == last
                return i not in (fence, last)

            self._explore(first, visit, who)
            self._between[key] = not reached
        return self._between[key]

    def fenced_releases(self, access: Touch, fences: Callable[[Event], bool]) -> frozenset[int]:
        """Releases that the accessing thread comes to after the access, with a fence between on every path.

        Only in the same round of the loop around the access: a release of the next round may have been waited for
        before the access.
        """
        loops = self.cfg.loops_of.get(self.cfg.block_of(access.index), ())
        header = self.cfg.blocks[self.cfg.loops[loops[-1]].header].start if loops else -1
        by_index = self._by_index
        reached: set[int] = set()
        bare: set[int] = set()

        def note(into: set[int], stop_at_fences: bool) -> Callable[[int], bool]:
            def visit(i: int) -> bool:
                event = by_index.get(i)
                if event is not None and event.effect.sync is not None and event.effect.sync.kind in _ORDINARY:
                    into.add(i)
                fenced = event is not None and self.cfg.instructions[i].guard is None and fences(event)
                return i not in (header, access.index) and not (stop_at_fences and fenced)

            return visit

        self._explore(access.index, note(reached, False), access.threads)
        self._explore(access.index, note(bare, True), access.threads)
        return frozenset(reached - bare)

    def _explore(self, index: int, visit: Callable[[int], bool], who: ThreadSet = frozenset()) -> None:
        """Calls `visit` for the instructions after `index`, path by path; False ends a path.

        `who` limits the paths to those that such threads take.
        """
        seen: set[int] = set()
        work = [(self.cfg.block_of(index), index + 1)]
        while work:
            block, first = work.pop()
            if not all(visit(i) for i in range(first, self.cfg.blocks[block].end)):
                continue
            for successor in self.cfg.succs[block]:
                if successor not in seen and not disjoint(who, self.edge(block, successor)):
                    seen.add(successor)
                    work.append((successor, self.cfg.blocks[successor].start))


def _never_both(a: ThreadSet, b: ThreadSet) -> bool:
    """Whether conditions that all threads of a CTA answer alike choose between the two: all stand at one of them."""
    if not any(atom.varies for atom in a | b):
        return True
    lasting = frozenset(atom for atom in a if not atom.varies and not atom.defs)
    return disjoint(lasting, frozenset(atom for atom in b if not atom.varies))


def _live(event: Event) -> bool:
    what = event.effect
    return bool(what.fences or what.sync or what.group) or any(touch.is_async for touch in event.touches)


def _kind(event: Event) -> SyncKind:
    assert event.effect.sync is not None
    return event.effect.sync.kind


def _index(atom: Atom) -> bool:
    return atom.key in ("elect", "lane") or atom.key.split(".")[0] == "tid"


def _same(a: Region, b: Region) -> bool:
    return a.bounded and b.bounded and overlap(a, b) is not Overlap.NO


def _ids_meet(a: Event, b: Event) -> bool:
    if a.ids is None or b.ids is None:
        return False
    return a.ids[0] <= b.ids[1] and b.ids[0] <= a.ids[1]
