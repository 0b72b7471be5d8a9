"""Runs many tasks in their order: equal bytes once, over processes where there are several, through the cache.

At most a window of tasks is held at a time. A worker process that dies takes one file with it, not the run.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ptxfence.batch.examine import Options, Task, adopt, examine
from ptxfence.triage.result import FileResult

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ptxfence.batch.cache import ResultCache
    from ptxfence.batch.workers import Workers

_WINDOW = 8  # tasks in flight for each process


@dataclass(slots=True)
class _Slot:
    """The work on one text, shared by all files that hold it."""

    task: Task
    future: Future[FileResult] | None = None
    result: FileResult | None = None


@dataclass(slots=True)
class Runner:
    """Checks tasks. After a run `duplicates` is the number of files whose bytes were met before."""

    jobs: int = 1
    cache: ResultCache | None = None
    duplicates: int = 0
    _slots: dict[tuple[str, Options], _Slot] = field(default_factory=dict[tuple[str, Options], _Slot])
    _workers: Workers | None = None

    def run(self, tasks: Iterable[Task]) -> Iterator[FileResult]:
        """The results of the tasks, in their order."""
        window: deque[tuple[Task, _Slot]] = deque()
        limit = self.jobs * _WINDOW if self.jobs > 1 else 1
        try:
            for task in tasks:
                window.append((task, self._slot(task)))
                if len(window) >= limit:
                    yield self._finish(*window.popleft())
            while window:
                yield self._finish(*window.popleft())
        finally:
            if self._workers is not None:
                self._workers.close()
                self._workers = None

    def _slot(self, task: Task) -> _Slot:
        key = (task.sha256, task.options)
        known = self._slots.get(key)
        if known is not None:
            self.duplicates += 1
            return known
        slot = _Slot(task)
        slot.result = self.cache.get(task) if self.cache is not None else None
        if slot.result is None and self.jobs > 1:
            slot.future = self._pool().submit(task)
        self._slots[key] = slot
        return slot

    def _finish(self, task: Task, slot: _Slot) -> FileResult:
        if slot.result is None:
            future, slot.future = slot.future, None
            slot.result = examine(slot.task) if future is None else self._pool().wait(slot.task, future)
            if self.cache is not None:
                self.cache.put(slot.task, slot.result)
        slot.task = replace(slot.task, text="")  # the text is not needed again
        return adopt(slot.result, task)

    def _pool(self) -> Workers:
        if self._workers is None:
            from ptxfence.batch.workers import Workers

            self._workers = Workers(self.jobs)
        return self._workers


def available_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
