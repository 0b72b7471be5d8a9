"""What watched processes write down, and how it is read back over all of them.

Each process appends to a file of its own in the folder `$PTXFENCE_JOURNAL`, one line a text, in one write: a process
that is killed loses at most the text at hand. Nothing here raises: a journal that cannot be written is not written.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ptxfence.integrations.outcome import Notice

VARIABLE = "PTXFENCE_JOURNAL"


@dataclass(frozen=True, slots=True)
class Entry:
    """One text that passed by. `origin` is the part that saw it (triton, ptxas, loader); `seconds` is wall time.

    `cached` texts were found in a cache of the producer; `failure` says why ptxfence could not do its work.
    """

    origin: str
    name: str
    mode: str
    sha256: str
    kernels: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    edits: int = 0
    seconds: float = 0.0
    cached: bool = False
    failure: str = ""
    pid: int = 0


def write(entry: Entry) -> None:
    """Appends to the journal; where there is none, says on standard error what a user must know."""
    with contextlib.suppress(Exception):
        folder = os.environ.get(VARIABLE)
        if folder:
            _append(Path(folder), entry)
        else:
            _tell(entry)


def _append(folder: Path, entry: Entry) -> None:
    pid = os.getpid()
    line = json.dumps({**asdict(entry), "pid": pid}, separators=(",", ":")) + "\n"
    handle = os.open(folder / f"{pid}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(handle, line.encode("utf-8", "surrogateescape"))
    finally:
        os.close(handle)


def _tell(entry: Entry) -> None:
    if entry.failure:
        print(f"ptxfence: {entry.name} left as it is: {entry.failure}", file=sys.stderr)
    for notice in entry.notices:
        if notice.severity != "note":
            print(f"ptxfence: {notice.sentence()}", file=sys.stderr)


def read(folder: Path) -> tuple[Entry, ...]:
    """All entries of a folder, by process; a line that was cut off is left out."""
    return tuple(entry for path in sorted(folder.glob("*.jsonl")) for entry in _entries(path))


def _entries(path: Path) -> Iterator[Entry]:
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            yield _entry(json.loads(line))


def _entry(data: dict[str, Any]) -> Entry:
    fields = dict(data)
    fields["kernels"], fields["undecided"] = tuple(data["kernels"]), tuple(data["undecided"])
    fields["notices"] = tuple(Notice(**notice) for notice in data["notices"])
    return Entry(**fields)


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over a run. A kernel is counted once for each different text; `seconds` is the time in ptxfence."""

    processes: int
    kernels: int
    cached: int
    patched: int
    fences: int
    errors: int
    warnings: int
    repaired: int
    undecided: int
    failures: int
    seconds: float


def totals(entries: Iterable[Entry]) -> Totals:
    """The counts over all processes; texts that several processes saw count once."""
    listed = tuple(entries)
    distinct = {(entry.sha256, entry.name): entry for entry in listed}
    # A text that one process found in a cache and another one examined is told by the one that examined it.
    distinct.update({(entry.sha256, entry.name): entry for entry in listed if not entry.cached})
    seen = tuple(distinct.values())
    notices = [notice for entry in seen for notice in entry.notices]
    return Totals(
        processes=len({entry.pid for entry in listed}),
        kernels=sum(max(1, len(entry.kernels)) for entry in seen),
        cached=sum(entry.cached for entry in seen),
        patched=sum(entry.edits > 0 for entry in seen),
        fences=sum(entry.edits for entry in seen),
        errors=sum(notice.severity == "error" for notice in notices),
        warnings=sum(notice.severity == "warning" for notice in notices),
        repaired=sum(notice.repaired for notice in notices),
        undecided=sum(len(entry.undecided) for entry in seen),
        failures=sum(bool(entry.failure) for entry in seen),
        seconds=sum(entry.seconds for entry in listed),
    )
