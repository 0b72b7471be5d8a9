"""Names that a body uses and nothing declares: ptxas calls them unknown symbols."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxfence.grammar.function import Function
from ptxfence.grammar.lexical import COMMENT, LOC, NAME, STRING
from ptxfence.grammar.module import Module

# A name that is not behind a dot or colon (modifier), inside a number, or before `<` (a declared range).
_USE = re.compile(rf"{COMMENT}|{STRING}|{LOC}|(?<![\w.:$%])({NAME})(?!\s*+<)", re.ASCII)
_KNOWN = frozenset(("WARP_SZ",))
_DIGITS = "0123456789"


def unknown_names(module: Module, function: Function) -> Iterator[tuple[str, int]]:
    """(message, offset) of the first use in each scope of every name that is declared nowhere.

    A name with `%` counts only if a register range of its stem is declared (`%r12` beyond `.reg .b32 %r<10>`):
    other `%` names may be special registers of a newer PTX ISA.
    """
    body = function.body
    outer = _KNOWN | module.globals.keys() | {item.name for item in module.functions}
    outer |= {opcode.partition(".")[0] for opcode in {item.opcode for item in body.instructions}}
    for prototype in body.prototypes.values():
        outer |= set(_USE.findall(prototype))
    stems = {stem for scope in body.scopes for stem in scope.ranges}
    for start, end, number in body.segments():
        scope = body.scopes[number]
        for name in sorted(set(_USE.findall(body.text, start, end)) - outer):
            if not name or scope.find(name, end) is not None:
                continue
            if name[0] == "%" and name.rstrip(_DIGITS) not in stems:
                continue
            yield f"{name} is not declared", _first(body.text, start, end, name)


def _first(text: str, start: int, end: int, name: str) -> int:
    return next(match.start(1) for match in _USE.finditer(text, start, end) if match[1] == name)
