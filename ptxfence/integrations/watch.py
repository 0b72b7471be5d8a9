"""Examines a text on its way from a compiler to the GPU without ever endangering the program it belongs to.

The work is done in a thread of our own with a time limit. Whatever goes wrong there - an exception of any kind, no
memory, a hang - the program gets its own text back, and one entry of the journal says so. Only `error` mode raises.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
import time
from collections import OrderedDict
from hashlib import sha256

from ptxfence.errors import ConfigError, HazardError
from ptxfence.integrations import journal
from ptxfence.integrations.outcome import Examine, Mode, Outcome, examine, pack, unpack

TIMEOUT_VARIABLE = "PTXFENCE_TIMEOUT"
DEFAULT_TIMEOUT = 60.0
MAX_CHARACTERS = 64 * 1024 * 1024
_REMEMBERED = 256  # texts; autotuning hands over the same one again and again


class Watch:
    """One mode, one examiner. `timeout` is in seconds of wall time per text.

    Safe to use from several threads: two that bring the same text at once may both examine it.
    """

    def __init__(self, mode: Mode, origin: str, *, timeout: float | None = None, examiner: Examine | None = None):
        self.mode = mode
        self.origin = origin
        self.timeout = _timeout() if timeout is None else timeout
        self._examiner = examiner
        self._known: OrderedDict[str, Outcome | str] = OrderedDict()

    def text(self, text: str, name: str, *, cached: bool = False) -> str:
        """The text to use in place of `text`.

        Raises HazardError in `error` mode: something at or above `fail-on` was found, or the text could not be
        examined.
        """
        outcome, _ = self.look(text, name, cached=cached)
        return text if outcome is None else outcome.text

    def look(self, text: str, name: str, *, cached: bool = False) -> tuple[Outcome | None, str]:
        """As `text`, but gives the outcome, or None and the reason why there is none. Raises as `text` does."""
        started = time.perf_counter()
        digest = _digest(text)
        result = self._known.get(digest)
        if result is None:
            result = self._guarded(text, name)
            self._remember(digest, result)
        seconds = time.perf_counter() - started
        if isinstance(result, str):
            entry = journal.Entry(self.origin, name, self.mode, digest, cached=cached, failure=result, seconds=seconds)
            journal.write(entry)
            if self.mode is Mode.ERROR:
                raise HazardError(f"{name} was not examined: {result}")
            return None, result
        journal.write(self._entry(name, digest, result, seconds, cached=cached))
        if self.mode is Mode.ERROR and result.failing:
            raise HazardError("\n".join(notice.sentence() for notice in result.failing))
        return result, ""

    def miss(self, name: str, reason: str) -> None:
        """Records that a kernel went by unseen. Raises HazardError in `error` mode."""
        journal.write(journal.Entry(self.origin, name, self.mode, "", failure=reason))
        if self.mode is Mode.ERROR:
            raise HazardError(f"{name} was not examined: {reason}")

    def failed(self, text: str, name: str, reason: str) -> str:
        """Records that the patch of `text` could not be used; gives the note that belongs to it then."""
        self._known[_digest(text)] = reason
        journal.write(journal.Entry(self.origin, name, self.mode, _digest(text), failure=reason))
        return self.note(text)

    def note(self, text: str) -> str:
        """What `cached` needs to know later about a text examined just now, as JSON."""
        digest = _digest(text)
        result = self._known.get(digest, "forgotten")
        return json.dumps({"sha256": digest, **({"failure": result} if isinstance(result, str) else pack(result))})

    def cached(self, name: str, note: str) -> None:
        """Records a kernel that an earlier run patched; `note` is what that run kept of it."""
        data = json.loads(note)
        if "failure" in data:
            entry = journal.Entry(
                self.origin, name, self.mode, data["sha256"], cached=True, failure=data["failure"]
            )
        else:
            entry = self._entry(name, data["sha256"], unpack("", data), 0.0, cached=True)
        journal.write(entry)

    def _entry(self, name: str, digest: str, found: Outcome, seconds: float, *, cached: bool) -> journal.Entry:
        return journal.Entry(
            self.origin, name, self.mode, digest, found.kernels, found.undecided, found.notices, found.edits, seconds,
            cached,
        )  # fmt: skip

    def _remember(self, digest: str, result: Outcome | str) -> None:
        self._known[digest] = result
        while len(self._known) > _REMEMBERED:
            try:
                self._known.popitem(last=False)
            except KeyError:  # another thread was faster
                return

    def _guarded(self, text: str, name: str) -> Outcome | str:
        if len(text) > MAX_CHARACTERS:
            return f"larger than {MAX_CHARACTERS >> 20} MiB"
        job = _Job(self._examiner or examine, text, name, self.mode, self.timeout)
        try:
            return job.wait(self.timeout)
        except (Exception, MemoryError) as error:
            return _about(error)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class _Job:
    """One examination in a daemon thread; a thread that is given up is asked to stop and cannot hold up an exit."""

    def __init__(self, examiner: Examine, text: str, name: str, mode: Mode, timeout: float) -> None:
        self._work = (text, name, mode, timeout / 2)
        self._examiner = examiner
        self._result: Outcome | str = "no result"
        self._done = threading.Event()

    def wait(self, timeout: float) -> Outcome | str:
        thread = threading.Thread(target=self._run, name="ptxfence", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # at interpreter shutdown no thread can start any more (CPython 3.12)
            self._run()
            return self._result
        if self._done.wait(timeout):
            return self._result
        _stop(thread)
        return f"not done within {timeout:g} s"

    def _run(self) -> None:
        try:
            result = self._examiner(*self._work)
            self._result = result if result.text else "the patched text is empty"
        except BaseException as error:  # also SystemExit and KeyboardInterrupt: this thread is not the program's
            self._result = _about(error)
        finally:
            self._done.set()


def _stop(thread: threading.Thread) -> None:
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def _about(error: BaseException) -> str:
    if os.environ.get("PTXFENCE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _timeout() -> float:
    word = os.environ.get(TIMEOUT_VARIABLE)
    if not word:
        return DEFAULT_TIMEOUT
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ConfigError(f"{TIMEOUT_VARIABLE}={word}: expected a positive number of seconds")
    return seconds
