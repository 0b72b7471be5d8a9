"""What the front end hands on: files, modules, functions, instructions, operands.

Nothing here knows an opcode. Every node holds the span of its text, `[start, end)` in characters of
`PtxFile.text`, so that a patch can be made of whole inserted or removed lines and everything else stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Register:
    """A register. `name` is unique in its function: one declared in a nested scope carries its scope (`p#3`).

    `component` is the vector part (`x`, `y`, ...) of `%v.x`, else empty.
    """

    name: str
    component: str = ""


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal or constant expression. Integers are exact; floats keep their bit pattern in `bits`."""

    value: int | float
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable, function, parameter or label used by name, plus a constant byte offset.

    Labels and variables of nested scopes are renamed as registers are.
    """

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Sink:
    """The bit bucket `_`."""


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p` as a source operand."""

    operand: Register


@dataclass(frozen=True, slots=True)
class Pair:
    """`p|q` as a destination."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`; `base` is None for a bare immediate address. `coordinates` are those of a tensor operand."""

    base: Register | Symbol | None
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Opaque:
    """Operand text that no analysis needs to understand (rarely used forms); kept verbatim."""

    text: str


Operand = Register | Immediate | Symbol | Sink | Negated | Pair | Vector | Address | Opaque


class FunctionKind(Enum):
    ENTRY = "entry"
    FUNC = "func"


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared `.shared`, `.global`, `.const`, `.local` or `.param` object.

    `size` is in bytes, None for `x[]`. `name` is unique in the module (function-local ones are renamed
    `name@function` only where two functions declare the same name).
    """

    name: str
    space: str
    align: int
    size: int | None
    start: int
    end: int
    function: str | None = None


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in the language the kernel was written in, from `.loc` and `.file`. Line and column count from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Directive:
    """A performance directive of a function header: `.reqntid 128, 1, 1` -> ("reqntid", (128, 1, 1))."""

    name: str
    values: tuple[int, ...]


__all__ = [
    "Address",
    "Directive",
    "FunctionKind",
    "Immediate",
    "Negated",
    "Opaque",
    "Operand",
    "Pair",
    "Register",
    "Sink",
    "SourceLocation",
    "Symbol",
    "Variable",
    "Vector",
]
