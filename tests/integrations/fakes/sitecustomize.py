"""Replaces the analysis in every process of a test: a simple patcher, or one of the ways in which ours might fail."""

import os
import time

from ptxfence.integrations import watch
from ptxfence.integrations.outcome import Mode, Notice, Outcome

FENCE = "fence.proxy.async.shared::cta; // fake"


def fenced(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    """Puts a fence before each store by the copy engine."""
    lines: list[str] = []
    edits = 0
    for line in text.splitlines(keepends=True):
        if "cp.async.bulk" in line and ".global.shared" in line:
            edits += 1
            if mode is Mode.FIX:
                lines.append(f"\t{FENCE}\n")
        lines.append(line)
    notice = Notice("PF101", "missing-fence-raw", "error", "k", "no fence", 7, "cp.async.bulk", "k.py:3")
    notices = (notice,) * edits
    return Outcome("".join(lines), edits if mode is Mode.FIX else 0, ("k",), (), notices, notices)


def hang(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    while True:
        time.sleep(0.01)


def crash(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    raise RuntimeError("something broke")


def memory(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    raise MemoryError


def allocate(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    """More than any machine has."""
    return Outcome(str(bytearray(1 << 50)))


def recursion(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    return recursion(text, filename, mode, seconds)


def leave(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    raise SystemExit(3)


def segfault(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    """Only for the stand-in, which examines in a process of its own."""
    os.kill(os.getpid(), 11)
    return Outcome(text)


def empty(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    return Outcome("", 1)


def garbage(text: str, filename: str, mode: Mode, seconds: float) -> Outcome:
    """Text that ptxas refuses."""
    return Outcome(text + "\nthis is no PTX\n", 1)


if "PTXFENCE_TEST_FAKE" in os.environ:
    watch.examine = globals()[os.environ["PTXFENCE_TEST_FAKE"]]
