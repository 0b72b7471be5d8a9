"""From values to bytes, and which bytes can be the same.

`region_of` reads base, bounds, slots and linear form out of an address. `overlap` and its variants compare two
regions: numerically, and along their linear forms, where large strides (ring stages, warps) keep small extents apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from ptxfence.analysis.effects import Space
from ptxfence.analysis.isa import effect
from ptxfence.analysis.region import Base, BaseKind, Region, Term
from ptxfence.analysis.values_domain import Span, Value, bounds, plain
from ptxfence.analysis.values_env import Env
from ptxfence.analysis.values_nodes import Node, describe
from ptxfence.analysis.values_ops import PEER, WINDOW
from ptxfence.grammar.model import FunctionKind

if TYPE_CHECKING:
    from ptxfence.analysis.values import Values

UNBOUNDED = 1 << 18  # no offset in shared memory is larger
SHARED = (Space.CTA, Space.CLUSTER)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is touched at an address: `[before, size)` around it, `size` None where unknown."""

    space: Space
    size: int | None = None
    width: int = 0
    exact: bool = False
    before: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """What an address is, apart from its constant part: shared by all accesses that differ in that alone."""

    space: Space
    base: Base | None
    spans: Value
    terms: tuple[Term, ...] | None
    based: bool
    peer: bool
    slots: dict[int, tuple[int, int]]  # by size


def region_of(values: Values, index: int, node: Node, shape: Shape) -> Region:
    """The region of an access at address `node`."""
    env = values.env_at(index)
    place, const = _shared_place(values, env, node, shape.space)
    space, base, peer = place.space, place.base, place.peer
    if base is None:
        return Region(space, base, width=shape.width, peer=peer, lost=lost_at(values, node, index))
    lo, hi = bounds(place.spans)
    lo, hi = lo + const, hi + const
    terms, origin = place.terms, node.const if place.based else None
    limit = UNBOUNDED if space in SHARED else 1 << 40
    if hi - lo >= limit or abs(lo) >= limit:
        lost = lost_at(values, node, index)
        return Region(space, base, width=shape.width, peer=peer, lost=lost, terms=terms, origin=origin)
    if shape.size is None:
        return Region(space, base, lo, None, peer=peer, terms=terms, origin=origin, lost=index)
    found = place.slots.get(shape.size)
    if found is None:
        found = _slots(place.spans, terms, shape.size)
        if found[0] and terms is not None and (lo - _start(terms, origin)) % found[0]:  # the first begins elsewhere
            found = 0, 0
        place.slots[shape.size] = found
    step, span = found
    exact = shape.exact and terms is not None
    return Region(
        space, base, lo - shape.before, hi + shape.size, step, shape.width, exact, origin, terms, peer, None, "", span
    )  # fmt: skip


def _shared_place(values: Values, env: Env, node: Node, space: Space) -> tuple[Place, int]:
    """The place of an address, and the constant that its spans do not hold."""
    if not node.const:
        return _find(values, env, node, space), 0
    key = (env, node.terms, space)
    place = values.places.get(key)
    if place is None:
        rest = values.builder.graph.form(0, node.terms)
        if len(values.solver.under(rest, env)) != 1:  # a null pointer among several is told by its constant
            return _find(values, env, node, space), 0
        place = values.places[key] = _find(values, env, rest, space)
    return place, node.const


def _find(values: Values, env: Env, node: Node, space: Space) -> Place:
    value = values.solver.under(node, env)
    space, base, spans, peer = _resolve(values, node, value, space)
    if base is None or spans is None:
        return Place(space, None, (), None, False, peer, {})
    terms, based = _terms(values, node, env, base)
    return Place(space, base, spans, terms, based, peer, {})


