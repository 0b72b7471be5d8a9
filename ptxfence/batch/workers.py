"""Worker processes that outlive the death of one of them."""

from __future__ import annotations

from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ptxfence.batch.examine import Task, examine
from ptxfence.triage.result import FileResult, failure


class Workers:
    """A pool of `jobs` processes that check texts; it is replaced when it breaks."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, task: Task) -> Future[FileResult]:
        """Start the check of a text."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._jobs)
        try:
            return self._pool.submit(examine, task)
        except BrokenProcessPool:
            self.close()
            return self.submit(task)

    def wait(self, task: Task, future: Future[FileResult]) -> FileResult:
        """The result. A text whose process died is checked again in a process of its own."""
        try:
            return future.result()
        except (BrokenProcessPool, CancelledError):
            self.close()
            return _alone(task)

    def close(self) -> None:
        """Let go of the processes; what has not started is not started."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _alone(task: Task) -> FileResult:
    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(examine, task).result()
        except BrokenProcessPool:
            message = "the process that checked this file died (killed, or out of memory)"
            return failure(task.path, task.sha256, "internal", message)
