"""Where fences cost least: a minimum vertex cut between the accesses and the operations they endanger.

Vertices are spots (program points between the events of the flow), edges lead along control flow and hand-offs as
far as the access stays unfenced. Every path of every demand must be cut. The price of a spot is an estimate of how
often it runs times the cycles of the narrowest form that covers what is pending there; it is infinite where a fence
would not count (data of a cp.async has not landed, a cluster arrive has passed) and where the text has no line for
it. Demands are cut one after the other, spots already taken being free, and all at once; the cheapest plan wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from ptxfence.analysis.effects import SyncKind
from ptxfence.analysis.events import Event
from ptxfence.rewrite.forms import CLUSTER, OWN, Form
from ptxfence.rewrite.kernel import Kernel, Spot

LOOP_FACTOR = 8
"""Estimated executions of a loop body for one of the loop."""

MAX_DEPTH = 6
_SCALE = 1000  # one cycle; what is below decides between equal prices
_PER_FENCE = 10
_ISSUER_SIDE = 10_000  # factor on spots behind the synchronisation under the policy "writer-side"


@dataclass(frozen=True, slots=True)
class Demand:
    """Accesses (bits) that must not reach async touch `operation` unfenced; `rules` asked for it."""

    operation: int
    bits: int
    rules: frozenset[str]


@dataclass(frozen=True, slots=True)
class Placed:
    """A fence to insert before line `line`; `estimate` is in cycles times executions."""

    spot: Spot
    line: int
    form: Form
    estimate: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Price:
    """Of one spot for one demand: the form that covers everything pending there."""

    amount: int
    form: Form


class Routes:
    """How the accesses of one demand reach its operation: the graph to be cut."""

    def __init__(self, kernel: Kernel, demand: Demand) -> None:
        self.kernel = kernel
        self.demand = demand
        # What a peer's threads know of matters to operations that reach the peer's bytes only.
        self._far = kernel.conflicts.operations[demand.operation].far
        self.edges: dict[Spot, list[Spot]] = {}
        self.sources: list[Spot] = []
        self.sinks: set[Spot] = set()
        for block in kernel.flow.inputs:
            self._block(block)

    def _hot(self, spot: Spot) -> int:
        level = self.kernel.levels[spot]
        return (level.near | level.far & self._far | level.carried) & self.demand.bits

    def _connect(self, a: Spot, b: Spot) -> None:
        if self._hot(a) & self._hot(b):
            self.edges.setdefault(a, []).append(b)

    def _block(self, block: int) -> None:
        steps = self.kernel.steps(block)
        spots = [Spot(block, slot) for slot in range(len(steps) + 1)]
        for before, after in pairwise(spots):
            self._connect(before, after)
        for step, (before, after) in zip(steps, pairwise(spots), strict=True):
            if step.event is None:
                continue
            if self._makes(step.event, before, after):
                self.sources.append(after)
            if any(touch.number == self.demand.operation for touch in step.event.touches) and self._hot(before):
                self.sinks.add(before)
            self._receive(step.index, after)
        for successor in self.kernel.cfg.succs[block]:
            if successor in self.kernel.flow.inputs:
                self._connect(spots[-1], Spot(successor, 0))

    def _makes(self, event: Event, before: Spot, after: Spot) -> bool:
        """Whether the event makes an access of the demand, or lands one."""
        new = self._hot(after) & ~self._hot(before)
        if event.effect.group is not None:
            return bool(new)
        mask = 0
        for touch in event.touches:
            mask |= self.kernel.conflicts.mask(touch)
        return bool(mask & self._hot(after))

    def _receive(self, index: int, after: Spot) -> None:
        for release, bits in self.kernel.handed_over(index):
            if not bits & self._hot(after):
                continue
            assert release.effect.sync is not None
            if release.effect.sync.kind is SyncKind.CP_ASYNC_ARRIVE:
                self.sources.append(after)  # the data lands with the arrive: no point before it is late enough
            self._connect(self._spot_before(release.index), after)

    def _spot_before(self, index: int) -> Spot:
        block = self.kernel.cfg.block_of(index)
        steps = self.kernel.steps(block)
        return Spot(block, next(k for k, s in enumerate(steps) if s.event is not None and s.index == index))

    @cached_property
    def nodes(self) -> frozenset[Spot]:
        """Spots on some path from an access to the operation."""
        forward = _closure(self.sources, self.edges)
        back: dict[Spot, list[Spot]] = {}
        for a, targets in self.edges.items():
            for b in targets:
                back.setdefault(b, []).append(a)
        return forward & _closure(self.sinks, back)

    def is_cut(self, fences: dict[Spot, Form]) -> bool:
        """Whether every path meets a fence that covers what is pending there."""
        blocked = {s for s, form in fences.items() if self.covers(s, form)}
        reached = _closure([s for s in self.sources if s not in blocked], self.edges, blocked)
        return not reached & self.sinks

    def covers(self, spot: Spot, form: Form) -> bool:
        """Whether a fence of this form at the spot covers all accesses of the demand that are pending there."""
        level, bits, remote = self.kernel.levels[spot], self.demand.bits, self.kernel.conflicts.remote
        far = level.far & self._far & bits
        if level.carried & bits:
            return False
        if form.covers >= CLUSTER.covers:
            return True
        return form.covers >= OWN.covers and not (level.near & bits & remote or far & ~remote)

    def price(self, spot: Spot, policy: str) -> Price | None:
        """None where a fence would not count."""
        form = next((f for f in (OWN, CLUSTER) if self.covers(spot, f)), None)
        if form is None:
            return None
        amount = estimate(self.kernel, spot, form) * _SCALE + _PER_FENCE + self._taste(spot)
        if policy == "writer-side" and not self.kernel.levels[spot].own & self.demand.bits:
            amount *= _ISSUER_SIDE
        return Price(amount, form)

    def _taste(self, spot: Spot) -> int:
        """Between equal prices: right before the writers' synchronisation, then right before the operation."""
        steps = self.kernel.steps(spot.block)
        event = steps[spot.slot].event if spot.slot < len(steps) else None
        if self.kernel.levels[spot].own & self.demand.bits:
            return 0 if event is not None and event.effect.sync is not None else 2
        return 4 if spot in self.sinks else 6


