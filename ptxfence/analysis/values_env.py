"""Path conditions: what a taken branch or a predicate says of the expressions it compares.

A predicate is an expression too: `cmp` (comparison with a constant or another value), `and2`, `or`, `xor`, `pnot`.
`constraints` turns "this predicate is true (false)" into circular intervals of expressions, pushed back through
shifts, masks, extensions and additions to the expression that they were computed from, so that a test of
`tid.x >> 5` bounds `tid.x` and a test of `i + 1` bounds `i`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxfence.analysis.values_domain import Value, bounds, clip, interval, plain, single
from ptxfence.analysis.values_graph import Graph
from ptxfence.analysis.values_nodes import Node

# An expression lies in the circular interval [lo, hi] modulo 2**width.
Constraint = tuple[Node, int, int, int]

MOST_TERMS = 16  # a bound on a longer sum says next to nothing of its terms
NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


class Env:
    """A conjunction of constraints. `bloom` tells cheaply which nodes it cannot concern.

    `table` constrains nodes; `forms` lists, for each atom, the linear forms with it that are constrained, because
    what they say of the atom depends on what the other terms can be at the time.
    """

    __slots__ = ("_relaxed", "bloom", "depth", "empty", "forms", "least", "outer", "table")

    def __init__(self, table: dict[Node, list[tuple[int, int, int]]], depth: int = 0, outer: Env | None = None) -> None:
        self.table = table
        self.depth = depth  # selections that it was refined by
        self.outer: Env = outer or self  # without those
        self.least = 0  # no node with a smaller number holds a constrained one
        self.forms: dict[Node, list[Constraint]] = {}
        bloom = 0
        for node, rows in table.items():
            if node.op != "lin":
                bloom |= 1 << (node.id & 255)
                continue
            for atom, _ in node.terms:
                bloom |= 1 << (atom.id & 255)
                self.forms.setdefault(atom, []).extend((node, *row) for row in rows)
        self.bloom = bloom
        self.empty = not table
        held = [n.id for node in table for n in (node.args if node.op == "lin" else (node,))]
        self.least = min(held, default=0)
        self._relaxed: Env | None = None

    def apply(self, node: Node, value: Value) -> Value:
        """`value` of `node`, cut by what is known of it; a contradiction leaves it as it was."""
        for lo, hi, width in self.table.get(node, ()):
            cut = clip(value, lo, hi, width)
            if cut:
                value = cut
        return value

    def of_warp(self) -> Env:
        """What holds in every lane of a warp with a lane that satisfies this: bounds of `tid.x` in whole warps."""
        if self._relaxed is None:
            table: dict[Node, list[tuple[int, int, int]]] = {}
            for node, rows in self.table.items():
                if node.op == "var" and node.data[0] == "tid.x":
                    table[node] = [(lo & ~31, hi | 31, w) for lo, hi, w in rows if hi < 1 << w]
            self._relaxed = Env(table) if table else EMPTY
        return self._relaxed

    def concerns(self, node: Node) -> bool:
        """False if no constraint can bear on the node."""
        return bool(self.bloom & node.bloom) and node.id >= self.least

    def extended(self, found: list[Constraint], deeper: int = 0) -> Env:
        if not found:
            return self
        table = dict(self.table)
        for node, lo, hi, width in found:
            table[node] = [*table.get(node, ()), (lo, hi, width)]
        return Env(table, self.depth + deeper, self.outer if deeper else None)


def share(total: tuple[int, int], rest: tuple[int, int], k: int, row: tuple[int, int, int]) -> tuple[int, int] | None:
    """Bounds of x where `k * x + rest` spans `total` and lies in the circular interval `row`; None if not bounded."""
    lo, hi, width = row
    if total[1] - total[0] >= 1 << width:
        return None
    piece = clip(interval(*total), lo, hi, width)
    if not piece:
        return None
    low, high = piece[0].lo - rest[1], piece[0].hi - rest[0]
    if k < 0:
        low, high, k = -high, -low, -k
    return -(-low // k), high // k


def impossible(total: tuple[int, int], row: tuple[int, int, int]) -> bool:
    """Whether no value in `total` lies in the circular interval `row`."""
    lo, hi, width = row
    return total[1] - total[0] < 1 << width and not clip(interval(*total), lo, hi, width)


EMPTY = Env({})


def facts(graph: Graph, predicate: Node, truth: bool, depth: int = 8) -> Iterator[tuple[Node, str, Node, bool, int]]:
    """Comparisons `(a, operator, b, signed, width)` that hold when `predicate` is `truth`."""
    op = predicate.op
    if depth == 0:
        return
    if op == "cmp":
        compare, sign, width = str(predicate.data[0]), bool(predicate.data[1]), int(predicate.data[2])
        a, b = predicate.args
        yield a, compare if truth else NEGATED[compare], b, sign, width
    elif op == "pnot":
        yield from facts(graph, predicate.args[0], not truth, depth - 1)
    elif op in ("and2", "or") and (op == "and2") == truth:
        for part in predicate.args:
            yield from facts(graph, part, truth, depth - 1)


def constraints(graph: Graph, predicate: Node, truth: bool) -> list[Constraint]:
    """Intervals that follow from `predicate` being `truth`."""
    found: list[Constraint] = []
    for a, compare, b, sign, width in facts(graph, predicate, truth):
        found.extend(_compared(graph, a, compare, b, sign, width))
        if not graph.is_const(b) and not a.phis:
            found.extend(_compared(graph, b, SWAPPED[compare], a, sign, width))
    if not any(node is predicate for node, *_ in found):
        found.append((predicate, int(truth), int(truth), 1))
    return found


def _compared(graph: Graph, a: Node, compare: str, b: Node, sign: bool, width: int) -> Iterator[Constraint]:
    if graph.is_const(a) or (b.phis and not graph.is_const(b)):
        return
    value = graph.evaluate(b)
    if not plain(value):
        return
    low, high = bounds(value)
    least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if sign else (0, (1 << width) - 1)
    if graph.is_const(b):
        low = high = b.const if sign else b.const & most
    elif low < least or high > most:
        return
    exact = single(value) is not None or graph.is_const(b)
    lo, hi = least, most
    if compare == "eq":
        lo, hi = low, high
    elif compare == "ne":
        if not exact:
            return
        lo, hi = low + 1, low - 1 + (1 << width)
    elif compare == "lt":
        hi = high - 1
    elif compare == "le":
        hi = high
    elif compare == "gt":
        lo = low + 1
    else:
        lo = low
    if lo <= hi:
        yield from _push(graph, a, lo, hi, width, 6)


def _push(graph: Graph, node: Node, lo: int, hi: int, width: int, depth: int) -> Iterator[Constraint]:
    """The constraint on `node` and what follows for its arguments."""
    if depth == 0:
        return
    if node.op == "lin":
        yield from _push_linear(graph, node, lo, hi, width, depth)
        return
    yield node, lo, hi, width
    if node.op in ("shr", "shrs"):
        k = int(node.data[0])
        if hi < 1 << width:
            most = (1 << node.width - k - (node.op == "shrs")) - 1
            lo, hi = max(lo, -most - 1 if node.op == "shrs" else 0), min(hi, most)
        new = _stretched(lo, hi, width, k, (1 << k) - 1)
        yield from _push(graph, node.args[0], *new, node.width, depth - 1)
    elif node.op == "and" and lo >= 0:
        mask = int(node.data[0])
        low = (mask & -mask) - 1
        if mask | low == (1 << mask.bit_length()) - 1 and graph.fits(node.args[0], mask.bit_length()):
            floor = lo if hi >= 1 << width else lo >> low.bit_length() << low.bit_length()
            new = _stretched(floor, hi, width, 0, low)
            yield from _push(graph, node.args[0], *new, node.width, depth - 1)
    elif node.op in ("zext", "sext"):
        source = int(node.data[0])
        if hi < 1 << (source - (node.op == "sext")) and lo >= 0:
            yield from _push(graph, node.args[0], lo, hi, source, depth - 1)
    elif node.op == "selp":
        yield from _push_select(graph, node, lo, hi, width, depth)


def _stretched(lo: int, hi: int, width: int, k: int, low: int) -> tuple[int, int]:
    """The circular interval of x where `x >> k` (low bits `low` free) lies in `[lo, hi]`."""
    limit = 1 << width
    if hi < limit:
        return lo << k, (hi << k) | low
    return ((lo - 1) << k | low) + 1, ((hi + 1 - limit) << k) - 1 + limit


def _push_select(graph: Graph, node: Node, lo: int, hi: int, width: int, depth: int) -> Iterator[Constraint]:
    predicate, a, b = node.args
    inside = [bool(clip(graph.evaluate(x), lo, hi, width)) for x in (a, b) if not x.phis]
    if len(inside) == 2 and inside[0] != inside[1]:
        yield from constraints(graph, predicate, inside[0])


def _push_linear(graph: Graph, node: Node, lo: int, hi: int, width: int, depth: int) -> Iterator[Constraint]:
    if len(node.terms) > MOST_TERMS:
        return
    lo, hi = lo - node.const, hi - node.const
    atom, k = node.terms[0]
    if len(node.terms) > 1 or k not in (1, -1):
        yield graph.linear(0, dict(node.terms), 64), lo, hi, width
    elif k == -1:
        yield from _push(graph, atom, -hi, -lo, width, depth - 1)
    else:
        yield from _push(graph, atom, lo, hi, width, depth - 1)
