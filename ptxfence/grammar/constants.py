"""Literals and constant expressions (PTX ISA 4.5): 64-bit integers and doubles."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import Any

from ptxfence.grammar.lexical import integer
from ptxfence.grammar.model import Immediate

WARP_SZ = 32

_MASK = (1 << 64) - 1


def _signed(value: int) -> int:
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _quotient(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def _divided(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        return a / b if b else 0.0
    return _quotient(a, b)


def _both(apply: Callable[[int, int], int]) -> Callable[[Any, Any], int]:
    """An operation on integers only."""
    return lambda a, b: apply(int(a), int(b))


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "lor": lambda a, b: int(bool(a) or bool(b)),
    "land": lambda a, b: int(bool(a) and bool(b)),
    "or": _both(lambda a, b: a | b),
    "xor": _both(lambda a, b: a ^ b),
    "and": _both(lambda a, b: a & b),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "gt": lambda a, b: int(a > b),
    "le": lambda a, b: int(a <= b),
    "ge": lambda a, b: int(a >= b),
    "shl": _both(lambda a, b: a << (b & 63)),
    "shr": _both(lambda a, b: a >> (b & 63)),
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _divided,
    "mod": _both(lambda a, b: a - b * _quotient(a, b)),
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "inv": lambda a: ~int(a),
    "not": lambda a: int(not a),
}


def apply(operation: Callable[..., Any], *values: int | float) -> int | float:
    """The result of an operation; integers stay below 2^64 in size."""
    result = operation(*values)
    if isinstance(result, int) and not -(1 << 63) <= result <= _MASK:
        return _signed(result)
    return result


def whole(text: str) -> Immediate:
    """`7`, `0x1F`, `017`, `0b11`, each with or without `U`, or `WARP_SZ`."""
    return Immediate(WARP_SZ if text == "WARP_SZ" else integer(text))


def bits(text: str) -> Immediate:
    """`0f3F800000` or `0d3FF0000000000000`."""
    pattern = int(text[2:], 16)
    narrow = text[1] in "fF"
    packed = struct.pack("<I", pattern) if narrow else struct.pack("<Q", pattern)
    value: float = struct.unpack("<f" if narrow else "<d", packed)[0]
    return Immediate(value, pattern)


def cast(kind: str, value: int | float) -> int | float:
    """`(.s64)value` and its like; `kind` is `.s64`."""
    if kind.startswith(".f"):
        return float(value)
    width = int(kind[2:]) if kind[2:].isdigit() else 64
    kept = int(value) & ((1 << width) - 1)
    return kept - (1 << width) if kind[1] == "s" and kept >> (width - 1) else kept
