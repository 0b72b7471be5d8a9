"""Examines files in a child process with a limit on time and memory, so that nothing of ours can hurt its parent."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

MEMORY = 8 << 30
"""Bytes of address space that the child may use."""
GRACE = 5.0
"""Seconds beyond the time limit per file that the child gets to say so itself."""


def run_confined(inputs: tuple[str, ...], folder: Path, mode: str) -> tuple[dict[str, Path], str]:
    """Examines PTX files; patched copies go to `folder` under the same names.

    Returns input -> patched copy, and a text that is not empty if something was not done or, in `error` mode, if
    something was found. Call it from a process with one thread: it forks.
    """
    answer = folder / "answer.json"
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _confine()
            answer.write_text(json.dumps(_examine(inputs, folder, mode)), encoding="utf-8")
            status = 0
        finally:
            os._exit(status)
    end = _await(child, GRACE + _limit() * len(inputs))
    if end != 0 or not answer.is_file():
        return {}, f"the examination {end if isinstance(end, str) else f'ended with status {end}'}"
    data = json.loads(answer.read_text(encoding="utf-8"))
    for message in data["messages"]:
        print(f"ptxfence: {message}", file=sys.stderr, flush=True)
    return {name: Path(path) for name, path in data["patched"].items()}, data["refusal"]


def _limit() -> float:
    try:
        return float(os.environ.get("PTXFENCE_TIMEOUT") or 60.0)
    except ValueError:
        return 60.0


def _confine() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # The interpreter's own messages about a crash of ours would be mistaken for ptxas's.
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    if not os.environ.get("PTXFENCE_DEBUG"):
        os.dup2(silent, 2)


def _examine(inputs: tuple[str, ...], folder: Path, mode: str) -> dict[str, object]:
    from ptxfence.errors import PtxFenceError
    from ptxfence.integrations import journal
    from ptxfence.integrations.outcome import Mode, mode_of
    from ptxfence.integrations.watch import Watch

    watch = Watch(mode_of(mode), "ptxas")
    patched: dict[str, str] = {}
    refusals: list[str] = []
    messages: list[str] = []
    for number, name in enumerate(inputs):
        raw = Path(name).read_bytes()
        text = raw.decode("utf-8", "surrogateescape")
        try:
            outcome, failure = watch.look(text, os.path.basename(name))
        except PtxFenceError as error:
            refusals.append(str(error))
            continue
        if outcome is not None and not os.environ.get(journal.VARIABLE):
            messages += [notice.sentence() for notice in outcome.notices if notice.severity != "note"]
        if failure:
            refusals.append(f"{name}: {failure}")
        elif outcome is not None and watch.mode is Mode.FIX and outcome.text != text:
            copy = folder / str(number) / os.path.basename(name)
            copy.parent.mkdir()
            copy.write_bytes(outcome.text.encode("utf-8", "surrogateescape"))
            patched[name] = str(copy)
    return {"patched": patched, "refusal": "\n".join(refusals), "messages": messages}


def _await(child: int, seconds: float) -> int | str:
    """The exit status of the child, or in words how it ended."""
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else f"was ended by signal {-code}"
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"took longer than {seconds:g} s"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