def _resolve(values: Values, node: Node, value: Value, space: Space) -> tuple[Space, Base | None, Value | None, bool]:
    """Space, base, offsets and whether another CTA's memory is meant."""
    names: set[str] = set()
    peer = False
    window = False
    offsets: list[Span] = []
    for span in value:
        symbol = ""
        for name, scale in span.base:
            if name == WINDOW:
                window = True
            elif name.startswith(PEER):
                peer = True
            elif scale == 1.0 and not symbol:
                symbol = name
            else:
                symbol = "?"
        if not span.base and len(value) > 1 and span.lo == span.hi == 0:
            continue  # a null pointer that no path dereferences
        names.add(symbol)
        offsets.append(Span((), span.lo, span.hi, span.step, span.mask))
    if space is Space.ANY:
        space = Space.CTA if window else _declared_space(values, names) or space
    if space is Space.CLUSTER and not peer:
        space = Space.CTA
    if len(names) == 1 and (name := next(iter(names))) not in ("", "?"):
        return space, Base(BaseKind.SYMBOL, values.builder.canonical(name)), tuple(offsets), peer
    opaque = opaque_base(node)
    if opaque is not None and names <= {""}:
        if space is Space.ANY and _never_shared(values, opaque):
            space = Space.GLOBAL
        rest = values.solver.graph.add(node, opaque, 64, -1)
        value = values.solver.evaluate(rest)
        if plain(value):
            return space, Base(BaseKind.OPAQUE, describe(opaque)), value, peer
    return space, None, None, peer


def _never_shared(values: Values, node: Node) -> bool:
    """Whether a pointer cannot be a shared address: it comes from the launch, when there is none yet, or from global
    or constant memory, where no compiler keeps one."""
    name = str(node.data[0])
    if name.startswith("param"):
        return values.function.kind is FunctionKind.ENTRY
    if not name.startswith("ld@"):
        return False
    index = int(name.split("@")[1].split(".")[0].split("(")[0])
    instruction = values.cfg.instructions[index]
    spaces = {access.space for access in effect(instruction.opcode, instruction.operands).accesses}
    return spaces <= {Space.GLOBAL, Space.CONST}


def _declared_space(values: Values, names: set[str]) -> Space | None:
    found = {values.builder.symbols[n].space for n in names if n in values.builder.symbols}
    table = {"global": Space.GLOBAL, "const": Space.CONST, "local": Space.LOCAL, "param": Space.PARAM}
    return table.get(found.pop()) if len(found) == 1 else None


def opaque_base(node: Node) -> Node | None:
    """The one unknown 64-bit (or 32-bit) variable that an address is an offset from."""
    terms = node.terms if node.op == "lin" else ((node, 1),)
    found = [a for a, k in terms if k == 1 and a.op in ("var", "phi") and a.width == 64]
    if not found:
        found = [a for a, k in terms if k == 1 and a.op == "var" and str(a.data[0]).startswith(("param", "ld", "call"))]
    return found[0] if len(found) == 1 else None


def lost_at(values: Values, node: Node, index: int) -> int:
    """The instruction behind the widest part of an address."""
    work, best, width = [node], index, 0
    seen: set[Node] = set()
    while work:
        part = work.pop()
        if part in seen or len(seen) > 200:
            continue
        seen.add(part)
        work.extend(part.args)
        if part.op == "var" and "@" in (name := str(part.data[0])):
            lo, hi = bounds(values.solver.evaluate(part))
            if hi - lo > width:
                width, best = hi - lo, int(name.split("@")[1].split(".")[0])
        elif part.op == "phi" and part.alias is None:
            lo, hi = bounds(values.solver.evaluate(part))
            if hi - lo > max(width, UNBOUNDED):
                width, best = hi - lo, values.cfg.blocks[int(part.data[1])].start
    return best


def _terms(values: Values, node: Node, env: Env, base: Base) -> tuple[tuple[Term, ...] | None, bool]:
    """The linear form of the offset, None where the base is not a plain part of it; whether it is."""
    parts = node.terms if node.op == "lin" else ((node, 1),)
    terms: list[Term] = []
    based = False
    for atom, k in parts:
        if atom.op == "sym":
            if values.builder.canonical(str(atom.data[0])) == base.name:
                based = True
            continue
        if base.kind is BaseKind.OPAQUE and describe(atom) == base.name and k == 1:
            based = True
            continue
        value = values.solver.under(atom, env)
        lo, hi = bounds(value)
        if not plain(value):
            based = True
        step = 0
        for span in value:
            step = gcd(step, span.step, span.lo - lo)
        name, varies, defs = values.guards.identity(atom)
        terms.append(Term(name, k, lo, hi, varies, step or 1, defs))
    return (tuple(terms), True) if based else (None, False)


