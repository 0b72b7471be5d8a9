"""Data of `.section` (PTX ISA 11.5.4): `.b8 1, 2`, labels, addresses and differences of labels."""

from __future__ import annotations

import re

from ptxfence.grammar.lexical import GAP, INTEGER, NAME

_PLACE = rf"(?:{NAME}|\.[A-Za-z_]\w*+)"
_VALUE = rf"(?:-?{INTEGER}|{_PLACE}(?:{GAP}[-+]{GAP}(?:{INTEGER}|{_PLACE}))?)"
_DATA = re.compile(rf"{GAP}(?:(?:\.b\d++{GAP}{_VALUE}(?:{GAP},{GAP}{_VALUE})*+|{NAME}{GAP}:){GAP})*+", re.ASCII)


def section_end(text: str, start: int, end: int) -> int:
    """Where the data in `text[start:end]` ends; `end` if all of it is data."""
    match = _DATA.match(text, start, end)
    return match.end() if match else start
