"""The kernel's own source, as far as it can be found on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ptxfence.grammar.model import SourceLocation

_LEVELS = 5  # folders above a PTX file that are searched for its sources
_MAX_BYTES = 4 * 1024 * 1024


@lru_cache(maxsize=1024)
def find_source(file: str, ptx_path: str) -> Path | None:
    """The file that a `.loc` names: as it stands, from the working folder, or from a folder above the PTX file."""
    return next((path for path in _candidates(file, ptx_path) if _is_file(path)), None)


def source_line(location: SourceLocation, ptx_path: str) -> str:
    """The text of a source line without its indentation; empty where the file is not here."""
    path = find_source(location.file, ptx_path)
    lines = _lines(path) if path is not None else ()
    return lines[location.line - 1].strip() if 0 < location.line <= len(lines) else ""


def relative(path: Path, folder: Path) -> str | None:
    """The path from a folder with forward slashes; None where it does not lie below it."""
    resolved, root = path.resolve(), folder.resolve()
    return resolved.relative_to(root).as_posix() if resolved.is_relative_to(root) else None


def _candidates(file: str, ptx_path: str) -> Iterator[Path]:
    yield Path(file)
    if Path(file).is_absolute():
        return
    folder = Path(ptx_path).resolve().parent
    for place in (folder, *folder.parents[:_LEVELS]):
        yield place / file


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


@lru_cache(maxsize=64)
def _lines(path: Path) -> tuple[str, ...]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            return ()
        return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()
