"""Exact evaluation over all threads of a CTA, where intervals lose the correlation between terms.

An expression that depends on `tid.x` alone takes at most 1024 values. It is turned into Python source once and run
for each thread: that is exact whatever chain of shifts, remainders and sign fixes a compiler emits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from ptxfence.analysis.values_domain import NO_BASE, Span, Value, bounds
from ptxfence.analysis.values_nodes import Node

_SIMPLE = {
    "shr": "(({0} & {m}) >> {d})",
    "and": "({0} & {d})",
    "orc": "(({0} & {m}) | {d})",
    "xorc": "(({0} & {m}) ^ {d})",
    "and2": "({0} & {1})",
    "or": "(({0} | {1}) & {m})",
    "xor": "(({0} ^ {1}) & {m})",
    "mul": "({0} * {1})",
    "pnot": "(1 - ({0} & 1))",
    "bool": "({0} & 1)",
    "selp": "({1} if {0} & 1 else {2})",
    "div": "(({0} & {m}) // {d})",
    "rem": "(({0} & {m}) % {d})",
    "shrs": "(_s({0}, {w}) >> {d})",
    "zext": "({0} & ((1 << {d}) - 1))",
    "sext": "_s({0}, {d})",
    "mulhi": "((({0} & {m}) * ({1} & {m})) >> {w})",
    "mulhis": "((_s({0}, {w}) * _s({1}, {w})) >> {w})",
    "min": "min({0} & {m}, {1} & {m})",
    "max": "max({0} & {m}, {1} & {m})",
    "mins": "min(_s({0}, {w}), _s({1}, {w}))",
    "maxs": "max(_s({0}, {w}), _s({1}, {w}))",
}
_COMPARE = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "ne": "!="}
COARSE = 1 << 15  # intervals wider than this are worth an exact evaluation over the threads
_LIMIT = 400  # nodes of one expression


def thread_only(node: Node) -> bool:
    """Whether the expression depends on `tid.x` and nothing else, through operations that can be run."""
    if node.of_thread is None:
        node.of_thread = _thread_only(node)
    return node.of_thread


def _thread_only(node: Node) -> bool:
    work, seen = [node], set[Node]()
    reads = False
    while work:
        part = work.pop()
        if part in seen:
            continue
        seen.add(part)
        if part.of_thread is not None:
            if not part.of_thread:
                return False
            reads = True
            continue
        if part.op == "var":
            if part.data[0] != "tid.x":
                return False
            reads = True
        elif (part.op not in _SIMPLE and part.op not in ("lin", "cmp")) or len(seen) > _LIMIT:
            return False
        work.extend(part.args)
    return reads


def tangled(node: Node, total: Value) -> bool:
    """Whether the bounds of a sum say little: they are wide, or terms of one thread index cancel in part."""
    low, high = bounds(total)
    return high - low > COARSE or (high > low and any(k < 0 and thread_only(atom) for atom, k in node.terms))


def _signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _source(node: Node) -> str:
    if node.op == "lin":
        return " + ".join([f"{k} * v{atom.id}" for atom, k in node.terms] + [str(node.const)])
    names = [f"v{arg.id}" for arg in node.args]
    if node.op == "cmp":
        compare, sign, width = str(node.data[0]), bool(node.data[1]), int(node.data[2])
        fixed = [f"_s({n}, {width})" if sign else f"({n} & {(1 << width) - 1})" for n in names]
        return f"int({fixed[0]} {_COMPARE[compare]} {fixed[1]})"
    data = node.data[0] if node.data else 0
    return _SIMPLE[node.op].format(*names, d=data, w=node.width, m=(1 << node.width) - 1)


def function_of(node: Node, tid: Node) -> Callable[[int], int]:
    """The expression as a function of `tid.x`."""
    order: list[Node] = []
    done: set[Node] = {tid}
    work: list[tuple[Node, bool]] = [(node, False)]
    while work:
        part, ready = work.pop()
        if ready:
            order.append(part)
        elif part not in done:
            done.add(part)
            work.append((part, True))
            work.extend((arg, False) for arg in part.args)
    lines = [f"    v{part.id} = {_source(part)}" for part in order]
    text = "\n".join([f"def f(v{tid.id}):", *lines, f"    return v{node.id}"])
    scope: dict[str, Callable[..., int]] = {"_s": _signed}
    exec(text, scope)
    return scope["f"]


def enumerate_threads(node: Node, tid: Node, lo: int, hi: int) -> Value:
    """All values of a thread-only expression for `lo <= tid.x <= hi`, as residues modulo 2**32 around zero."""
    function = function_of(node, tid)
    values = sorted({_signed(function(thread), 32) for thread in range(lo, hi + 1)})
    step = 0
    for value in values:
        step = gcd(step, value - values[0])
    return (Span(NO_BASE, values[0], values[-1], step),)


def uniform_in_warps(node: Node, tid: Node, threads: int) -> bool:
    """Whether a thread-only expression is the same in all lanes of each warp of a one-dimensional CTA."""
    function = function_of(node, tid)
    values = [function(thread) for thread in range(threads)]
    return all(values[thread] == values[thread & ~31] for thread in range(threads))
