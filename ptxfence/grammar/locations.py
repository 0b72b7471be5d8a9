"""`.loc` and `.file`: which line of the kernel's own language an instruction comes from (PTX ISA 11.5)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping

from ptxfence.grammar.lexical import COMMENT, NAME
from ptxfence.grammar.model import SourceLocation

_LOC = re.compile(
    rf"{COMMENT}|\.loc\s++(\d++)\s++(\d++)\s++(\d++)"
    rf"(?:\s*+,\s*+function_name\s++{NAME}(?:\s*+\+\s*+\w++)?\s*+,\s*+inlined_at\s++(\d++)\s++(\d++)\s++(\d++))?",
    re.ASCII,
)


class Locations:
    """The `.loc` directives of a body, in text order."""

    def __init__(self, text: str, start: int, end: int, files: Mapping[int, str]) -> None:
        self._files = files
        self._offsets: list[int] = []
        self._places: list[tuple[tuple[int, int, int], tuple[int, int, int] | None]] = []
        if text.find(".loc", start, end) < 0:
            return
        for match in _LOC.finditer(text, start, end):
            if match[1] is None:
                continue
            place = (int(match[1]), int(match[2]), int(match[3]))
            inlined = (int(match[4]), int(match[5]), int(match[6])) if match[4] else None
            self._offsets.append(match.start())
            self._places.append((place, inlined))

    def at(self, offset: int) -> SourceLocation | None:
        """The location in force at `offset`; None before the first `.loc` and for line 0 (compiler-made code)."""
        index = bisect_right(self._offsets, offset) - 1
        return self._location(self._places[index][0]) if index >= 0 else None

    def chain(self, offset: int) -> tuple[SourceLocation, ...]:
        """The location at `offset` and the calls it was inlined through, innermost first."""
        index = bisect_right(self._offsets, offset) - 1
        if index < 0:
            return ()
        found: list[SourceLocation] = []
        place: tuple[int, int, int] | None = self._places[index][0]
        seen: set[tuple[int, int, int]] = set()
        while place is not None and place not in seen:
            seen.add(place)
            location = self._location(place)
            if location is not None:
                found.append(location)
            place = self._caller(place, index)
        return tuple(found)

    def _caller(self, place: tuple[int, int, int], index: int) -> tuple[int, int, int] | None:
        """Where the nearest earlier `.loc` of that place says it was inlined."""
        for at in range(index, max(-1, index - 10_000), -1):
            if self._places[at][0] == place:
                return self._places[at][1]
        return None

    def _location(self, place: tuple[int, int, int]) -> SourceLocation | None:
        file, line, column = place
        return SourceLocation(self._files.get(file, f"file {file}"), line, column) if line else None
