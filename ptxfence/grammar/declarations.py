"""Declarations: registers, variables, parameters (PTX ISA 5.2 to 5.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ptxfence.grammar.lexical import NAME, blank_comments, integer
from ptxfence.grammar.model import Variable

_WORD = re.compile(r"\s*+\.(\w++)")
_NUMBER = re.compile(r"\s*+(\w++)")
_PARENTHESES = re.compile(r"\s*+\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)")
_DECLARATOR = re.compile(rf"\s*+({NAME})\s*+(?:<\s*+(\w++)\s*+>)?((?:\s*+\[[^\]]*+\])*+)\s*+(=)?")
_INITIALISER = re.compile(r"(?:[^,{}()]++|\([^()]*+(?:\([^()]*+\)[^()]*+)*+\))*+")
_SPACES = frozenset(("reg", "shared", "global", "const", "local", "param", "tex", "sreg"))
_BITS = re.compile(r"[busf](\d+)$|e\d+m\d+|bf16|f16x2|tf32")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}


@dataclass(frozen=True, slots=True)
class Declarator:
    """One name of a declaration. `count` is that of `name<count>`; `elements` is None for `name[]`."""

    name: str
    start: int
    end: int
    count: int | None
    elements: int | None


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.shared .align 16 .b8 a[4], b;`: `type` keeps its dots off (`b8`), `width` is bytes of one element."""

    space: str
    type: str
    align: int
    width: int
    names: tuple[Declarator, ...]


def declaration(text: str, start: int, end: int) -> Declaration | None:
    """The declaration in `text[start:end]` (without `;`), None if it is none."""
    plain = blank_comments(text[start:end])
    space, kind, align, lanes, at = "", "", 0, 1, 0
    while match := _WORD.match(plain, at):
        word, at = match[1], match.end()
        if word in _SPACES:
            space = space or word
        elif word == "align":
            number = _NUMBER.match(plain, at)
            if number is None:
                return None
            align, at = int(number[1]) if number[1].isdigit() else 0, number.end()
        elif word == "attribute":
            inside = _PARENTHESES.match(plain, at)
            at = inside.end() if inside else at
        elif word in _VECTORS:
            lanes = _VECTORS[word]
        elif word not in ("ptr", "extern", "visible", "weak", "common", "hidden"):
            kind = word
    names = tuple(_declarators(plain, at, start))
    if not names:
        return None
    width = width_of(kind) * lanes
    return Declaration(space, kind, align or width, width, names)


def width_of(kind: str) -> int:
    """Bytes of one element of a fundamental type; opaque types (texref, ...) are handles of 8 bytes."""
    digits = re.search(r"(\d+)(x2)?$", kind)
    if kind == "pred":
        return 1
    if digits is None or kind[0] not in "busf":
        return 8
    return max(1, int(digits[1]) * (2 if digits[2] else 1) // 8)


def _declarators(plain: str, at: int, base: int) -> Iterator[Declarator]:
    while match := _DECLARATOR.match(plain, at):
        at = match.end()
        count = integer(match[2]) if match[2] and match[2].isdigit() else None
        elements: int | None = 1
        for dimension in re.findall(r"\[\s*(\w*)\s*\]", match[3]):
            elements = elements * integer(dimension) if elements is not None and dimension[:1].isdigit() else None
        if match[4]:
            initialiser = _skip_initialiser(plain, at)
            elements = elements if elements is not None else None
            at = initialiser
        yield Declarator(match[1], base + match.start(1), base + match.end(1), count, elements)
        if plain[at : at + 1] != ",":
            return
        at += 1


def _skip_initialiser(plain: str, at: int) -> int:
    depth = 0
    for match in re.compile(r"[{}(),]").finditer(plain, at):
        token = match.group()
        if token == "," and depth == 0:
            return match.start()
        depth += (token in "{(") - (token in "})")
    return len(plain)


def variables(text: str, start: int, end: int, function: str | None = None) -> tuple[Variable, ...]:
    """The variables that `text[start:end]` declares; empty if it is no declaration."""
    found = declaration(text, start, end)
    if found is None:
        return ()
    return tuple(
        Variable(
            item.name,
            found.space,
            found.align,
            None if item.elements is None else item.elements * found.width,
            item.start,
            item.end,
            function,
        )
        for item in found.names
    )
