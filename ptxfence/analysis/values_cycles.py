"""Parts of the fixpoint: components of phis, widening, comparisons of values."""

from __future__ import annotations

from collections.abc import Callable

from ptxfence.analysis.values_domain import Span, Value, bounds, constant, interval, plain, signed, top, unsigned
from ptxfence.analysis.values_nodes import Node

ITERATIONS = 1 << 24  # one loop entry is taken to run fewer iterations, so that its counters do not wrap
COUNTER = "#iteration"


def components(root: Node, needs_of: Callable[[Node], list[Node] | None]) -> list[list[Node]] | None:
    """Strongly connected components of unsolved phis from `root`, needed ones first (Tarjan, iterative).

    `needs_of` lists the unsolved phis that one needs, None where one cannot be solved now; then so is the answer.
    """
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    result: list[list[Node]] = []
    work: list[tuple[Node, list[Node]]] = []

    def enter(node: Node) -> bool:
        wanted = needs_of(node)
        if wanted is None:
            return False
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        work.append((node, wanted))
        return True

    if not enter(root):
        return None
    while work:
        node, needs = work[-1]
        if needs:
            child = needs.pop()
            if child not in index:
                if not enter(child):
                    return None
            elif child in on_stack:
                low[node] = min(low[node], index[child])
            continue
        work.pop()
        if work:
            low[work[-1][0]] = min(low[work[-1][0]], low[node])
        if low[node] == index[node]:
            at = stack.index(node)
            result.append(stack[at:])
            on_stack.difference_update(stack[at:])
            del stack[at:]
    return result


def widest(phi: Node) -> Value:
    """What a phi can hold when nothing is known of it."""
    return interval(0, ITERATIONS) if phi.data[0] == COUNTER else top(phi.width)


def compared(node: Node, args: list[Value]) -> Value:
    compare, sign, width = str(node.data[0]), bool(node.data[1]), int(node.data[2])
    fix = signed if sign else unsigned
    a, b = fix(args[0], width), fix(args[1], width)
    if not (plain(a) and plain(b)):
        return interval(0, 1)
    (al, ah), (bl, bh) = bounds(a), bounds(b)
    match compare:
        case "lt":
            answer = True if ah < bl else False if al >= bh else None
        case "le":
            answer = True if ah <= bl else False if al > bh else None
        case "gt":
            answer = True if al > bh else False if ah <= bl else None
        case "ge":
            answer = True if al >= bh else False if ah < bl else None
        case _:
            same = True if al == ah == bl == bh else False if ah < bl or bh < al else None
            answer = same if compare == "eq" or same is None else not same
    return interval(0, 1) if answer is None else constant(int(answer))


def widened(old: Value, new: Value, thresholds: list[int], phi: Node) -> Value:
    """`new` with every bound that moved put to the next threshold."""
    before = {s.base: s for s in old}
    spans: list[Span] = []
    limit = bounds(widest(phi))[1]
    for span in new:
        was = before.get(span.base)
        lo, hi = span.lo, span.hi
        if was is not None and hi > was.hi:
            hi = next((t for t in thresholds if t >= hi), limit)
        if was is not None and lo < was.lo:
            lo = next((t for t in reversed(thresholds) if t <= lo), -limit - 1)
        step = span.step or 1
        hi = span.lo + (hi - span.lo + step - 1) // step * step
        lo = span.lo - (span.lo - lo + step - 1) // step * step
        spans.append(Span(span.base, lo, hi, step))
    return tuple(spans)


def landmarks(form: Node, lo: int, hi: int, members: set[Node], value_of: Callable[[Node], Value]) -> set[int]:
    """Values of a member at which a constraint `lo <= form <= hi` begins to bind."""
    if form.op != "lin":
        return {lo - 1, lo, lo + 1, hi - 1, hi, hi + 1}
    found: set[int] = set()
    least = most = 0
    for atom, k in form.terms:
        if atom not in members:
            low, high = bounds(value_of(atom))
            least, most = least + min(k * low, k * high), most + max(k * low, k * high)
    for atom, k in form.terms:
        if atom in members:
            found.update((edge - rest) // k + i for edge in (lo, hi) for rest in (least, most) for i in (-1, 0, 1, 2))
    return found
