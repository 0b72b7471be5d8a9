"""lark's tree of one operand shape -> a template that is filled with leaves (names and numbers)."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import lark

from ptxfence.grammar.lexical import integer
from ptxfence.grammar.model import (
    Address,
    Immediate,
    Negated,
    Opaque,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)

Resolve = Callable[[str], Operand]
Leaves = tuple[str, ...]
Node = Callable[[Leaves, Resolve], Operand]
Template = Callable[[Leaves, Resolve], tuple[Operand, ...]]

_SINK = Sink()
_MASK = (1 << 64) - 1


class Refused(Exception):
    """A shape that the grammar does not take, and where. Never leaves the package."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def _signed(value: int) -> int:
    """Constant expressions are evaluated in 64 bits (PTX ISA 4.5.4)."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


def _quotient(a: int, b: int) -> int:
    sign = -1 if (a < 0) != (b < 0) else 1
    return sign * (abs(a) // abs(b)) if b else 0


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "lor": lambda a, b: int(bool(a) or bool(b)),
    "land": lambda a, b: int(bool(a) and bool(b)),
    "or": operator.or_,
    "xor": operator.xor,
    "and": operator.and_,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "gt": lambda a, b: int(a > b),
    "le": lambda a, b: int(a <= b),
    "ge": lambda a, b: int(a >= b),
    "shl": lambda a, b: _signed(a << (b & 63)),
    "shr": lambda a, b: a >> (b & 63),
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _quotient,
    "mod": lambda a, b: a - b * _quotient(a, b) if b else 0,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "pos": operator.pos,
    "inv": operator.invert,
    "not": lambda a: int(not a),
}


def _real(text: str) -> Immediate:
    prefix = text[:2].lower()
    if prefix == "0f":
        bits = int(text[2:], 16)
        return Immediate(struct.unpack("<f", struct.pack("<I", bits))[0], bits)
    if prefix == "0d":
        bits = int(text[2:], 16)
        return Immediate(struct.unpack("<d", struct.pack("<Q", bits))[0], bits)
    return Immediate(float(text))


class _Builder:
    """Turns each node of lark's tree into a function of (leaves, resolve). Depth is bounded by shapes.py."""

    def __init__(self, tree: lark.Tree[lark.Token]) -> None:
        tokens = tree.scan_values(lambda value: isinstance(value, lark.Token))
        leaves = [token.start_pos for token in tokens if token.type in ("NAME", "INTEGER", "FLOAT")]
        self._leaf = {position: index for index, position in enumerate(leaves)}

    def node(self, tree: Any) -> Node:
        rule: str = tree.data
        if rule.startswith("binary_"):
            return self._binary(rule[7:], *map(self.node, tree.children))
        if rule.startswith("unary_"):
            return self._unary(rule[6:], self.node(tree.children[-1]))
        return getattr(self, f"_{rule}")(tree)

    def nodes(self, tree: Any) -> tuple[Node, ...]:
        return tuple(self.node(child) for child in tree.children if child is not None)

    def _index(self, token: lark.Token) -> int:
        return self._leaf[token.start_pos or 0]

    def _name(self, tree: Any) -> Node:
        leaf = self._index(tree.children[0])
        component = "".join(tree.children[1:])[1:]
        if not component:
            return lambda leaves, resolve: resolve(leaves[leaf])

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            base = resolve(leaves[leaf])
            return Register(base.name if isinstance(base, (Register, Symbol)) else leaves[leaf], component)

        return build

    def _element(self, tree: Any) -> Node:
        leaf = self._index(tree.children[0])
        subscripts = tuple(self.node(child) for child in tree.children[1:])

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            inside = "][".join(_shown(item(leaves, resolve)) for item in subscripts)
            return Opaque(f"{leaves[leaf]}[{inside}]")

        return build

    def _integer(self, tree: Any) -> Node:
        leaf = self._index(tree.children[0])
        return lambda leaves, _: Immediate(integer(leaves[leaf]))

    def _real(self, tree: Any) -> Node:
        leaf = self._index(tree.children[0])
        return lambda leaves, _: _real(leaves[leaf])

    def _sink(self, _: Any) -> Node:
        return lambda *_: _SINK

    def _vector(self, tree: Any) -> Node:
        items = self.nodes(tree)
        return lambda leaves, resolve: Vector(tuple(item(leaves, resolve) for item in items))

    def _negated_vector(self, tree: Any) -> Node:
        raise Refused("a vector cannot be negated", tree.children[0].start_pos)

    def _group(self, tree: Any) -> Node:
        items = self.nodes(tree)

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            values = tuple(item(leaves, resolve) for item in items)
            return values[0] if len(values) == 1 and isinstance(values[0], Immediate) else Vector(values)

        return build

    def _address(self, tree: Any) -> Node:
        items = self.nodes(tree)
        if not items:
            raise Refused("an address is empty", 0)

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            base, *others = (item(leaves, resolve) for item in items)
            coordinates: list[Operand] = []
            for other in others:
                coordinates.extend(other.items if isinstance(other, Vector) else (other,))
            return _address(base, tuple(coordinates))

        return build

    def _cast(self, tree: Any) -> Node:
        value = self.node(tree.children[-1])
        target = str(tree.children[0])

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            inner = value(leaves, resolve)
            return _cast(target, inner.value) if isinstance(inner, Immediate) else Opaque(f"({target}){_shown(inner)}")

        return build

    def _conditional(self, tree: Any) -> Node:
        test, yes, no = self.nodes(tree)

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            condition = test(leaves, resolve)
            if not isinstance(condition, Immediate):
                return Opaque("?")
            return (yes if condition.value else no)(leaves, resolve)

        return build

    def _binary(self, name: str, left: Node, right: Node) -> Node:
        apply = _BINARY[name]

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            a, b = left(leaves, resolve), right(leaves, resolve)
            if isinstance(a, Immediate) and isinstance(b, Immediate):
                return _evaluate(apply, a.value, b.value)
            if name == "or":
                return Pair(a, b)
            if name == "add" and isinstance(b, Immediate) and isinstance(b.value, int):
                return _moved(a, b.value)
            return Opaque(f"{_shown(a)} {name} {_shown(b)}")

        return build

    def _unary(self, name: str, inner: Node) -> Node:
        apply = _UNARY[name]

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            value = inner(leaves, resolve)
            if isinstance(value, Immediate):
                return _evaluate(apply, value.value)
            if name == "not" and isinstance(value, Register):
                return Negated(value)
            return Opaque(f"{name} {_shown(value)}")

        return build


