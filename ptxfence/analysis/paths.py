"""Reachability and shortest paths over control flow and hand-offs, at the grain of single instructions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.handoff import Handoffs


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
        self._releases: dict[int, list[int]] = {}
        for release in sorted(handoffs.listeners):
            self._releases.setdefault(cfg.block_of(release), []).append(release)

    def _leaps(self, block: int, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Hand-offs that leave `block` within `[first, last]`: (release, wait)."""
        for release in self._releases.get(block, ()):
            if first <= release <= last:
                for wait in self.handoffs.listeners[release]:
                    yield release, wait

    def find(
        self, source: int, target: int, stop: Callable[[int], bool], *, leap: bool = True
    ) -> tuple[Segment, ...] | None:
        """The shortest path (in blocks) from after `source` to `target`, not executing an instruction that `stop`s.

        `leap`: whether hand-offs to other threads may be followed.
        """
        start = (self.cfg.block_of(source), source + 1, False)
        origin: dict[tuple[int, int], tuple[tuple[int, int] | None, int, bool]] = {}
        first = (start[0], start[1])
        origin[first] = (None, 0, False)
        queue = deque([first])
        while queue:
            block, begin = key = queue.popleft()
            end = self.cfg.blocks[block].end
            limit = next((i for i in range(begin, end) if stop(i)), end)
            if begin <= target < end and target < limit:
                return self._trace(key, target, origin)
            for release, wait in self._leaps(block, begin, limit - 1) if leap else ():
                self._push(key, release, self.cfg.block_of(wait), wait, True, origin, queue)
            if limit < end:
                continue
            for successor in self.cfg.succs[block]:
                self._push(key, end - 1, successor, self.cfg.blocks[successor].start, False, origin, queue)
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

    def reaches(self, source: int, target: int, stop: Callable[[int], bool], *, leap: bool = True) -> bool:
        """Whether some path leads from after `source` to `target` without executing a stopping instruction."""
        return self.find(source, target, stop, leap=leap) is not None
