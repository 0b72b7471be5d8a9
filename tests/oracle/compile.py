"""Operands of one operation as getters; the table of builders."""

from __future__ import annotations

from collections.abc import Callable

from ptxfence.grammar.model import Address, Immediate, Negated, Operand, Pair, Register, Sink, Symbol, Vector
from tests.oracle.machine import Step, Thread
from tests.oracle.program import Op, OracleError, Program, is_special

Getter = Callable[[Thread], int]
Setter = Callable[[Thread, int], None]
Builder = Callable[["Context"], Step]

BUILDERS: dict[str, Builder] = {}


def builds(*names: str) -> Callable[[Builder], Builder]:
    """Registers a builder for opcodes that start with these dotted words; the longest match wins."""

    def register(builder: Builder) -> Builder:
        for name in names:
            BUILDERS[name] = builder
        return builder

    return register


def width(kind: str) -> int:
    """Bits of a type word: `u32` -> 32, `pred` -> 1."""
    return 1 if kind == "pred" else int("".join(c for c in kind if c.isdigit()))


def _special(register: Register) -> Getter:
    name = register.name
    if register.component in ("y", "z"):
        one = name in ("%ntid", "%nctaid", "%cluster_nctaid")
        return lambda t: int(one)
    table: dict[str, Getter] = {
        "%tid": lambda t: t.tid,
        "%ntid": lambda t: t.m.per_cta,
        "%ctaid": lambda t: t.cta,
        "%nctaid": lambda t: t.m.ctas,
        "%laneid": lambda t: t.lane,
        "%warpid": lambda t: t.warp,
        "%cluster_ctarank": lambda t: t.cta if t.m.cluster > 1 else 0,
        "%cluster_ctaid": lambda t: t.cta if t.m.cluster > 1 else 0,
        "%cluster_nctarank": lambda t: t.m.cluster,
    }
    return table.get(name, lambda t: 0)


class Context:
    """What a builder needs: the operation and its operands by position."""

    def __init__(self, op: Op, program: Program) -> None:
        self.op = op
        self.words = op.words
        self.operands = op.operands
        self.line = op.line
        self.program = program
        self.frame = op.function

    def fail(self) -> OracleError:
        return OracleError(f"line {self.line}: {'.'.join(self.words)} is outside the subset")

    def slot(self, operand: Operand) -> int | None:
        """The register that `operand` names as a destination; None for `_`."""
        if isinstance(operand, Sink):
            return None
        if isinstance(operand, Vector) and len(operand.items) == 1:
            return self.slot(operand.items[0])
        if not isinstance(operand, Register) or operand.component:
            raise self.fail()
        return self.frame.slot(operand.name)

    def slots(self, operand: Operand) -> list[int | None]:
        """Destinations of a scalar or vector operand."""
        return [self.slot(o) for o in (operand.items if isinstance(operand, Vector) else (operand,))]

    def pair(self, operand: Operand) -> tuple[int | None, int | None]:
        return (self.slot(operand.first), self.slot(operand.second)) if isinstance(operand, Pair) else (
            self.slot(operand), None)  # fmt: skip

    def value(self, operand: Operand) -> Getter:
        """A source operand as a non-negative integer (two's complement of 64 bits)."""
        if isinstance(operand, Immediate):
            number = operand.bits if operand.bits is not None else int(operand.value)
            number &= (1 << 64) - 1
            return lambda t: number
        if isinstance(operand, Register):
            if is_special(operand):
                return _special(operand)
            slot = self.frame.slot(operand.name)
            return lambda t: t.r[slot]
        if isinstance(operand, Negated):
            slot = self.frame.slot(operand.operand.name)
            return lambda t: 1 - t.r[slot]
        if isinstance(operand, Symbol):
            address = self.program.symbols.get(operand.name)
            if address is not None:
                address += operand.offset
                return lambda t: address
            slot = self.frame.slot(operand.name)
            return lambda t: t.r[slot]
        if isinstance(operand, Vector) and len(operand.items) == 1:
            return self.value(operand.items[0])
        raise self.fail()

    def address(self, operand: Operand) -> Getter:
        """`[base+offset]`."""
        if not isinstance(operand, Address):
            raise self.fail()
        offset = operand.offset
        if operand.base is None:
            return lambda t: offset
        base = self.value(operand.base)
        if not offset:
            return base
        return lambda t: base(t) + offset

    def first_address(self) -> int:
        """Position of the first `[...]` operand."""
        for index, operand in enumerate(self.operands):
            if isinstance(operand, Address):
                return index
        raise self.fail()

    def space(self) -> str:
        """State space of the only address: shared, global, param, local, const or generic."""
        for word in self.words:
            if word in ("shared", "shared::cta", "shared::cluster"):
                return "shared"
            if word in ("global", "param", "local", "const"):
                return word
        return "generic"


def build(op: Op, program: Program) -> Step:
    """The step of one operation. Raises OracleError outside the subset."""
    words = op.words
    for length in range(len(words), 0, -1):
        builder = BUILDERS.get(".".join(words[:length]))
        if builder is not None:
            return builder(Context(op, program))
    raise OracleError(f"line {op.line}: {'.'.join(words)} is outside the subset")
