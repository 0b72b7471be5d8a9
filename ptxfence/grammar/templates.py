"""lark's tree of an operand list's shape -> a template that is filled with leaves (names and numbers)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lark

from ptxfence.grammar import constants
from ptxfence.grammar.model import Address, Immediate, Negated, Opaque, Operand, Pair, Register, Sink, Symbol, Vector
from ptxfence.grammar.shapes import ShapeError
from ptxfence.grammar.tables import parser

Resolve = Callable[[str], Operand]
Leaves = tuple[str, ...]
Node = Callable[[Leaves, Resolve], Any]
Template = Callable[[Leaves, Resolve], tuple[Operand, ...]]

_SINK = Sink()
_LEAVES = frozenset(("NAME", "INTEGER", "FLOAT", "BITS", "STRING"))


class Refused(Exception):
    """A shape that the grammar does not take, and where. Never leaves the package."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def tree_of(shape: str, start: str) -> Any:
    """lark's tree of a shape. Raises Refused where the grammar does not take it."""
    try:
        return parser().parse(shape, start=start)
    except lark.UnexpectedCharacters as error:
        position: int = getattr(error, "pos_in_stream", 0)
        raise Refused(f"unexpected {shape[position : position + 1]!r}", position) from None
    except lark.UnexpectedToken as error:
        token: Any = getattr(error, "token")  # noqa: B009
        position = len(shape) if token.type == "$END" else token.start_pos
        raise Refused(_unexpected(token, error.expected), position) from None


def leaf_numbers(tree: Any) -> dict[int, int]:
    """Position of a leaf in its shape -> index among the leaves."""
    tokens = tree.scan_values(lambda value: isinstance(value, lark.Token))  # pyright: ignore
    positions = sorted({token.start_pos for token in tokens if token.type in _LEAVES})
    return {position: index for index, position in enumerate(positions)}


def build(shape: str) -> Template:
    """The template of an operand list's shape. Raises Refused."""
    tree = tree_of(shape, "operands")
    builder = _Builder(tree)
    items = [child for child in tree.children if child is not None]
    _check_lists([child.data == "list" for child in items], shape)
    nodes = tuple(builder.node(child) for child in items)
    return lambda leaves, resolve: tuple(node(leaves, resolve) for node in nodes)


def _check_lists(lists: list[bool], shape: str) -> None:
    """Parentheses around names are for calls: `(r), f, (a), p`, each part but `f` optional."""
    if not any(lists):
        return
    allowed = {0, 2} if lists[0] else {1}
    places = {index for index, value in enumerate(lists) if value}
    if not places <= allowed or len(lists) > max(allowed) + 2:
        raise Refused("unexpected '('", shape.rindex("("))


