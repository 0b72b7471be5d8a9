"""The operand lists that fill a file, read without lark: names, integers, `[name+integer]` and flat vectors.

Everything else, and every error, is for the shapes and lark (shapes.py). Both ways give equal operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ptxfence.grammar.lexical import NAME
from ptxfence.grammar.model import Address, Immediate, Negated, Operand, Pair, Register, Sink, Symbol, Vector

_NUMBER = r"[1-9]\d{0,15}+|0x[0-9a-fA-F]{1,12}+|0"
_WORD = re.compile(rf"{NAME}\Z", re.ASCII)
_LITERAL = re.compile(rf"(-?)({_NUMBER})\Z", re.ASCII)
_ADDRESS = re.compile(rf"\[\s*+({NAME})\s*+(?:\+\s*+(-?)({_NUMBER})\s*+)?\]\Z", re.ASCII)
_RARE = re.compile(
    rf"({NAME})\.([xyzw])\Z|({NAME})\s*+\|\s*+({NAME})\Z|_\s*+\|\s*+({NAME})\Z|!\s*+({NAME})\Z", re.ASCII
)
_VECTOR = re.compile(r"\s*+(?:\{([^{}\[\]\"/()|.!-]++)\}|([^{},]++))\s*+(,|\Z)", re.ASCII)
_BLANK = " \t\n\r\f\v"
_RESERVED = "WARP_SZ"
_SINK = Sink()
_MOST = 4096
_literals: dict[str, Operand] = {"_": _SINK}

Resolve = Callable[[str], Operand]
Known = Mapping[str, Operand]


def quick(text: str, resolve: Resolve, known: Known) -> tuple[Operand, ...] | None:
    """The operands in `text`; None where it is not as simple as that. `known` holds names that are resolved."""
    if "{" in text:
        return _with_vectors(text, resolve, known)
    found: list[Operand] = []
    for part in text.split(","):
        word = part.strip(_BLANK)
        operand = known.get(word) or _literals.get(word) or _single(word, resolve, known)
        if operand is None:
            return None if text.strip(_BLANK) else ()
        found.append(operand)
    return tuple(found)


def _single(word: str, resolve: Resolve, known: Known) -> Operand | None:
    """One operand that is no vector."""
    if _WORD.match(word) and not word.startswith(_RESERVED):
        return resolve(word)
    if (match := _ADDRESS.match(word)) is not None:
        base, sign, offset = match.groups()
        if base.startswith(_RESERVED):
            return None
        moved = int(offset, 0) if offset else 0
        return _address(known.get(base) or resolve(base), -moved if sign else moved)
    if (match := _LITERAL.match(word)) is not None:
        literal = Immediate(-int(match[2], 0) if match[1] else int(match[2], 0))
        if len(_literals) < _MOST:
            _literals[word] = literal
        return literal
    match = None if _RESERVED in word else _RARE.match(word)
    return None if match is None else _rare(match, resolve)


def _rare(match: re.Match[str], resolve: Resolve) -> Operand | None:
    """A component, a pair or a negated predicate."""
    whole, component, first, second, sunk, negated = match.groups()
    if component is not None:
        base = resolve(whole)
        return Register(base.name, component) if isinstance(base, (Register, Symbol)) else None
    if second is not None:
        return Pair(resolve(first), resolve(second))
    if sunk is not None:
        return Pair(_SINK, resolve(sunk))
    operand = resolve(negated)
    return Negated(operand) if isinstance(operand, Register) else None


def _address(base: Operand, offset: int) -> Operand:
    if isinstance(base, Symbol):
        return Address(Symbol(base.name), base.offset + offset)
    return Address(base if isinstance(base, Register) else None, offset)


def _with_vectors(text: str, resolve: Resolve, known: Known) -> tuple[Operand, ...] | None:
    found: list[Operand] = []
    position = 0
    while (match := _VECTOR.match(text, position)) is not None:
        vector, single, end = match.groups()
        if vector is not None:
            operand = _vector(vector, resolve, known)
        else:
            word = single.strip(_BLANK)
            operand = known.get(word) or _literals.get(word) or _single(word, resolve, known)
        if operand is None:
            return None
        found.append(operand)
        if not end:
            return tuple(found)
        position = match.end()
    return None


def _vector(text: str, resolve: Resolve, known: Known) -> Vector | None:
    items: list[Operand] = []
    for part in text.split(","):
        word = part.strip(_BLANK)
        item = known.get(word) or _literals.get(word) or _single(word, resolve, known)
        if item is None or not isinstance(item, (Register, Symbol, Immediate, Sink)):
            return None
        items.append(item)
    return Vector(tuple(items))
