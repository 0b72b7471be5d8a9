"""Where PTX comes from: files, folders, gzip, standard input, Triton cache folders, and device code in binaries."""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from ptxfence.errors import InputError
from ptxfence.grammar import containers

_TRITON_STAGES = (".ttir", ".ttgir", ".llir", ".cubin")
_NO_METADATA: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class Source:
    """One PTX text and where it was found, or the reason why it cannot be read.

    `path` is for people (`lib.so:sm_90a`, `-` for standard input). `metadata` is the json that Triton keeps beside
    the PTX of a cache folder (`target`, `num_ctas`, `name`, ...), empty elsewhere. `notes` are remarks on the origin.
    """

    path: str
    text: str = ""
    notes: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=lambda: _NO_METADATA)
    error: InputError | None = None


class Sources(Iterator[Source]):
    """The sources under one path. `skipped` counts the files of a folder that are no PTX, once all are read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.skipped = 0
        self._each = self._find()

    def __next__(self) -> Source:
        return next(self._each)

    def _find(self) -> Iterator[Source]:
        path = Path(self.path)
        if self.path == "-":
            yield _source("-", sys.stdin.buffer.read())
        elif path.is_dir():
            yield from self._folder(path)
        else:
            yield from _file(path)

    def _folder(self, top: Path) -> Iterator[Source]:
        for folder, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                if not name.endswith((".ptx", ".ptx.gz")):
                    self.skipped += 1
                    continue
                for source in _file(path):
                    if _is_nothing(source):
                        self.skipped += 1
                    else:
                        yield source


def read_sources(path: str | os.PathLike[str]) -> Sources:
    """All PTX under `path`: a file, a folder (searched for `*.ptx` and `*.ptx.gz`), `-`, or a binary with PTX inside.

    Raises nothing: a source that cannot be read carries an InputError.
    """
    return Sources(os.fspath(path))


def decode(data: bytes) -> str:
    """Text of a file. Bytes that are no UTF-8 survive as lone surrogates, so that `encode` gives `data` back."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The bytes that `decode` made `text` from."""
    return text.encode("utf-8", "surrogateescape")


def _file(path: Path) -> Iterator[Source]:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        yield Source(str(path), error=InputError(f"{path}: {reason}"))
        return
    if containers.is_container(data):
        yield from _container(path)
        return
    metadata, notes = _beside(path)
    yield _source(str(path), data, metadata, notes)


def _source(
    path: str, data: bytes, metadata: Mapping[str, object] = _NO_METADATA, notes: tuple[str, ...] = ()
) -> Source:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return Source(path, error=InputError(f"{path}: the text is UTF-16; PTX is ASCII or UTF-8"))
    if b".version" not in data and b"\0" in data:
        return Source(path, error=InputError(f"{path}: binary data, no PTX"))
    return Source(path, decode(data), notes, metadata)


def _container(path: Path) -> Iterator[Source]:
    try:
        found = containers.extract(path)
    except InputError as error:
        yield Source(str(path), error=error)
        return
    if not found:
        yield Source(str(path), error=InputError(f"{path}: no PTX inside (only machine code)"))
    for name, data in found:
        yield _source(f"{path}:{name}", data, notes=("extracted by cuobjdump",))


def _beside(path: Path) -> tuple[Mapping[str, object], tuple[str, ...]]:
    """Triton's metadata of a PTX file, and remarks."""
    stem = path.name.removesuffix(".gz").removesuffix(".ptx")
    record = path.with_name(f"{stem}.json")
    if record.is_file():
        try:
            loaded: object = json.loads(record.read_bytes())
        except ValueError:
            return _NO_METADATA, (f"{record.name} is no JSON",)
        return (cast("dict[str, object]", loaded), ()) if isinstance(loaded, dict) else (_NO_METADATA, ())
    if any(path.with_name(stem + stage).is_file() for stage in _TRITON_STAGES):
        note = (
            "Triton dump folder (no json beside the PTX): variants of a kernel overwrite each other there and a cache "
            "hit leaves it empty; the cache folder holds them all"
        )
        return _NO_METADATA, (note,)
    return _NO_METADATA, ()


def _is_nothing(source: Source) -> bool:
    """A file of a folder that has the right name and no PTX in it."""
    if source.error is not None:
        return "no PTX" in str(source.error)
    return not source.text.strip()
