"""From values to bytes: base, bounds, slots and linear form of an address."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from ptxfence.analysis.effects import Space
from ptxfence.analysis.isa import effect
from ptxfence.analysis.region import SHARED, UNBOUNDED, Base, BaseKind, Region, Term
from ptxfence.analysis.values_domain import Span, Value, bounds, plain
from ptxfence.analysis.values_env import Env
from ptxfence.analysis.values_nodes import Node, describe
from ptxfence.analysis.values_ops import PEER, WINDOW
from ptxfence.grammar.model import FunctionKind

if TYPE_CHECKING:
    from ptxfence.analysis.values import Values


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
