"""PF120 in rings: a bulk store's slot written again while the store is in flight (contract 2, fine print).

A store and a reuse whose addresses share a term that takes `n` values over the iterations of a loop meet in one slot
again after `n` iterations at the latest. What the issuer has not waited for by then (a group counts as pending while
`wait_group` allows it), or has not told the other threads of by a barrier, has not been waited for earlier either.
Only a pair that fails on every way round the loop is accused: what holds on some ways may be decided by the trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from ptxfence.analysis.cfg import Loop
from ptxfence.analysis.conditions import ThreadSet, disjoint, subset
from ptxfence.analysis.context import Context
from ptxfence.analysis.effects import Completion, GroupKind, Mode, Proxy
from ptxfence.analysis.events import SHARED, Event, Touch, in_order
from ptxfence.analysis.extent import tiled
from ptxfence.analysis.flights import by_others, clash, fixed, least, one_issuer, provable
from ptxfence.analysis.region import Region, Term

MOST_SLOTS = 16
OPEN, LANDED, JOINED, FLYING = -1, 100, 101, 102
"""Phases of a store: not committed; from 0 the commits since its own; waited for by its issuer; told to all. `FLYING`:
another thread has passed a barrier before which the issuer had not waited."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a walk stands: an instruction, rounds of the loop since the store, its phase, on whose way."""

    index: int
    laps: int
    phase: int
    issuer: bool


def overtaken(context: Context) -> Iterator[tuple[Touch, Touch, int]]:
    """Stores, the reuses that certainly overtake them, at most one of each store, and the slots of their ring."""
    stores = [t for t in context.events.touches if _is_store(t) and _loop(context, t) is not None]
    if not stores:
        return
    writes = [t for t in context.events.touches if _is_write(t)]
    for store in stores:
        loop = _loop(context, store)
        assert loop is not None
        for write in (w for w in writes if _loop(context, w) is loop):
            term = _shared_term(store.region, write.region)
            if term is not None and _overtakes(context, loop, store, write, term):
                yield store, write, _slots(term)
                break


def never_waited(context: Context, moving: list[Touch]) -> Iterator[tuple[Touch, Touch]]:
    """Stores from the slots of a ring whose issuer never waits for any of them, and a reuse, in whatever role."""
    paths = context.witness.paths
    for store in moving:
        if store.access.completion is not Completion.BULK_GROUP or fixed(store) or not tiled(store.region):
            continue
        groups = (e for e in in_order(context.events) if (g := e.effect.group) and g.kind is not GroupKind.COMMIT)
        if any(paths.reaches(store.index, event.index, leap=False) for event in groups):
            continue
        for reuse in (t for t in context.events.touches if t.region.space in SHARED and t.region.exact):
            meets = clash(store.access, reuse.access) and store.region.holds(reuse.region)
            if meets and paths.reaches(store.index, reuse.index):
                yield store, reuse
                break


def _overtakes(context: Context, loop: Loop, store: Touch, write: Touch, term: Term) -> bool:
    """Whether the two are in one slot for certain where they meet, and meet while the store is in flight."""
    one, other = least(_in_slot(store, term)), _in_slot(write, term)
    if not (fixed(one) and fixed(other) and provable(one.region, other.region)):
        return False
    context.tick()
    return _rotates(context, store, loop, term) and _Walk(context, loop, one, other, _slots(term)).fails()


def _is_store(touch: Touch) -> bool:
    bulk = touch.is_async and touch.access.completion is Completion.BULK_GROUP
    return bulk and touch.region.space in SHARED and one_issuer(touch)


def _is_write(touch: Touch) -> bool:
    generic = touch.access.proxy is Proxy.GENERIC and touch.access.mode & Mode.WRITE
    return bool(generic) and touch.region.space in SHARED


def _loop(context: Context, touch: Touch) -> Loop | None:
    cfg = context.flow.cfg
    numbers = cfg.loops_of.get(cfg.block_of(touch.index), ())
    return cfg.loops[numbers[-1]] if numbers else None


def _shared_term(store: Region, write: Region) -> Term | None:
    """The one term that chooses the slot of both."""
    if store.base != write.base or store.terms is None or write.terms is None or store.peer or write.peer:
        return None
    moving = [[t for t in region.terms or () if t.defs] for region in (store, write)]
    if len(moving[0]) != 1 or moving[0] != moving[1]:
        return None
    (term,) = moving[0]
    return term if not term.varies and 2 <= _slots(term) <= MOST_SLOTS else None


def _slots(term: Term) -> int:
    return (term.hi - term.lo) // term.step + 1


def _in_slot(touch: Touch, term: Term) -> Touch:
    """The touch as it is in one slot."""
    region = touch.region
    if region.terms is None or region.origin is None or region.lo is None or region.hi is None:
        return touch
    rest = tuple(t for t in region.terms if t != term)
    lowest = region.origin + sum(t.scale * (t.lo if t.scale > 0 else t.hi) for t in rest)
    highest = region.origin + sum(t.scale * (t.hi if t.scale > 0 else t.lo) for t in rest)
    alone = region._replace(terms=rest, lo=lowest, hi=highest + region.width, step=0, span=0)
    return replace(touch, region=alone)


