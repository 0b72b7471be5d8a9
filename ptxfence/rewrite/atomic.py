"""Replaces a file in one step: whatever happens, the old or the new content is there in full, never a mixture.

The new content goes to a temporary file in the same folder, is flushed to the disk and renamed over the old one
(rename is atomic within a file system, POSIX.1-2017). A process killed in between leaves at most a hidden
`.NAME.*.ptxfence-tmp` beside the untouched original. Hard links to the old file keep the old content.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from ptxfence.errors import InputError

SUFFIX = ".ptxfence-tmp"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file as it was read; `path` is the real one (symbolic links resolved), so that a link stays a link."""

    path: Path
    data: bytes


def read(path: str | os.PathLike[str]) -> Snapshot:
    """Reads a file that may be replaced later. Raises InputError."""
    try:
        real = Path(os.path.realpath(path, strict=True))
        return Snapshot(real, real.read_bytes())
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: {os.strerror(error.errno or 0)}") from None


def replace(snapshot: Snapshot, data: bytes) -> None:
    """Puts `data` in place of the file's content; mode, and owner where allowed, stay.

    Raises InputError, with the file untouched: it is read-only or gone, its content is no longer what the snapshot
    holds, its folder cannot be written, or the disk is full. Writes nothing if `data` is the content already.
    """
    path = snapshot.path
    try:
        status = path.stat()
        _require_same(snapshot)
        if data == snapshot.data:
            return
        if not stat.S_IMODE(status.st_mode) & 0o222:
            raise InputError(f"{path}: read-only, not written")  # root could, but the owner said no
        with _temporary(path, data, status) as temporary:
            _require_same(snapshot)
            os.replace(temporary, path)
        _flush_folder(path.parent)
    except OSError as error:
        raise InputError(f"{path}: {os.strerror(error.errno or 0)}, not written") from None


def create(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file of ours (a report, a patched copy), over an old one if there is one, in one step.

    Raises InputError.
    """
    target = Path(os.path.realpath(path))
    try:
        status = target.stat() if target.exists() else None
        if status is not None and not stat.S_ISREG(status.st_mode):
            target.write_bytes(data)  # a pipe or device has no content to protect
            return
        with _temporary(target, data, status) as temporary:
            os.replace(temporary, target)
        _flush_folder(target.parent)
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: {os.strerror(error.errno or 0)}, not written") from None


def _require_same(snapshot: Snapshot) -> None:
    if snapshot.path.read_bytes() != snapshot.data:
        raise InputError(f"{snapshot.path}: changed since it was read, not written")


@contextlib.contextmanager
def _temporary(path: Path, data: bytes, status: os.stat_result | None) -> Generator[str]:
    """A finished, flushed file with `data` beside `path`; removed unless it was renamed away."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=SUFFIX, dir=path.parent)
    try:
        try:
            _write_all(handle, data)
            _copy_rights(handle, status)
            os.fsync(handle)
        finally:
            os.close(handle)
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _copy_rights(handle: int, status: os.stat_result | None) -> None:
    if status is None:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)
        return
    with contextlib.suppress(PermissionError):
        os.fchown(handle, status.st_uid, status.st_gid)
    os.fchmod(handle, stat.S_IMODE(status.st_mode))


def _flush_folder(folder: Path) -> None:
    # Without it a power failure may lose the rename. Some file systems refuse to sync a folder.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
