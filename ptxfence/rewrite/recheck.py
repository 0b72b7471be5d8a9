"""A second opinion on a patched text, by plain path search; it shares parser, table and regions with the analysis.

What a cover is
---------------
A generic access A and an async operation O on the same bytes, one of them writing, are safe if on the way from A
to O a proxy fence is run

- by the thread that made A, after A, and before it synchronises with others (for `cp.async`: after the wait that
  tells that the data has landed), on every path it can take; or
- by the thread that issues O, after it has synchronised with the thread that made A, and before O, on every path; or
- inside one CTA, by a thread that has synchronised with A and later synchronises with the one that issues O: at a
  CTA barrier by at least one thread of every CTA (at a warp barrier, of every warp) on all paths that it can take,
  or before an mbarrier arrive by all threads of one role that the wait waits for.

Both directions or the release half count, the acquire half does not; the `::read` half counts for reads, by the
thread that made them. The fence must cover the bytes: `shared::cta` covers the shared memory of the CTA that runs
it, a peer's needs `shared::cluster` or more. Behind a cluster arrive no fence reaches what the barrier carries.

Synchronising is: a CTA barrier, a warp barrier, a named barrier (arrive or sync, then sync with the same number by
other threads), an mbarrier (arrive, then a wait on the same bytes that it can end), a cluster barrier; a relaxed
arrive hands over what was so at the thread fence before it, and nothing without one. Bytes that a bulk load has
replaced since, and waited for, are not A's any more.

How it is checked
-----------------
For every A, trails.py follows all paths on which A stays uncovered, thread to thread through synchronisation, with
what is known of the walking thread (conditions on its indices), and lists the operations they come to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import Completion, Mode, Proxy, Role, SyncKind
from ptxfence.analysis.events import SHARED, Events, Touch
from ptxfence.analysis.inline import Routine
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.region import Region
from ptxfence.analysis.values import Values
from ptxfence.grammar import Function, Module
from ptxfence.rewrite.partners import Partners
from ptxfence.rewrite.roots import routine
from ptxfence.rewrite.trails import Trails


@dataclass(frozen=True, slots=True)
class Uncovered:
    """Access and operation (instruction indices) with the synchronising events on a trail between them."""

    access: int
    operation: int
    trail: tuple[int, ...]


def recheck(
    module: Module, function: Routine, wanted: Callable[[int, int], bool] = lambda _access, _operation: True
) -> tuple[Uncovered, ...]:
    """Pairs of kernel `function` that some path leaves uncovered; only those that `wanted` names by their indices.

    Indices count in the kernel with calls inlined (`roots.routine`), which `function` may be already.
    """
    body = routine(module, function) if isinstance(function, Function) else function
    cfg = Cfg(body)
    return uncovered(Events(module, body, cfg, Values(body, cfg, module)), wanted)


def uncovered(
    events: Events, wanted: Callable[[int, int], bool] = lambda _access, _operation: True
) -> tuple[Uncovered, ...]:
    """As `recheck`, for events that are there already."""
    partners = Partners(events)
    replacements = _Replacements(events, partners)
    barriers = _barriers(events)
    operations = [t for t in events.touches if t.is_async and t.region.space in SHARED]
    known: dict[tuple[object, ...], Trails] = {}
    found: list[Uncovered] = []
    for access in events.touches:
        if not _is_data(access, barriers):
            continue
        meeting = [o for o in operations if wanted(access.index, o.index) and _meet(access, o)]
        by_stops: dict[frozenset[int], list[Touch]] = {}
        for operation in meeting:
            by_stops.setdefault(replacements.behind(access, operation), []).append(operation)
        for stops, group in by_stops.items():
            key = Trails.key(partners, access, stops)
            trails = known[key] = known.get(key) or Trails(partners, access, stops)
            found += (
                Uncovered(access.index, o.index, (access.index, *trails.route(trails.hits[o.number])[1:]))
                for o in group
                if o.number in trails.hits
            )
    return tuple(dict.fromkeys(found))


def _is_data(touch: Touch, barriers: set[Region]) -> bool:
    if touch.access.proxy is not Proxy.GENERIC or touch.access.role is not Role.DATA:
        return False
    return touch.region.space in SHARED and not any(barrier.holds(touch.region) for barrier in barriers)


def _barriers(events: Events) -> set[Region]:
    """Bytes that are an mbarrier for the whole run of the kernel."""
    every = [e for found in events.by_block.values() for e in found if e.barrier is not None and e.barrier.bounded]
    dead = [e.barrier for e in every if e.effect.sync and e.effect.sync.kind is SyncKind.MBARRIER_INVAL]
    regions = {e.barrier for e in every if e.barrier is not None}
    return {r for r in regions if not any(d is not None and overlap(r, d) is not Overlap.NO for d in dead)}


def _meet(access: Touch, operation: Touch) -> bool:
    if not (access.access.mode | operation.access.mode) & Mode.WRITE:
        return False
    if not (access.region.bounded and operation.region.bounded):
        return False
    return overlap(access.region, operation.region) is not Overlap.NO


class _Replacements:
    """Waits behind which an operation reads what a bulk load has put over the bytes."""

    def __init__(self, events: Events, partners: Partners) -> None:
        self.events = events
        self.partners = partners
        self._loads = [
            t
            for t in events.touches
            if t.is_async and t.access.mode & Mode.WRITE and t.access.completion is Completion.MBARRIER
        ]
        self._known: dict[int, tuple[frozenset[int], bool]] = {}

    def behind(self, access: Touch, operation: Touch) -> frozenset[int]:
        """The waits that end a trail from `access` to `operation`; none if the loads may be a round behind."""
        if operation.access.mode & Mode.WRITE:
            return frozenset()
        found = self._known.get(operation.number)
        if found is None:
            found = self._known[operation.number] = self._waits(operation)
        waits, moving = found
        if moving and _inner_loop_holds(self.events.cfg, operation.index, access.index):
            return frozenset()
        return waits

    def _waits(self, operation: Touch) -> tuple[frozenset[int], bool]:
        loads = [t for t in self._loads if t.region.holds(operation.region)]
        named = ((t.index, t.access.mbarrier) for t in loads)
        barriers = [self.events.values.mbarrier_region(index, at) for index, at in named if at is not None]
        waits = frozenset(w.index for barrier in dict.fromkeys(barriers) for w in self.partners.waits_on(barrier))
        return waits, any(_moves(t.region) for t in (*loads, operation))


def _moves(region: Region) -> bool:
    return region.step != 0 or any(term.lo != term.hi for term in region.terms or ())


def _inner_loop_holds(cfg: Cfg, inner: int, other: int) -> bool:
    loops = cfg.loops_of.get(cfg.block_of(inner), ())
    return bool(loops) and cfg.block_of(other) in cfg.loops[loops[-1]].blocks
