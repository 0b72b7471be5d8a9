"""The operand lists that fill a file: names, decimal integers, `[name+integer]` and flat vectors, read by one regex.

Everything else, and every error, is for the shapes and lark (shapes.py). Both ways give equal operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ptxfence.grammar.lexical import NAME
from ptxfence.grammar.model import Address, Immediate, Operand, Register, Symbol, Vector

_NUMBER = r"[1-9]\d{0,15}+|0"
_ITEM = re.compile(
    rf"\s*+(?:({NAME})|({_NUMBER})|-({_NUMBER})"
    rf"|\[\s*+({NAME})\s*+(?:\+\s*+(-?)({_NUMBER})\s*+)?\]"
    r"|\{([^{}\[\]\"/()|.]++)\})\s*+(,|\Z)",
    re.ASCII,
)
_PART = re.compile(rf"\s*+(?:({NAME})|({_NUMBER}))\s*+\Z", re.ASCII)
_RESERVED = "WARP_SZ"


def quick(text: str, resolve: Callable[[str], Operand], known: Mapping[str, Operand]) -> tuple[Operand, ...] | None:
    """The operands in `text`; None where it is not as simple as that. `known` holds names that are resolved."""
    if _RESERVED in text:
        return None
    found: list[Operand] = []
    position = 0
    item = _ITEM.match
    while (match := item(text, position)) is not None:
        name, number, negative, base, sign, offset, vector, end = match.groups()
        if name is not None:
            found.append(known.get(name) or resolve(name))
        elif base is not None:
            moved = int(offset) if offset else 0
            found.append(_address(known.get(base) or resolve(base), -moved if sign else moved))
        elif number is not None:
            found.append(Immediate(int(number)))
        elif negative is not None:
            found.append(Immediate(-int(negative)))
        else:
            parts = _vector(vector, resolve)
            if parts is None:
                return None
            found.append(parts)
        if not end:
            return tuple(found)
        position = match.end()
    return None


def _address(base: Operand, offset: int) -> Operand:
    if isinstance(base, Symbol):
        return Address(Symbol(base.name), base.offset + offset)
    return Address(base if isinstance(base, Register) else None, offset)


def _vector(text: str, resolve: Callable[[str], Operand]) -> Vector | None:
    items: list[Operand] = []
    for part in text.split(","):
        match = _PART.match(part)
        if match is None:
            return None
        name, number = match.groups()
        items.append(Immediate(int(number)) if name is None else resolve(name))
    return Vector(tuple(items))