def _evaluate(apply: Callable[..., Any], *values: int | float) -> Operand:
    try:
        result = apply(*values)
    except (TypeError, ValueError, OverflowError):  # such as a shift of a float: ptxas refuses it later
        return Opaque("constant")
    return Immediate(result)


def _cast(target: str, value: int | float) -> Operand:
    if target.startswith(".f"):
        return Immediate(float(value))
    bits = int(target[2:]) if target[2:].isdigit() else 64
    whole = int(value) & ((1 << bits) - 1)
    return Immediate(whole - (1 << bits) if target[1] == "s" and whole >> (bits - 1) else whole)


def _moved(base: Operand, offset: int) -> Operand:
    """`base + offset` outside brackets: the address of a symbol, or inside them that of a register."""
    if isinstance(base, Symbol):
        return Symbol(base.name, base.offset + offset)
    if isinstance(base, Register):
        return Address(base, offset)
    return Opaque(f"{_shown(base)} + {offset}")


def _address(base: Operand, coordinates: tuple[Operand, ...]) -> Operand:
    if isinstance(base, Symbol):
        return Address(Symbol(base.name), base.offset, coordinates)
    if isinstance(base, Register):
        return Address(base, 0, coordinates)
    if isinstance(base, Immediate) and isinstance(base.value, int):
        return Address(None, base.value, coordinates)
    if isinstance(base, Address) and not base.coordinates:
        return Address(base.base, base.offset, coordinates)
    return Opaque(f"[{_shown(base)}]")


def _shown(operand: Operand) -> str:
    if isinstance(operand, (Register, Symbol)):
        return operand.name
    if isinstance(operand, Immediate):
        return str(operand.value)
    return operand.text if isinstance(operand, Opaque) else type(operand).__name__.lower()


@cache
def _parser() -> lark.Lark:
    return lark.Lark.open_from_package("ptxfence.grammar", "ptx.lark", parser="lalr", start="operands")


def build(shape: str) -> Template:
    """The template of a shape. Raises Refused where the grammar does not take it."""
    try:
        tree = _parser().parse(shape)
    except lark.UnexpectedCharacters as error:
        raise Refused(f"unexpected {error.char!r}", error.pos_in_stream) from None
    except lark.UnexpectedToken as error:
        raise Refused(_unexpected(error), error.pos_in_stream or 0) from None
    items = _Builder(tree).nodes(tree)
    return lambda leaves, resolve: tuple(item(leaves, resolve) for item in items)


_WORDS = {"NAME": "a name", "INTEGER": "a number", "FLOAT": "a number", "LSQB": "'['", "LBRACE": "'{'", "COMMA": "','"}
_WORDS |= {"RSQB": "']'", "RBRACE": "'}'", "LPAR": "'('", "RPAR": "')'", "$END": "';'", "PLUS": "'+'", "SINK": "'_'"}


def _unexpected(error: lark.UnexpectedToken) -> str:
    found = {"NAME": "name", "INTEGER": "number", "FLOAT": "number", "$END": "end of the statement"}
    wanted = sorted({_WORDS[name] for name in error.expected if name in _WORDS} - {"'+'", "'_'"})
    shown = found.get(error.token.type) or repr(str(error.token))
    return f"unexpected {shown}" + (f", expected {' or '.join(wanted)}" if wanted and len(wanted) < 5 else "")
