"""Names that a body uses and nothing declares: ptxas calls them unknown symbols."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from ptxfence.grammar.body import Body
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.lexical import NAME, blank_comments
from ptxfence.grammar.module import Module
from ptxfence.grammar.scopes import Scope

_PUNCTUATION = str.maketrans(dict.fromkeys(",[]{}()+-|!<>*/~&^?:;=@", " "))
_DIGITS = "0123456789"
_WORD = re.compile(r"[\w.$%]", re.ASCII)
_NAME = re.compile(NAME, re.ASCII)


def outer_names(module: Module) -> frozenset[str]:
    """What every body of a module may use: its variables, its functions and the constant WARP_SZ."""
    return frozenset((*module.globals, *(function.name for function in module.functions), "WARP_SZ"))


def unknown_names(outer: frozenset[str], body: Body) -> Iterator[tuple[str, int]]:
    """(message, offset) of the first use in each scope of every name that is declared nowhere.

    A name with `%` counts only if a register range of its stem is declared (`%r12` beyond `.reg .b32 %r<10>`):
    other `%` names may be special registers of a newer PTX ISA.
    """
    stems = {stem for scope in body.scopes for stem in scope.ranges}
    for number, instructions in _by_scope(body).items():
        scope = body.scopes[number]
        for name in sorted(_used(instructions) - scope.registers.keys()):
            if _in_range(scope, name) or name in outer or scope.find(name, body.end) is not None:
                continue
            if name[0] != "%" or name.rstrip(_DIGITS) in stems:
                yield f"{name[:80]} is not declared", _first(instructions, name)
    yield from _unknown_guards(body)
    yield from _unknown_targets(body, outer)


def _by_scope(body: Body) -> dict[int, list[Instruction]]:
    if len(body.scopes) == 1:
        return {0: body.instructions}
    found: defaultdict[int, list[Instruction]] = defaultdict(list)
    for instruction in body.instructions:
        found[instruction.scope].append(instruction)
    return found


def _used(instructions: list[Instruction]) -> set[str]:
    """The names in operand position; string methods, because a regular expression costs five times as much."""
    joined = ";".join([instruction.operand_text for instruction in instructions])
    words = set(blank_comments(joined).translate(_PUNCTUATION).split())
    return {word.partition(".")[0] for word in words if _NAME.match(word)}


def _in_range(scope: Scope, name: str) -> bool:
    """The usual case of `Scope.find`, quickly: a register of a range of this scope."""
    stem = name.rstrip(_DIGITS)
    known = scope.ranges.get(stem)
    return known is not None and len(stem) < len(name) and int(name[len(stem) :]) < known[0]


def _first(instructions: list[Instruction], name: str) -> int:
    for instruction in instructions:
        text = blank_comments(instruction.operand_text)
        at = text.find(name)
        while at >= 0:
            if not _WORD.match(text, at + len(name)) and not (at and _WORD.match(text, at - 1)):
                return instruction.operand_start + at
            at = text.find(name, at + 1)
    return instructions[0].start


def _unknown_guards(body: Body) -> Iterator[tuple[str, int]]:
    for guard in sorted({instruction.guard or "" for instruction in body.instructions} - {""}):
        if guard not in body.registers:
            user = next(instruction for instruction in body.instructions if instruction.guard == guard)
            yield f"predicate {guard[:80]} is not declared", user.start


def _unknown_targets(body: Body, outer: frozenset[str]) -> Iterator[tuple[str, int]]:
    for label, names in body.targets.items():
        for name in names:
            if name not in body.labels and name not in outer:
                yield f"{name[:80]} in the list {label[:80]} is not declared", body.list_offset(label)
