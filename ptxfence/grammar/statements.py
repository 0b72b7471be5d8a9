"""Level 1 inside a function body: one regular expression yields guard, opcode and operand text of every statement."""

from __future__ import annotations

import re

from ptxfence.grammar.lexical import COMMENT, GAP, LOC_GAP, NAME, STRING, nested

_VECTOR = rf"\{{(?:[^{{}};/\"]++|{COMMENT}|/)*+\}}"
_REST = rf"[^;{{}}/\"]*+(?:(?:{COMMENT}|/|{_VECTOR})[^;{{}}/\"]*+)*+"
_BRACES = rf"\{{{nested(3, ';')}\}}"  # of an initialiser
_TEXT = rf"[^;{{}}/\"]*+(?:(?:{COMMENT}|/|{STRING}|{_BRACES})[^;{{}}/\"]*+)*+"
# The look-behind and look-ahead tell a label `L:` or `L :`; modifiers may stand off: `mov .b32`.
_OPCODE = rf"[A-Za-z_][\w.:]*+(?<!:)(?!{GAP}:)(?:(?=\s*+[./])(?:{GAP}\.[A-Za-z_][\w.]*+(?:::[\w.]++)*+)*+)?+"

# What `Match.lastindex` says the statement is; a statement without its `;` stops one group earlier.
UNENDED_INSTRUCTION, INSTRUCTION, LABEL, OPEN, CLOSE, UNENDED_DIRECTIVE, DIRECTIVE, BAD = 3, 4, 5, 6, 7, 9, 10, 11

STATEMENT = re.compile(
    rf"{LOC_GAP}(?:"
    rf"(@{GAP}(?:!{GAP})?{NAME}{GAP})?({_OPCODE})({_REST})(;)?"
    rf"|({NAME}){GAP}:"
    r"|(\{)|(\})"
    rf"|(\.[A-Za-z_]\w*+)({_TEXT})(;)?"
    r"|(\S[^;{}]*+;?)"
    r"|\Z)",
    re.ASCII,
)

_BLOCK = re.compile(rf"\{{{nested(4)}\}}", re.ASCII)
BRACES = re.compile(rf"{COMMENT}|{STRING}|\{{[^{{}}/\"]*+\}}|[{{}}]", re.ASCII)

opcodes: dict[str, str] = {}  # as written -> clean, for the life of the process


def opcode_of(raw: str) -> str:
    """The opcode without the white space and comments that may stand before its modifiers, interned."""
    known = opcodes.get(raw)
    if known is None:
        clean = re.sub(rf"\s++|{COMMENT}", "", raw, flags=re.ASCII)
        known = opcodes[raw] = opcodes.setdefault(clean, clean)
    return known


def closing_brace(text: str, opening: int, depth: int = 0) -> int | None:
    """Offset of the brace that closes the one at `opening`, or the `depth` ones open before; None if there is none."""
    block = None if depth else _BLOCK.match(text, opening)
    if block is not None:  # no more than four levels: one match
        return block.end() - 1
    for match in BRACES.finditer(text, opening):
        token = match.group()
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if depth == 0:
                return match.start()
        elif depth == 0 and token[0] == "{":
            return match.end() - 1
    return None
