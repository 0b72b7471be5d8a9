"""`.loc` and `.file`: which line of the kernel's own language an instruction comes from (PTX ISA 11.5)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property

from ptxfence.grammar.lexical import COMMENT, NAME
from ptxfence.grammar.model import SourceLocation

_LOC = re.compile(
    rf"{COMMENT}|\.loc\s++(\d++)\s++(\d++)\s++(\d++)"
    rf"(?:\s*+,\s*+function_name\s++{NAME}(?:\s*+\+\s*+\w++)?\s*+,\s*+inlined_at\s++(\d++)\s++(\d++)\s++(\d++))?",
    re.ASCII,
)


Place = tuple[int, int, int]  # file, line, column


class Locations:
    """The `.loc` directives of a body, in text order."""

    def __init__(self, text: str, start: int, end: int, files: Mapping[int, str]) -> None:
        self._files = files
        self._text = text
        self._span = start, end

    @cached_property
    def _table(self) -> tuple[list[int], list[tuple[Place, Place | None]]]:
        """Offsets of the directives, and for each its place and that of the call it was inlined at."""
        offsets: list[int] = []
        places: list[tuple[Place, Place | None]] = []
        if self._text.find(".loc", *self._span) < 0:
            return offsets, places
        for match in _LOC.finditer(self._text, *self._span):
            if match[1] is None:
                continue
            inlined = (int(match[4]), int(match[5]), int(match[6])) if match[4] else None
            offsets.append(match.start())
            places.append(((int(match[1]), int(match[2]), int(match[3])), inlined))
        return offsets, places

    def at(self, offset: int) -> SourceLocation | None:
        """The location in force at `offset`; None before the first `.loc` and for line 0 (compiler-made code)."""
        if "_table" not in self.__dict__ and (match := self._last(offset)) is not None:
            return self._location((int(match[1]), int(match[2]), int(match[3])))
        offsets, places = self._table
        index = bisect_right(offsets, offset) - 1
        return self._location(places[index][0]) if index >= 0 else None

    def _last(self, offset: int) -> re.Match[str] | None:
        """The directive before `offset`, without the table, where no comment can hide it."""
        at = self._text.rfind(".loc", self._span[0], offset)
        line = self._text.rfind("\n", 0, max(at, 0)) + 1
        if at < 0 or self._text[line:at].strip() or self._text.find("/*", self._span[0], offset) >= 0:
            return None
        match = _LOC.match(self._text, at)
        return match if match is not None and match[1] is not None else None

    def chain(self, offset: int) -> tuple[SourceLocation, ...]:
        """The location at `offset` and the calls it was inlined through, innermost first."""
        offsets, places = self._table
        index = bisect_right(offsets, offset) - 1
        if index < 0:
            return ()
        found: list[SourceLocation] = []
        place: Place | None = places[index][0]
        seen: set[Place] = set()
        while place is not None and place not in seen:
            seen.add(place)
            location = self._location(place)
            if location is not None:
                found.append(location)
            place = self._caller(place, index)
        return tuple(found)

    def _caller(self, place: Place, index: int) -> Place | None:
        """Where the nearest earlier `.loc` of that place says it was inlined."""
        for at in range(index, max(-1, index - 10_000), -1):
            if self._table[1][at][0] == place:
                return self._table[1][at][1]
        return None

    def _location(self, place: Place) -> SourceLocation | None:
        file, line, column = place
        return SourceLocation(self._files.get(file, f"file {file}"), line, column) if line else None