class _Builder:
    """Turns each node of lark's tree into a function of (leaves, resolve). Depth is bounded by shapes.py."""

    def __init__(self, tree: Any) -> None:
        self._numbers = leaf_numbers(tree)

    def node(self, tree: Any) -> Node:
        if isinstance(tree, lark.Token):
            return self._token(tree)
        rule: str = tree.data
        if rule.startswith(("binary_", "unary_")):
            kind, _, name = rule.partition("_")
            operation = constants.BINARY[name] if kind == "binary" else constants.UNARY[name]
            return self._computed(
                operation, [self.node(child) for child in tree.children if not isinstance(child, lark.Token)]
            )
        build: Callable[[list[Any]], Node] = getattr(self, f"_{rule}")
        return build([child for child in tree.children if child is not None])

    def _leaf(self, token: Any) -> int:
        return self._numbers[token.start_pos]

    def _token(self, token: Any) -> Node:
        return (lambda _leaves, _resolve: _SINK) if token.type == "SINK" else self._name([token])

    def _name(self, children: list[Any]) -> Node:
        leaf = self._leaf(children[0])
        return lambda leaves, resolve: resolve(leaves[leaf])

    def _component(self, children: list[Any]) -> Node:
        leaf = self._leaf(children[0])
        component = str(children[1])[1:].strip()

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            base = resolve(leaves[leaf])
            return Register(base.name if isinstance(base, (Register, Symbol)) else leaves[leaf], component)

        return build

    def _moved(self, children: list[Any]) -> Node:
        """`name + constant` outside brackets: the address of a symbol; on a register ptxas takes it too."""
        leaf = self._leaf(children[0])
        offset = self.node(children[1])

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            base = resolve(leaves[leaf])
            moved = offset(leaves, resolve).value
            if not isinstance(moved, int):
                raise ShapeError("an offset is no integer", 0)
            return Symbol(base.name, base.offset + moved) if isinstance(base, Symbol) else Address(_base(base), moved)

        return build

    def _element(self, children: list[Any]) -> Node:
        leaf = self._leaf(children[0])
        subscript = self.node(children[1])

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            index = subscript(leaves, resolve)
            shown = index.value if isinstance(index, Immediate) else index.name
            return Opaque(f"{leaves[leaf]}[{shown}]")

        return build

    def _pair(self, children: list[Any]) -> Node:
        first, second = (self._token(child) for child in children)
        return lambda leaves, resolve: Pair(first(leaves, resolve), second(leaves, resolve))

    def _negated(self, children: list[Any]) -> Node:
        leaf = self._leaf(children[-1])

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            operand = resolve(leaves[leaf])
            return Negated(operand) if isinstance(operand, Register) else Opaque(f"!{leaves[leaf]}")

        return build

    def _minus(self, children: list[Any]) -> Node:
        leaf = self._leaf(children[0].children[0])
        return lambda leaves, _resolve: Opaque(f"-{leaves[leaf]}")

    def _integer(self, children: list[Any]) -> Node:
        leaf = self._leaf(children[0])
        return lambda leaves, _resolve: constants.whole(leaves[leaf])

    def _real(self, children: list[Any]) -> Node:
        leaf = self._leaf(children[0])
        return lambda leaves, _resolve: Immediate(float(leaves[leaf]))

    def _bits(self, children: list[Any]) -> Node:
        leaf = self._leaf(children[0])
        return lambda leaves, _resolve: constants.bits(leaves[leaf])

    def _sink(self, _children: list[Any]) -> Node:
        return lambda _leaves, _resolve: _SINK

    def _vector(self, children: list[Any]) -> Node:
        items = [self.node(child) for child in children]
        return lambda leaves, resolve: Vector(tuple(item(leaves, resolve) for item in items))

    _list = _vector

    def _address(self, children: list[Any]) -> Node:
        place, *others = [self.node(child) for child in children]

        def build(leaves: Leaves, resolve: Resolve) -> Operand:
            base = place(leaves, resolve)
            coordinates: list[Operand] = []
            for other in others:
                value = other(leaves, resolve)
                coordinates.extend(value.items if isinstance(value, Vector) else (value,))
            return _address(base, tuple(coordinates))

        return build

    def _place(self, children: list[Any]) -> Node:
        return self._moved(children)

    def _cast(self, children: list[Any]) -> Node:
        kind = str(children[0]).strip()
        value = self.node(children[1])
        return lambda leaves, resolve: Immediate(constants.cast(kind, value(leaves, resolve).value))

    def _conditional(self, children: list[Any]) -> Node:
        test, yes, no = (self.node(child) for child in children)
        return lambda leaves, resolve: (yes if test(leaves, resolve).value else no)(leaves, resolve)

    def _computed(self, operation: Callable[..., Any], parts: list[Node]) -> Node:
        return lambda leaves, resolve: Immediate(
            constants.apply(operation, *(part(leaves, resolve).value for part in parts))
        )


def _base(operand: Operand) -> Register | Symbol | None:
    return operand if isinstance(operand, (Register, Symbol)) else None


def _address(base: Operand, coordinates: tuple[Operand, ...]) -> Operand:
    if isinstance(base, Symbol):
        return Address(Symbol(base.name), base.offset, coordinates)
    if isinstance(base, Address):
        return Address(base.base, base.offset, coordinates)
    if isinstance(base, Immediate):
        return Address(None, int(base.value), coordinates)
    return Address(_base(base), 0, coordinates)


_FOUND = {
    "NAME": "name",
    "INTEGER": "number",
    "FLOAT": "number",
    "BITS": "number",
    "STRING": "string",
    "$END": "end of the statement",
}
_WANTED = {
    "NAME": "a name",
    "INTEGER": "a number",
    "STRING": "a string",
    "TYPE": "a type",
    "COMMA": "','",
    "LSQB": "'['",
    "RSQB": "']'",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "RPAR": "')'",
}


def _unexpected(token: Any, expected: Any) -> str:
    wanted = sorted(_WANTED[name] for name in expected if name in _WANTED)
    shown = _FOUND.get(token.type) or repr(str(token).strip())
    return f"unexpected {shown}" + (f", expected {' or '.join(wanted)}" if 0 < len(wanted) < 5 else "")
