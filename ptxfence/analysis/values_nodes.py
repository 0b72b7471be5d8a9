"""Expression nodes: hash-consed by the graph that makes them (values_graph)."""

from __future__ import annotations

from collections.abc import Container

from ptxfence.analysis.values_domain import Value

Terms = tuple[tuple["Node", int], ...]
_BLOOM = 255


class Node:
    """One expression. `args` are nodes, `data` integers or names; `lin` nodes use `const` and `terms` instead."""

    __slots__ = ("alias", "args", "av", "bloom", "const", "data", "id", "of_thread", "op", "phis", "terms", "width")

    def __init__(self, number: int, op: str, args: tuple[Node, ...], data: tuple[int | str, ...], width: int) -> None:
        self.id = number
        self.op = op
        self.args = args
        self.data = data
        self.width = width
        self.const = 0
        self.terms: Terms = ()
        self.av: Value | None = None
        self.alias: Node | None = None
        self.of_thread: bool | None = None  # values_enumerate.thread_only
        bloom = 1 << (number & _BLOOM)
        phis: frozenset[Node] = frozenset()
        for arg in args:
            bloom |= arg.bloom
            phis = phis | arg.phis if phis else arg.phis
        self.bloom = bloom
        self.phis = phis

    def __repr__(self) -> str:
        return describe(self, 4)


def describe(node: Node, depth: int = 6) -> str:
    """The expression as text, cut at `depth` levels."""
    if node.op == "lin":
        parts = [describe(a, depth - 1) if k == 1 else f"{k}*{describe(a, depth - 1)}" for a, k in node.terms]
        return " + ".join([*parts, str(node.const)] if node.const or not parts else parts)
    if node.op in ("var", "sym"):
        return str(node.data[0])
    if node.op == "phi":
        return f"phi@{node.data[1]}({node.data[0]})"
    if depth <= 0:
        return f"#{node.id}"
    inner = ", ".join([describe(a, depth - 1) for a in node.args] + [str(d) for d in node.data])
    return f"{node.op}({inner})"


def unvisited(node: Node, done: Container[Node]) -> list[Node]:
    """The parts of an expression that are not in `done`, arguments before what uses them. Iterative."""
    if node in done:
        return []
    order: list[Node] = []
    seen: set[Node] = set()
    work: list[tuple[Node, bool]] = [(node, False)]
    while work:
        part, ready = work.pop()
        if ready:
            order.append(part)
        elif part not in seen and part not in done:
            seen.add(part)
            work.append((part, True))
            work.extend((arg, False) for arg in part.args)
    return order


def to_signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value