def _rotates(context: Context, store: Touch, loop: Loop, term: Term) -> bool:
    """Whether the term is computed from a counter of the loop that takes more values than there are slots."""
    values = context.events.values
    start = context.flow.cfg.blocks[loop.header].start
    if term.defs != frozenset((start,)):
        return False
    node = values.node(store.index, store.access.operand)
    atoms = [atom for atom, _ in node.terms] if node.op == "lin" else [node]
    named = next((a for a in atoms if values.guards.identity(a)[0] == term.variable), None)
    if named is None or named.op == "phi" or not named.phis:
        return False
    spans = [span for phi in named.phis for span in values.solver.evaluate(phi)]
    return all((span.hi - span.lo) // (span.step or 1) >= 2 * _slots(term) for span in spans)


class _Walk:
    """All ways round a loop from one store to one reuse of its slot, `slots` rounds later."""

    def __init__(self, context: Context, loop: Loop, store: Touch, write: Touch, slots: int) -> None:
        self.context = context
        self.cfg = context.flow.cfg
        self.loop = loop
        self.store = store
        self.write = write
        self.slots = slots
        self.failing = False
        self.doubtful = False

    @cached_property
    def _others(self) -> bool:
        return by_others(self.store, self.write)

    @cached_property
    def _events(self) -> dict[int, list[Event]]:
        return {block: self.context.events.by_block.get(block, []) for block in self.loop.blocks}

    def fails(self) -> bool:
        """Whether the store may be in flight at the reuse, whatever way is taken."""
        first = Point(self.store.index + 1, 0, OPEN, True)
        seen = {first}
        work = [first]
        while work and not self.doubtful:
            for point in self._onward(work.pop()):
                if point not in seen:
                    seen.add(point)
                    work.append(point)
        return self.failing and not self.doubtful

    def _onward(self, point: Point) -> Iterator[Point]:
        """What follows a point: over the next events of its block, or over the edges."""
        block = self.cfg.block_of(point.index)
        event = next((e for e in self._events[block] if e.index >= point.index), None)
        if event is not None:
            yield from self._over(event, point)
            return
        threads = self.store.threads if point.issuer else self.write.threads
        for successor in self.cfg.succs[block]:
            again = successor == self.loop.header
            if successor not in self.loop.blocks or (again and point.laps == self.slots):
                continue
            edge = self.context.events.values.edge(block, successor)
            if not disjoint(threads, edge) and not (not point.issuer and self._theirs(block, edge)):
                start = self.cfg.blocks[successor].start
                yield replace(point, index=start, laps=point.laps + again)

    def _theirs(self, block: int, edge: ThreadSet) -> bool:
        """Whether only the issuer takes the edge."""
        return subset(self.context.events.values.arriving(block) | edge, self.store.threads)

    def _over(self, event: Event, point: Point) -> Iterator[Point]:
        after = replace(point, index=event.index + 1)
        if event.index == self.write.index and point.laps == self.slots:
            self._reuse(point)
        if event.index in self.context.events.joins:
            yield from self._join(event, after)
            return
        if point.issuer and event.effect.group is not None:
            yield from self._group(event, after)
            return
        yield after

    def _reuse(self, point: Point) -> None:
        if point.phase in (LANDED, JOINED):
            self.doubtful |= not point.issuer or not self._others
        else:
            self.failing |= point.issuer or self._others

    def _join(self, event: Event, after: Point) -> Iterator[Point]:
        """A barrier of all tells the others what the issuer has waited for; other hand-offs are not followed."""
        threads = self.context.flow.threads(event.index)
        everybody = event.index in self.context.events.barriers and subset(self.store.threads, threads)
        if not after.issuer:
            self.doubtful |= not everybody
            return  # the issuer's own way leads to this barrier as well
        if not everybody or not subset(self.write.threads, threads):
            yield after
            return
        yield replace(after, phase=JOINED if after.phase == LANDED else after.phase)
        others = JOINED if after.phase in (LANDED, JOINED) else FLYING
        yield replace(after, phase=others, issuer=False)

    def _group(self, event: Event, after: Point) -> Iterator[Point]:
        """Commits count; a wait may leave that many groups pending. Under a condition both ways go on."""
        group = event.effect.group
        assert group is not None
        if group.completion is not Completion.BULK_GROUP or after.phase in (LANDED, JOINED):
            yield after
            return
        if not subset(self.store.threads, event.guard):
            yield after
        if disjoint(self.store.threads, event.guard):
            return
        if group.kind is GroupKind.COMMIT:
            yield replace(after, phase=min(after.phase + 1, MOST_SLOTS))
            return
        allowed = 0 if group.kind is GroupKind.WAIT_ALL else event.pending
        unknown = allowed is None
        ends = unknown or group.kind is GroupKind.WAIT_ALL or (after.phase >= 0 and after.phase >= (allowed or 0))
        yield replace(after, phase=LANDED if ends else after.phase)