def slots(region: Region, size: int) -> tuple[int, int]:
    """The best (step, span) of a region whose instances have `size` bytes; (0, 0) if they are one block."""
    known = () if region.terms is not None else (Span((), 0, 0, region.step),)
    return _slots(known, region.terms, size)


def _slots(spans: Value, terms: tuple[Term, ...] | None, size: int) -> tuple[int, int]:
    """The best (step, span) with which the bytes lie in separate slots; (0, 0) if they are one block."""
    if terms is not None:
        ordered = sorted(terms, key=lambda t: abs(t.scale) * t.step)
        for cut in range(len(ordered) - 1, -1, -1):
            extent = size + sum(abs(t.scale) * (t.hi - t.lo) for t in ordered[:cut])
            step = gcd(*(t.scale * t.step for t in ordered[cut:] if t.hi > t.lo), 0)
            if step >= extent + 1:
                return step, extent
    if len(spans) == 1 and spans[0].step > size:
        return spans[0].step, size
    return 0, 0


def _start(terms: tuple[Term, ...], origin: int | None) -> int:
    """Where the linear form is lowest."""
    return (origin or 0) + sum(min(t.scale * t.lo, t.scale * t.hi) for t in terms)


class Overlap(Enum):
    """Whether two accesses can touch a common byte."""

    NO = 0
    MAYBE = 1
    CERTAIN = 2


class Outline(NamedTuple):
    """Where a region's instances start: a constant and terms (coefficient, largest multiple, variable or "") over
    variables that count from 0; and how wide one is."""

    const: int
    terms: tuple[tuple[int, int, str], ...]
    width: int


def overlap(a: Region, b: Region, outlines: tuple[Outline, Outline] | None = None) -> Overlap:
    """Any thread's bytes of `a` with any thread's bytes of `b`, in any iterations. `outlines` of the two, where the
    caller compares them often."""
    return _compare(a, b, False, outlines)


def other_thread_overlap(a: Region, b: Region) -> Overlap:
    """Bytes of two different threads; the same as `overlap`, since iterations may differ as well."""
    return _compare(a, b, False)


def same_thread_overlap(a: Region, b: Region) -> Overlap:
    """Bytes of one thread in one iteration: equal variables hold equal values and cancel."""
    return _compare(a, b, True)


def covers(a: Region, b: Region) -> bool:
    """Whether one instance of `a` certainly touches every byte that `b` may touch."""
    place = _place(a)
    if place is None or a.base != b.base or not b.bounded:
        return False
    assert b.lo is not None and b.hi is not None
    return place[0] <= b.lo and b.hi <= place[1] and a.peer == b.peer


def _place(a: Region) -> tuple[int, int] | None:
    """The bytes of an exact region that is the same for all threads and iterations."""
    if not a.exact or a.base is None or a.terms is None or a.origin is None:
        return None
    if any(t.hi > t.lo for t in a.terms):
        return None
    start = a.origin + sum(t.scale * t.lo for t in a.terms)
    return start, start + a.width


def _compare(a: Region, b: Region, same: bool, outlines: tuple[Outline, Outline] | None = None) -> Overlap:
    if a.base is None or b.base is None:
        return Overlap.MAYBE
    if a.base != b.base:
        opaque = BaseKind.OPAQUE in (a.base.kind, b.base.kind)
        return Overlap.MAYBE if opaque else Overlap.NO
    if a.lo is not None and b.hi is not None and a.lo >= b.hi:
        return Overlap.NO
    if b.lo is not None and a.hi is not None and b.lo >= a.hi:
        return Overlap.NO
    if not (a.bounded and b.bounded):
        return Overlap.MAYBE
    left, right = outlines or (outline(a), outline(b))
    if not _meets(left, right, same):
        return Overlap.NO
    return Overlap.CERTAIN if not (a.peer or b.peer) and (covers(a, b) or covers(b, a)) else Overlap.MAYBE