def estimate(kernel: Kernel, spot: Spot, form: Form) -> int:
    """Cycles that a fence at the spot costs in one run of the kernel, by loop depth."""
    return form.cycles * LOOP_FACTOR ** min(kernel.depth(spot), MAX_DEPTH)


def _closure(
    start: Iterable[Spot], edges: dict[Spot, list[Spot]], blocked: Iterable[Spot] = frozenset[Spot]()
) -> frozenset[Spot]:
    seen = set(start)
    work = list(seen)
    while work:
        for other in edges.get(work.pop(), ()):
            if other not in seen and other not in blocked:
                seen.add(other)
                work.append(other)
    return frozenset(seen)


def plan(kernel: Kernel, demands: Sequence[Demand], policy: str) -> tuple[tuple[Placed, ...], tuple[Demand, ...]]:
    """The cheapest fences found, and the demands that no fence can meet. `policy`: "writer-side" or "cheapest"."""
    routes = [Routes(kernel, demand) for demand in demands]
    routes = [r for r in routes if r.nodes]
    lines = _Lines(kernel)
    hopeless = [r for r in routes if _cut([r], {}, lines, policy) is None]
    routes = [r for r in routes if r not in hopeless]
    tried = [_one_by_one(routes, lines, policy), _one_by_one(routes[::-1], lines, policy)]
    if (together := _cut(routes, {}, lines, policy)) is not None:
        tried.append(together)
    best = min((pruned(kernel, fences, routes) for fences in tried), key=lambda fences: _total(kernel, fences))
    placed = tuple(
        Placed(spot, lines[spot] or 0, form, estimate(kernel, spot, form), _rules(spot, form, routes, best))
        for spot, form in sorted(best.items(), key=lambda item: lines[item[0]] or 0)
    )
    return placed, tuple(r.demand for r in hopeless)


