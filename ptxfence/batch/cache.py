"""Results of earlier runs, found again by the bytes that were checked.

The key holds the bytes' hash, the options of the analysis and a stamp of the installed package, so that nothing stale
is ever used. Settings that only sort or silence findings are applied afterwards and do not enter. A cache that cannot
be opened, read or written is a cache that is empty.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from ptxfence.batch.examine import Task
from ptxfence.triage.result import FileResult
from ptxfence.triage.serial import pack, unpack

MAX_BYTES = 256 * 1024 * 1024
_COMMIT_EVERY = 200  # results

_TABLE = "CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID"


def default_folder() -> Path:
    """`$PTXFENCE_CACHE_DIR`, else `ptxfence` in the user's cache folder."""
    chosen = os.environ.get("PTXFENCE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ptxfence"


def package_stamp() -> str:
    """A hash over names, sizes and times of the package's source files: another version has another stamp."""
    root = Path(__file__).resolve().parent.parent
    stamp = sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".lark"):
            status = path.stat()
            stamp.update(f"{path.relative_to(root)}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    return stamp.hexdigest()


class ResultCache:
    """A folder of results; use it as a context manager."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or default_folder()
        self._stamp = package_stamp()
        self._unsaved = 0
        self._database: sqlite3.Connection | None = None
        with suppress(OSError, sqlite3.Error):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self._folder / "results.sqlite", timeout=2)
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=OFF")
            self._database.execute(_TABLE)

    def __enter__(self) -> ResultCache:
        return self

    def __exit__(self, *_: object) -> None:
        if self._database is None:
            return
        with suppress(sqlite3.Error):
            self._database.commit()
            self._shrink(self._database)
        self._database.close()
        self._database = None

    def get(self, task: Task) -> FileResult | None:
        """The result of the same bytes under the same options, if one is kept."""
        if self._database is None:
            return None
        try:
            row = self._database.execute("SELECT data FROM results WHERE key = ?", (self._key(task),)).fetchone()
            return unpack(json.loads(zlib.decompress(row[0]))) if row else None
        except (sqlite3.Error, zlib.error, ValueError, KeyError, TypeError):
            return None

    def put(self, task: Task, result: FileResult) -> None:
        """Keep a result. Those of an internal error or a time limit are not kept: they may go away."""
        if self._database is None or any(error.kind == "internal" for error in result.errors):
            return
        if task.options.timeout is not None and result.undecided:
            return
        data = zlib.compress(json.dumps(pack(result)).encode(), 1)
        with suppress(sqlite3.Error):
            self._database.execute("INSERT OR REPLACE INTO results VALUES (?, ?)", (self._key(task), data))
            self._unsaved += 1
            if self._unsaved >= _COMMIT_EVERY:
                self._database.commit()
                self._unsaved = 0

    def _key(self, task: Task) -> str:
        return sha256(f"{self._stamp}:{task.sha256}:{task.options!r}".encode()).hexdigest()

    @staticmethod
    def _shrink(database: sqlite3.Connection) -> None:
        pages, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        if pages * size > MAX_BYTES:
            database.execute("DELETE FROM results")
            database.commit()
            database.execute("VACUUM")