def outline(region: Region) -> Outline:
    """The outline of a bounded region."""
    assert region.lo is not None and region.hi is not None
    wide = max(1, region.width or region.hi - region.lo)
    if region.terms is None or region.origin is None:
        width = region.width if region.exact or not region.span else region.span
        last = region.hi - region.lo - max(width, 1)
        step = region.step or 1
        return Outline(region.lo, ((step, last // step, ""),) if last > 0 else (), wide)
    const = region.origin
    terms: list[tuple[int, int, str]] = []
    for t in region.terms:
        const += t.scale * t.lo
        if t.hi > t.lo:
            terms.append((t.scale * t.step, (t.hi - t.lo) // t.step, t.variable))
    return Outline(const, tuple(terms), wide)


def _meets(a: Outline, b: Outline, same: bool) -> bool:
    """Whether some instances of the two share a byte, as far as the linear forms tell."""
    apart = (*[(k, n) for k, n, _ in a.terms], *[(-k, n) for k, n, _ in b.terms])
    return _reachable(a.const - b.const, _differences(a, b) if same else apart, 1 - a.width, b.width - 1)


def _differences(a: Outline, b: Outline) -> tuple[tuple[int, int], ...]:
    """Terms of the difference of two starts of one thread in one iteration."""
    terms: list[tuple[int, int]] = []
    others = {name: (k, n) for k, n, name in b.terms if name}
    for k, n, name in a.terms:
        if name in others:
            back, count = others.pop(name)
            if k != back:
                terms.append((k - back, max(n, count)))
        else:
            terms.append((k, n))
    terms += [(-k, n) for k, n in others.values()]
    terms += [(-k, n) for k, n, name in b.terms if not name]
    return tuple(terms)


def _reachable(const: int, terms: tuple[tuple[int, int], ...], lo: int, hi: int) -> bool:
    """Whether `const + sum(k * x)`, `0 <= x <= n`, can lie in `[lo, hi]`: gaps between multiples of large strides."""
    lo, hi = lo - const, hi - const
    low, high, cuts = _cuts(terms)
    if low > hi or high < lo:
        return False
    for stride, big_low, big_high, low, high in cuts:
        first, last = max(lo - high, big_low), min(hi - low, big_high)
        if first > last or -(-first // stride) * stride > last:
            return False
    return True


@lru_cache(maxsize=1 << 12)
def _cuts(terms: tuple[tuple[int, int], ...]) -> tuple[int, int, tuple[tuple[int, int, int, int, int], ...]]:
    """Least and greatest value of `sum(k * x)`; and for each number of largest terms the stride of their sum and its
    bounds, and the bounds of the rest. Kept: accesses that differ in a constant share them."""
    low = sum(k * n for k, n in terms if k < 0)
    high = sum(k * n for k, n in terms if k > 0)
    found: list[tuple[int, int, int, int, int]] = []
    stride = big_low = big_high = 0
    rest_low, rest_high = low, high
    for k, n in sorted(terms, key=lambda t: -abs(t[0])):
        stride = gcd(stride, k)
        move = k * n
        big_low, big_high = big_low + min(0, move), big_high + max(0, move)
        rest_low, rest_high = rest_low - min(0, move), rest_high - max(0, move)
        found.append((stride, big_low, big_high, rest_low, rest_high))
    return low, high, tuple(found)


def classes(regions: Sequence[Region]) -> list[list[int]]:
    """Alias classes: positions in `regions`, grouped so that regions of different groups share no byte.

    A region without a base is in a group of its own: it may be anything.
    """
    parent = list(range(len(regions)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    by_base: dict[tuple[Base, bool], dict[Region, list[int]]] = {}
    for i, region in enumerate(regions):
        if region.base is not None:
            by_base.setdefault((region.base, region.space in SHARED), {}).setdefault(region, []).append(i)
    for groups in by_base.values():
        order = sorted(groups, key=lambda r: r.lo if r.lo is not None else -UNBOUNDED)
        for members in groups.values():
            for other in members[1:]:
                parent[root(other)] = root(members[0])
        active: list[Region] = []
        for region in order:
            start = region.lo if region.lo is not None else -UNBOUNDED
            active = [r for r in active if r.hi is None or r.hi > start]
            for other in active:
                one, two = root(groups[region][0]), root(groups[other][0])
                if one != two and overlap(region, other) is not Overlap.NO:
                    parent[one] = two
            active.append(region)
    found: dict[int, list[int]] = {}
    for i in range(len(regions)):
        found.setdefault(root(i), []).append(i)
    return list(found.values())