class _Lines(dict[Spot, "int | None"]):
    """Line of each spot, looked up once."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel

    def __missing__(self, spot: Spot) -> int | None:
        line = self[spot] = self.kernel.line_of(spot)
        return line


def _total(kernel: Kernel, fences: dict[Spot, Form]) -> tuple[int, int]:
    return sum(estimate(kernel, spot, form) for spot, form in fences.items()), len(fences)


def _one_by_one(routes: Sequence[Routes], lines: _Lines, policy: str) -> dict[Spot, Form]:
    fences: dict[Spot, Form] = {}
    for route in routes:
        if not route.is_cut(fences):
            fences |= _cut([route], fences, lines, policy) or {}
    return fences


def pruned(kernel: Kernel, fences: dict[Spot, Form], routes: Sequence[Routes]) -> dict[Spot, Form]:
    """Without the fences, and with the narrowest forms, that the demands allow; dearest first."""
    left = dict(fences)
    for spot in sorted(fences, key=lambda s: estimate(kernel, s, fences[s]), reverse=True):
        form = left.pop(spot)
        if not all(r.is_cut(left) for r in routes):
            left[spot] = OWN if form is not OWN and all(r.is_cut(left | {spot: OWN}) for r in routes) else form
    return left


def _rules(spot: Spot, form: Form, routes: Sequence[Routes], fences: dict[Spot, Form]) -> tuple[str, ...]:
    served = [r for r in routes if spot in r.nodes and r.covers(spot, form)]
    needed = [r for r in served if not r.is_cut({s: f for s, f in fences.items() if s != spot})]
    return tuple(sorted({rule for r in needed or served for rule in r.demand.rules}))


def _cut(routes: Sequence[Routes], taken: dict[Spot, Form], lines: _Lines, policy: str) -> dict[Spot, Form] | None:
    """A minimum cut of all routes together, spots in `taken` being free; None if there is none."""
    import networkx

    if not routes:
        return {}
    nx: Any = networkx  # its annotations leave node types open
    forms: dict[Spot, Form] = {}
    graph = nx.DiGraph()
    for spot in dict.fromkeys(s for r in routes for s in r.nodes):
        price = _joint_price(spot, routes, taken, policy) if lines[spot] is not None else None
        if price is None:
            graph.add_edge((spot, 0), (spot, 1))
        else:
            forms[spot] = price.form
            graph.add_edge((spot, 0), (spot, 1), capacity=price.amount)
    for route in routes:
        for spot in route.nodes:
            graph.add_edges_from(((spot, 1), (other, 0)) for other in route.edges.get(spot, ()) if other in route.nodes)
        graph.add_edges_from(("source", (spot, 0)) for spot in route.sources if spot in route.nodes)
        graph.add_edges_from(((spot, 1), "sink") for spot in route.sinks if spot in route.nodes)
    try:
        _, (near, _) = nx.minimum_cut(graph, "source", "sink")
    except nx.NetworkXUnbounded:
        return None
    return {spot: form for spot, form in forms.items() if (spot, 0) in near and (spot, 1) not in near}


def _joint_price(spot: Spot, routes: Sequence[Routes], taken: dict[Spot, Form], policy: str) -> Price | None:
    """The widest form and the highest price that a route through the spot asks; free if such a fence is there."""
    prices = [r.price(spot, policy) for r in routes if spot in r.nodes]
    if any(price is None for price in prices):
        return None
    known = [price for price in prices if price is not None]
    form = max((price.form for price in known), key=lambda f: f.cycles)
    if spot in taken and taken[spot].covers >= form.covers:
        return Price(0, taken[spot])
    return Price(max(price.amount for price in known), form)
