"""Reachability and shortest paths over control flow and hand-offs, at the grain of single instructions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.handoff import Handoffs

Stops = frozenset[int] | tuple[int, ...]
"""Instructions at which a search turns back; sets that serve many searches should be frozen sets."""

Spans = dict[int, list[tuple[int, int]]]

NOWHERE: Stops = ()
MOST_SEARCHES = 256  # kept at a time


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of instructions `[first, last]` that one thread executes; `handoff` if a hand-off leads into it."""

    first: int
    last: int
    handoff: bool


class Paths:
    """Answers questions about paths between instructions of one kernel."""

    def __init__(self, cfg: Cfg, handoffs: Handoffs) -> None:
        self.cfg = cfg
        self.handoffs = handoffs
        self._starts = [block.start for block in cfg.blocks]
        self._ends = [block.end for block in cfg.blocks]
        self._stops: dict[frozenset[int], Mapping[int, list[int]]] = {}
        self._releases: dict[int, list[int]] = {}
        for release in sorted(handoffs.listeners):
            self._releases.setdefault(cfg.block_of(release), []).append(release)
        self._comes: dict[tuple[int, int], bool] = {}
        self._spans: dict[tuple[Stops, Stops, bool], Spans] = {}

    def _leaps(self, block: int, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Hand-offs that leave `block` within `[first, last]`: (release, wait)."""
        for release in self._releases.get(block, ()):
            if first <= release <= last:
                for wait in self.handoffs.listeners[release]:
                    yield release, wait

    def _by_block(self, stops: Stops) -> Mapping[int, list[int]]:
        if not isinstance(stops, frozenset):
            return _grouped(self.cfg, stops)
        if stops not in self._stops:
            self._stops[stops] = _grouped(self.cfg, stops)
        return self._stops[stops]

    def find(
        self, source: int, target: int, stops: Stops = NOWHERE, *, leap: bool = True
    ) -> tuple[Segment, ...] | None:
        """The shortest path (in blocks) from after `source` to `target` that executes none of `stops`.

        `leap`: whether hand-offs to other threads may be followed.
        """
        halts = self._by_block(stops)
        first = (self.cfg.block_of(source), source + 1)
        origin: dict[tuple[int, int], tuple[tuple[int, int] | None, int, bool]] = {first: (None, 0, False)}
        queue = deque([first])
        blocks, succs = self.cfg.blocks, self.cfg.succs
        while queue:
            block, begin = key = queue.popleft()
            end = blocks[block].end
            limit = end
            if block in halts:
                limit = next((i for i in halts[block] if i >= begin), end)
            if begin <= target < limit:
                return self._trace(key, target, origin)
            if leap and block in self._releases:
                for release, wait in self._leaps(block, begin, limit - 1):
                    self._push(key, release, self.cfg.block_of(wait), wait, True, origin, queue)
            if limit < end:
                continue
            for successor in succs[block]:
                new = (successor, blocks[successor].start)
                if new not in origin:
                    origin[new] = (key, end - 1, False)
                    queue.append(new)
        return None

    @staticmethod
    def _push(
        key: tuple[int, int],
        left: int,
        block: int,
        begin: int,
        leap: bool,
        origin: dict[tuple[int, int], tuple[tuple[int, int] | None, int, bool]],
        queue: deque[tuple[int, int]],
    ) -> None:
        new = (block, begin)
        if new not in origin:
            origin[new] = (key, left, leap)
            queue.append(new)

    @staticmethod
    def _trace(
        key: tuple[int, int], target: int, origin: dict[tuple[int, int], tuple[tuple[int, int] | None, int, bool]]
    ) -> tuple[Segment, ...]:
        found: list[Segment] = []
        last = target
        step: tuple[int, int] | None = key
        while step is not None:
            before, left, leap = origin[step]
            found.append(Segment(step[1], last, leap))
            step, last = before, left
        return tuple(reversed(found))

    def reaches(self, source: int, target: int, stops: Stops = NOWHERE, *, leap: bool = True) -> bool:
        """Whether some path leads from after `source` to `target` without executing one of `stops`."""
        return self._among(self._searched((source,), stops, leap), target)

    def any_reaches(self, sources: frozenset[int], target: int, stops: Stops = NOWHERE) -> bool:
        """Whether `reaches` holds of some source: one search for all."""
        return self._among(self._searched(sources, stops, True), target)

    def first_of(self, source: int, stops: frozenset[int]) -> frozenset[int]:
        """Those of `stops` that control flow comes to from `source` before any other of them."""
        spans = self._search((source,), stops, False)
        ends = ((self.cfg.blocks[block].end, limit) for block, runs in spans.items() for _, limit in runs)
        return frozenset(limit for end, limit in ends if limit < end)

    def _among(self, spans: Spans, target: int) -> bool:
        return any(begin <= target < limit for begin, limit in spans.get(self.cfg.home[target], ()))

    def _searched(self, sources: Stops, stops: Stops, leap: bool) -> Spans:
        key = (sources, stops, leap)
        spans = self._spans.get(key)
        if spans is None:
            if len(self._spans) >= MOST_SEARCHES:
                self._spans.clear()
            spans = self._spans[key] = self._search(sources, stops, leap)
        return spans

    def _search(self, sources: Stops, stops: Stops, leap: bool) -> Spans:
        """What `find` would go through from the sources: runs of instructions `[begin, limit)` by block."""
        halts = self._by_block(stops)
        succs, home, starts, ends = self.cfg.succs, self.cfg.home, self._starts, self._ends
        found: Spans = {}
        entered = set[int]()  # blocks from their start, and waits
        work = [(home[source], source + 1) for source in sources]
        while work:
            block, begin = work.pop()
            end = limit = ends[block]
            if block in halts:
                limit = next((i for i in halts[block] if i >= begin), end)
            found.setdefault(block, []).append((begin, limit))
            if leap and block in self._releases:
                waits = {wait for _, wait in self._leaps(block, begin, limit - 1)} - entered
                entered |= waits
                work += [(home[wait], wait) for wait in waits]
            if limit < end:
                continue
            for successor in succs[block]:
                begin = starts[successor]
                if begin not in entered:
                    entered.add(begin)
                    work.append((successor, begin))
        return found

    def comes(self, source: int, target: int) -> bool:
        """As `reaches` without stops, answered once for two blocks; all blocks of a loop come to what one comes to."""
        key = (self.cfg.block_of(source), self.cfg.block_of(target))
        if key[0] == key[1]:
            return self.reaches(source, target)
        if key not in self._comes:
            mine, theirs = (self.cfg.loops_of.get(block, ()) for block in key)
            whole = max(mine, key=lambda number: len(self.cfg.loops[number].blocks), default=None)
            start = source if whole is None else self.cfg.blocks[self.cfg.loops[whole].header].start
            self._comes[key] = not set(mine).isdisjoint(theirs) or self.reaches(start, target)
        return self._comes[key]


def _grouped(cfg: Cfg, stops: Stops) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for index in sorted(stops):
        found.setdefault(cfg.block_of(index), []).append(index)
    return found
