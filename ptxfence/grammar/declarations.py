"""Declarations: registers, variables, parameters (PTX ISA 5.2 to 5.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxfence.grammar.lexical import COMMENT, GAP, NAME, integer, nested
from ptxfence.grammar.model import Variable
from ptxfence.grammar.shapes import Refusal, ShapeError, abstract_at, accepted, tree

_WIDTH = re.compile(r"[busf]?f?(\d+)(?:x(\d+))?$")
# `.reg .b32 %r<8>`, `.param .b64 p`, `.param .align 8 .b8 p[16]`: call sequences of debug builds have 10^5 of them.
_USUAL = re.compile(
    rf"\.(reg|param)\s++(?:\.align\s++([1-9]\d*+)\s++)?\.([busf]\d++|pred)\s++({NAME})(?:<([1-9]\d*+)>|\[([1-9]\d*+)\])?\s*+$",
    re.ASCII,
)
_PLAIN = r"[^,(){}/]*+"
_CALL = rf"\((?:{_PLAIN}|\({_PLAIN}\))*+\)"
_INITIALISER = re.compile(rf"={GAP}(?:\{{{nested(7)}\}}|(?:[^,(){{}}/]|{COMMENT}|/|{_CALL})*+)", re.ASCII)
_MARKS = re.compile(rf"{COMMENT}|[=,{{}}()]")


@dataclass(frozen=True, slots=True)
class Name:
    """One name of a declaration: leaf numbers of it, of `<count>` and of its dimensions (None for `[]`)."""

    leaf: int
    count: int | None
    dimensions: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """What the shape of a declaration says; `align` is a leaf number. `type` keeps its dot off (`b8`)."""

    space: str
    type: str
    lanes: int
    align: int | None
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared name. Sizes in bytes; `size` is None for `x[]`. `count` is that of `%r<count>`."""

    name: str
    space: str
    type: str
    align: int
    size: int | None
    count: int | None
    start: int
    end: int


def declared(text: str, start: int, end: int) -> tuple[Declared, ...]:
    """The names that `text[start:end]`, a declaration without its `;`, declares. Raises ShapeError."""
    plain = text[start:end]
    usual = _USUAL.match(plain)
    if usual is None:
        return _fill(plain, start, "declaration")
    space, align, kind, name, count, dimension = usual.groups()
    width = width_of(kind)
    size = width * int(dimension or 1)
    at = start + usual.start(4)
    spread = None if count is None else int(count)
    return (Declared(name, space, kind, int(align or width), size, spread, at, at + len(name)),)


def parameters(text: str, start: int, end: int) -> tuple[Declared, ...]:
    """The names of a parameter list, `text[start:end]` with its parentheses; empty if it is malformed."""
    if end <= start + 1:
        return ()
    found: list[Declared] = []
    at = start + 1
    for part in _parts(text[at : end - 1]):
        try:
            found.extend(_fill(part, at, "parameter"))
        except ShapeError:
            return ()
        at += len(part) + 1
    return tuple(found)


def variable(item: Declared, function: str | None, name: str | None = None) -> Variable:
    return Variable(name or item.name, item.space, item.align, item.size, item.start, item.end, function)


def _fill(text: str, base: int, start: str) -> tuple[Declared, ...]:
    if "=" in text:
        text = _without_initialisers(text)
    shape, leaves, offsets = abstract_at(text)
    form = accepted(_form(shape, start), text)
    width = width_of(form.type) * form.lanes
    align = integer(leaves[form.align]) if form.align is not None else width
    found: list[Declared] = []
    for item in form.names:
        size: int | None = width
        for dimension in item.dimensions:
            size = None if size is None or dimension is None else size * integer(leaves[dimension])
        name = leaves[item.leaf]
        count = None if item.count is None else integer(leaves[item.count])
        at = base + offsets[item.leaf]
        found.append(Declared(name, form.space, form.type, align, size, count, at, at + len(name)))
    return tuple(found)


def _parts(text: str) -> Iterator[str]:
    """The text between the commas outside parentheses."""
    last = depth = 0
    for match in _MARKS.finditer(text):
        token = match.group()
        if token == "," and depth == 0:
            yield text[last : match.start()]
            last = match.end()
        depth += (token == "(") - (token == ")")
    if text[last:].strip():
        yield text[last:]


def _without_initialisers(text: str) -> str:
    """`text` with each `= value` turned into spaces: only names and sizes matter here, and tables can be long."""
    return _INITIALISER.sub(lambda match: " " * len(match[0]), text)


@cache
def _form(shape: str, start: str) -> Form | Refusal:
    found: Any = tree(shape, start)
    if isinstance(found, Refusal):
        return found
    from ptxfence.grammar.templates import leaf_numbers

    numbers = leaf_numbers(found)
    space, kind, lanes, align = "", "", 1, None
    names: list[Name] = []
    for child in found.children:
        token = str(child).strip()[1:]
        if getattr(child, "type", "") == "SPACE":
            space = token
        elif getattr(child, "type", "") == "TYPE":
            kind = token
        elif getattr(child, "type", "") == "VECTOR":
            lanes = int(token[1:])
        elif getattr(child, "data", "") == "alignment":
            align = numbers[child.children[-1].start_pos]
        elif getattr(child, "data", "") == "declarator":
            names.append(_name(child.children, numbers))
    if start == "parameter":
        names.extend(_parameter_name(found.children, numbers))
    return Form(space, kind, lanes, align, tuple(names))


def _name(children: list[Any], numbers: dict[int, int]) -> Name:
    count: int | None = None
    dimensions: list[int | None] = []
    for child in children[1:]:
        rule = getattr(child, "data", "")
        if rule == "count":
            count = numbers[child.children[0].start_pos]
        elif rule == "dimension":
            dimensions.append(numbers[child.children[0].start_pos] if child.children else None)
    return Name(numbers[children[0].start_pos], count, tuple(dimensions))


def _parameter_name(children: list[Any], numbers: dict[int, int]) -> Iterator[Name]:
    for index, child in enumerate(children):
        if getattr(child, "type", "") == "NAME":
            yield _name(children[index:], numbers)


@cache
def width_of(kind: str) -> int:
    """Bytes of one element of a type; a texref and its like is a handle of 8 bytes, a predicate counts as one."""
    match = _WIDTH.match(kind)
    if match is None:
        return 1 if kind == "pred" else 8
    return max(1, int(match[1]) * int(match[2] or 1) // 8)
