"""Offsets <-> lines and columns of one text, and errors that show their line."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from ptxfence.errors import PtxSyntaxError

FEW = 16
_LINE_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """Line table of a text, built when first asked for. Lines and columns count from 1."""

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.filename = filename
        self._asked = 0

    @cached_property
    def _starts(self) -> list[int]:
        if "\r" not in self.text:
            return [0, *accumulate(len(line) + 1 for line in self.text.split("\n")[:-1])]
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character."""
        if self._asked < FEW and "\r" not in self.text:  # counting is quicker than a table for so few
            self._asked += 1
            return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def start_of(self, line: int) -> int:
        """Offset of the first character of a line."""
        return self._starts[line - 1]

    def line_text(self, line: int) -> str:
        """A line without its line end; empty past the last one."""
        if not 1 <= line <= len(self._starts):
            return ""
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return self.text[self._starts[line - 1] : end].rstrip("\r\n")

    def error(self, message: str, offset: int) -> PtxSyntaxError:
        line, column = self.position(offset)
        return PtxSyntaxError(
            message, filename=self.filename, line=line, column=column, source_line=self.line_text(line)
        )
