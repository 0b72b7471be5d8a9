"""What one hostile input must not do."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import FrameType

import ptxfence
from ptxfence.analysis.report import Report
from ptxfence.errors import PtxFenceError
from tests.litmus.rows import ROWS
from tests.oracle.generate import generate

LIMIT = 10.0  # seconds of processor time that an input of a few kilobytes may take
HANG = 30.0  # seconds of processor time after which it is stopped
REAL = 16 << 10  # bytes: larger compiled kernels are left out
CORPUS = Path(__file__).parents[2] / "corpus" / "ptx"


class Hang(BaseException):
    """No `Exception`, so that no handler on the way takes it for an error of its own."""


@cache
def kernels() -> tuple[str, ...]:
    """Small texts to start from: litmus rows and generated kernels."""
    return (*(row.text for row in ROWS), *(generate(seed).text() for seed in range(40)))


@cache
def compiled() -> tuple[str, ...]:
    """Compilers' output to start from."""
    return tuple(p.read_text() for p in sorted(CORPUS.rglob("*.ptx")) if p.stat().st_size < REAL)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Hang


@contextmanager
def _watched() -> Generator[None]:
    old = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, HANG)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def _outcome(text: str) -> tuple[object, ...]:
    """Verdict and findings, or the refusal."""
    try:
        report: Report = ptxfence.check(text)
    except PtxFenceError as error:
        return type(error).__name__, str(error)
    found = tuple((f.rule, f.cause, f.first.line, f.second and f.second.line, f.id) for f in report.findings)
    return report.verdict, found


def judge(text: str, repeat: bool) -> tuple[str, str]:
    """What is wrong with the tool's answer to `text` (empty if nothing), and a digest of the answer.

    `repeat` asks twice.
    """
    begin = time.process_time()
    digest = ""
    try:
        with _watched():
            first = _outcome(text)
            digest = blake2b(repr(first).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
            if repeat and _outcome(text) != first:
                return "two runs differ", digest
    except (Exception, Hang):  # whatever escapes is what we look for
        return traceback.format_exc(limit=-4), digest
    seconds = time.process_time() - begin
    return (f"slow: {seconds:.1f} s" if seconds > LIMIT else ""), digest


def complaint(text: str, repeat: bool) -> str:
    """What is wrong with the tool's answer to `text`; empty if nothing."""
    return judge(text, repeat)[0]
