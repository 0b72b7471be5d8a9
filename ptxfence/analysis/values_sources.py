"""An instruction with its operands as expressions, and predicates over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxfence.analysis.inline import Copy
from ptxfence.analysis.isa_operations import Op
from ptxfence.analysis.values_nodes import Node, to_signed
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.model import Operand, Register

if TYPE_CHECKING:
    from ptxfence.analysis.values_build import Builder


class Sources:
    """One instruction whose operands are demanded; `position` says which of its results is wanted."""

    __slots__ = ("builder", "graph", "index", "instruction", "op", "position")

    def __init__(self, builder: Builder, instruction: Instruction | Copy, op: Op, position: int) -> None:
        self.builder = builder
        self.graph = builder.graph
        self.instruction = instruction
        self.index = instruction.index
        self.op = op
        self.position = position

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.instruction.operands

    def get(self, i: int) -> Node:
        """Operand `i` as a node."""
        operand = self.instruction.operands[i]
        if isinstance(operand, Register):  # nearly all are
            return self.builder.register(operand.name, self.index, operand.component)
        return self.builder.operand(operand, self.index)

    def true_value(self, i: int) -> Node:
        """Operand `i` as the integer that its type reads."""
        return self.graph.extend(self.get(i), self.op.width, self.op.signed)


def predicate(s: Sources, op: str, a: Node, b: Node) -> Node:
    """`and`, `or`, `xor` of two predicates."""
    graph = s.graph
    if graph.is_const(a):
        a, b = b, a
    if graph.is_const(b):
        bit = b.const & 1
        if op == "xor":
            return s.builder.negation(a) if bit else a
        return (a if bit else graph.const(0)) if op == "and" else (graph.const(1) if bit else a)
    if a is b:
        return graph.const(0) if op == "xor" else a
    name = "and2" if op == "and" else op
    return graph.atom(name, (a, b) if a.id <= b.id else (b, a), (), 1)


_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def compare(s: Sources, a: Node, b: Node) -> Node | None:
    """A comparison of two integers, canonical: constants right, 0/1 flags undone."""
    graph, width = s.graph, s.op.width
    operator, signed = _UNSIGNED_NAMES.get(s.op.compare, s.op.compare), s.op.signed
    if operator not in _SWAPPED:
        return None
    if width < 32:
        a, b = graph.extend(graph.trunc(a, width), width, signed), graph.extend(graph.trunc(b, width), width, signed)
    if graph.is_const(a):
        a, b, operator = b, a, _SWAPPED[operator]
    if graph.is_const(b):
        b = graph.const(to_signed(b.const, width))
        if graph.is_const(a):
            return graph.const(int(_decide(operator, a.const, b.const, width, signed)))
        flag, factor = (a, 1) if a.op != "lin" else (a.terms[0][0], a.terms[0][1])
        if flag.op == "bool" and operator in ("eq", "ne") and (a.op != "lin" or (not a.const and len(a.terms) == 1)):
            if b.const == 0:
                return flag.args[0] if operator == "ne" else s.builder.negation(flag.args[0])
            if b.const == factor:
                return flag.args[0] if operator == "eq" else s.builder.negation(flag.args[0])
    elif operator in ("eq", "ne") and a.id > b.id:
        a, b = b, a
    return _comparison(s, operator, a, b, signed, width)


def _comparison(s: Sources, operator: str, a: Node, b: Node, signed: bool, width: int) -> Node:
    """Canonical form: `eq`, `lt` only, negated where needed, so that equal tests get equal nodes."""
    graph = s.graph
    if operator in ("ne", "ge", "gt") and (operator != "gt" or graph.is_const(b)):
        if operator == "gt":
            most = (1 << (width - 1)) - 1 if signed else (1 << width) - 1
            have = b.const if signed else b.const & ((1 << width) - 1)
            if have == most:
                return graph.const(0)
            return s.builder.negation(
                _comparison(s, "lt", a, graph.const(to_signed(b.const + 1, width)), signed, width)
            )
        return s.builder.negation(_comparison(s, "eq" if operator == "ne" else "lt", a, b, signed, width))
    if operator == "le" and graph.is_const(b):
        return s.builder.negation(_comparison(s, "gt", a, b, signed, width))
    if graph.is_const(b):
        if signed and b.const >= 0 and graph.fits(a, width - 1):
            signed = False
        if operator == "lt" and not signed and b.const == 1:
            operator, b = "eq", graph.const(0)
    return graph.atom("cmp", (a, b), (operator, int(signed and operator != "eq"), width), 1)


def _decide(operator: str, a: int, b: int, width: int, signed: bool) -> bool:
    if signed:
        a, b = to_signed(a, width), to_signed(b, width)
    else:
        a, b = a & ((1 << width) - 1), b & ((1 << width) - 1)
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[operator]


def part_of(s: Sources, a: Node, at: int, count: int) -> Node:
    """Bits `[at, at + count)` of `a`, which has the width of the operation."""
    graph, width = s.graph, s.op.width
    if at + count == width and at:
        return graph.shr(a, at, width, False)
    if count in (16, 32) and at == 0:
        return graph.trunc(a, count)
    return graph.and_const(graph.shr(a, at, width, False) if at else a, (1 << count) - 1, width)


def packed(s: Sources, items: list[Node], part: int) -> Node:
    """Fields of `part` bits, the lowest first, as one value."""
    total = s.graph.const(0)
    for i, item in enumerate(items):
        field = s.graph.extend(s.graph.trunc(item, part), part, False)
        total = s.graph.add(total, s.graph.shl(field, i * part, s.op.width), s.op.width)
    return total
