"""Finds the PTX among the arguments of ptxas, also in response files (`--options-file`), and puts other files there."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_OUTPUT = ("-o", "--output-file")
_OPTIONS_FILE = ("-optf", "--options-file")
_AS_STRING = ("-ias", "--input-as-string")
_PROBE = 1 << 16  # bytes in which `.version` must appear
_DEPTH = 8  # response files in response files
_VERSION = re.compile(rb"^[ \t]*\.version[ \t]+\d", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The words of a command line, response files replaced by what they hold. `inputs` are the PTX files in it.

    `strings` says whether PTX itself is among the words.
    """

    words: tuple[str, ...]
    inputs: tuple[str, ...]
    strings: bool = False

    def replaced(self, files: Mapping[str, Path], folder: Path) -> list[str]:
        """The words with other files in place of inputs; a long command line goes through a response file."""
        words = [str(files.get(word, word)) if word in self.inputs else word for word in self.words]
        if sum(map(len, words)) < 64 * 1024:
            return words
        listing = folder / "options"
        listing.write_text("\n".join(shlex.quote(word) for word in words), encoding="utf-8", errors="surrogateescape")
        return ["--options-file", str(listing)]


def read_arguments(words: list[str]) -> Arguments:
    """Reads a command line. Raises OSError or ValueError for a response file that cannot be read."""
    flat = tuple(_flattened(words, 0))
    strings = any(word.partition("=")[0] in _AS_STRING for word in flat)
    return Arguments(flat, tuple(_inputs(flat)), strings)


def _flattened(words: list[str], depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        raise ValueError("response files include each other")
    remaining = iter(words)
    for word in remaining:
        files = _value(word, _OPTIONS_FILE, remaining)
        if files is None:
            yield word
            continue
        for file in files.split(","):
            text = Path(file).read_text(encoding="utf-8", errors="surrogateescape")
            yield from _flattened(shlex.split(text), depth + 1)


def _value(word: str, names: tuple[str, ...], remaining: Iterator[str]) -> str | None:
    """The value of an option spelled `-o V` or `-o=V`; None if the word is another one."""
    name, equals, value = word.partition("=")
    if name not in names:
        return None
    return value if equals else next(remaining, "")


def _inputs(words: tuple[str, ...]) -> Iterator[str]:
    """A word is an input if it is no option or option's output and names a file that holds PTX."""
    remaining = iter(words)
    seen: set[str] = set()
    for word in remaining:
        if _value(word, _OUTPUT, remaining) is not None or _value(word, _AS_STRING, remaining) is not None:
            continue
        if not word.startswith("-") and word not in seen and _holds_ptx(word):
            seen.add(word)
            yield word


def _holds_ptx(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return _VERSION.search(file.read(_PROBE)) is not None
