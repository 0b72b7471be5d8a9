"""Rewrites of linear forms: what compilers make of `x mod n`, `x div n` and of halves, put back together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxfence.analysis.values_nodes import Node, Terms, to_signed

if TYPE_CHECKING:
    from ptxfence.analysis.values_graph import Graph


def rejoined_halves(graph: Graph, terms: list[tuple[Node, int]]) -> list[tuple[Node, int]]:
    """`(x >> 32 << 32) + (x & 0xffffffff)` is x."""
    table = dict(terms)
    for atom, k in terms:
        if atom.op == "zext" and atom.data[0] == 32 and atom in table:
            whole = atom.args[0]
            upper = graph.known(("shr", (whole,), (32,), 64))
            if upper is not None and table.get(upper) == k << 32:
                del table[atom], table[upper]
                for part, factor in graph.parts(whole)[1]:
                    table[part] = table.get(part, 0) + k * factor
    return list(table.items())


def signed_divisions(graph: Graph, terms: list[tuple[Node, int]]) -> list[tuple[Node, int]]:
    """`(t >> s) + (t >>> 31)` with t the high half of `x * magic` (plus x) is `x div n`.

    A dividend of unknown sign is taken to be >= 0: compilers index rings with it, and a negative index would
    leave the object.
    """
    table = dict(terms)
    for atom, k in terms:
        if atom.op != "shr" or atom.data[0] != 31 or atom.width != 32:
            continue
        high = atom.args[0]
        for other in table:
            shift = int(other.data[0]) if other.op == "shrs" and other.args[0] is high else 0 if other is high else -1
            if shift < 0 or table[other] != k or (found := signed_divisor(graph, high, shift)) is None:
                continue
            del table[atom], table[other]
            new = graph.atom("div", (found[0],), (found[1],), 32)
            table[new] = table.get(new, 0) + k
            break
    return list(table.items())


def signed_divisor(graph: Graph, high: Node, shift: int) -> tuple[Node, int] | None:
    product = next((a for a in (high, *high.args) if a.op == "mulhis" and graph.is_const(a.args[1])), None)
    if product is None:
        return None
    x, magic = product.args[0], product.args[1].const
    if high is not product:
        magic += 1 << 32
        inner = x.args[0] if x.op == "sext" else x
        if graph.add(high, product, 32, -1) not in (inner, x):
            return None
    if magic <= 0:
        return None
    n = -(-(1 << (32 + shift)) // magic)
    lowest = min(span.lo for span in graph.evaluate(x))
    if n < 2 or (magic * n - (1 << (32 + shift))) >= 1 << (shift + 1) or -(1 << 20) < lowest < 0:
        return None
    return x, n


def fold(graph: Graph, const: int, terms: list[tuple[Node, int]], width: int) -> tuple[int, list[tuple[Node, int]]]:
    """Rewrite `a*x - a*n*(x div n)` to `a*(x rem n)` and `a*x - a*(x & m)` to `a*(x & ~m)`."""
    table = dict(terms)
    for atom, k in terms:
        if atom.op not in ("div", "and") or table.get(atom) != k:
            continue
        amount = int(atom.data[0])
        have, odd = divmod(-k, amount) if atom.op == "div" else (-k, 0)
        inner = atom.args[0]
        if inner.op in ("zext", "sext") and int(inner.data[0]) >= width:
            inner = inner.args[0]
        base, parts = graph.parts(inner)
        if atom.op == "and" and len(parts) > 1:
            parts = without_sign_fix(graph, parts)
        if odd or not parts or any(table.get(part) != have * factor for part, factor in parts):
            continue
        del table[atom]
        for part, _ in parts:
            del table[part]
        const -= have * base
        new = complement(graph, atom, graph.form(base, parts), amount, have, width)
        table[new] = table.get(new, 0) + have
    return to_signed(const, width), [(a, k) for a, k in table.items() if k]


def without_sign_fix(graph: Graph, parts: Terms) -> Terms:
    """The terms of x in `x + (sign of x)`, the rounding of a signed `x mod 2**k`; as they are if there is none."""
    for fix, k in parts:
        source = fix.args[0] if fix.op == "shr" and k == 1 and int(fix.data[0]) > 16 else None
        if source is None:
            continue
        if source.op == "shrs" and source.data[0] == 31:
            source = source.args[0]
        rest = tuple(part for part in parts if part[0] is not fix)
        lowest = min(span.lo for span in graph.evaluate(source))
        if graph.parts(source)[1] == rest and (lowest >= 0 or lowest < -(1 << 20)):
            return rest
    return parts


def complement(graph: Graph, atom: Node, inner: Node, amount: int, have: int, width: int) -> Node:
    if atom.op == "div":
        return graph.remainder(atom.args[0], amount, atom.width)
    mask = ~amount & ((1 << atom.width) - 1)
    lost = width - ((have & -have).bit_length() - 1)  # bits that the coefficient shifts out
    return graph.and_const(inner, mask & ((1 << max(0, lost)) - 1), atom.width)


def magic(graph: Graph, x: Node, factor: int, k: int) -> Node | None:
    """`(factor * x) >> k` where that is `x div n` for every value of x (Granlund and Montgomery, 1994)."""
    if factor < 3 or factor & (factor - 1) == 0:
        return None
    n = -(-(1 << k) // factor)
    most = max(span.hi for span in graph.evaluate(x))
    if n < 2 or (factor * n - (1 << k)) * most >= 1 << k or not graph.fits(x, most.bit_length()):
        return None
    return graph.divide(x, n, 64)


def averaged(graph: Graph, a: Node, k: int) -> Node | None:
    """`(t + ((x - t) >> 1)) >> k` with `t = (x * magic) >> 32`: `x div n` for a divisor whose magic number has 33 bits
    (Granlund and Montgomery, 1994, figure 4.1)."""
    for (high, factor), (half, other) in (a.terms, a.terms[::-1]):
        if factor != 1 or other != 1 or half.op != "shr" or half.data[0] != 1 or high.op != "shr" or high.data[0] != 32:
            continue
        const, terms = graph.parts(high.args[0])
        if const or len(terms) != 1:
            continue
        wide, magic_number = terms[0]
        x = wide.args[0] if wide.op == "zext" and wide.data[0] == 32 else wide
        if graph.add(x, high, 32, -1) is not half.args[0]:
            continue
        scale = (1 << 32) + magic_number
        n = -(-(1 << (33 + k)) // scale)
        if n > 1 and scale * n - (1 << (33 + k)) <= 1 << (k + 1):
            return graph.divide(wide, n, 32)
    return None
