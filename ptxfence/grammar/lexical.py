"""The characters of PTX: what a name, a number, a comment and a gap look like (PTX ISA 4.2 to 4.5).

PTX is ASCII outside comments and strings, so every pattern is compiled with re.ASCII. Quantifiers are
possessive, so that no input makes a scan go back over what it has read.
"""

from __future__ import annotations

import re

COMMENT = r"//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"
NAME = r"(?:[A-Za-z][\w$]*+|[_$%][\w$]++)"
STRING = r'"[^"]*+"?'
INTEGER = r"(?:0[xX][0-9a-fA-F]++|0[bB][01]++|0[0-7]*+|[1-9]\d*+)U?"
FLOAT = r"\d++\.\d*+(?:[eE][+-]?\d++)?|\.\d++(?:[eE][+-]?\d++)?|\d++[eE][+-]?\d++"
BITS = r"0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b"
LOC = (
    r"\.loc(?:_intermediate)?\s++\d++\s++\d++\s++\d++\b"
    rf"(?:\s*+,\s*+function_name\s++{NAME}(?:\s*+\+\s*+\w++)?\s*+,\s*+inlined_at\s++\d++\s++\d++\s++\d++)?"
)
GAP = rf"\s*+(?:(?:{COMMENT})\s*+)*+"
LOC_GAP = rf"\s*+(?:(?:{COMMENT}|{LOC})\s*+)*+"

_COMMENT = re.compile(COMMENT)


def nested(depth: int, stop: str = "") -> str:
    """Text whose braces nest at most `depth` deep; `stop` are characters that end it."""
    inside = rf"|\{{{nested(depth - 1, stop)}\}}" if depth else ""
    plain = rf"[^{stop}{{}}/\"]*+"
    return rf"{plain}(?:(?:{COMMENT}|/|{STRING}{inside}){plain})*+"


def blank_comments(text: str) -> str:
    """`text` with each comment turned into spaces, so that positions stay."""
    if "/" not in text:
        return text
    return _COMMENT.sub(lambda match: " " * len(match.group()), text)


def integer(text: str) -> int:
    """The value of an integer literal: decimal, `0x`, `0b` or octal, with or without `U` (PTX ISA 4.5.1)."""
    digits = text.rstrip("U")
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    if digits[:2] in ("0b", "0B"):
        return int(digits, 2)
    return int(digits, 8 if digits[0] == "0" else 10)
