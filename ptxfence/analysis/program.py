"""The events of a kernel made ready to run: guards as restrictions, thread sets as indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ptxfence.analysis.conditions import ALL, ThreadSet, subset
from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.effects import FenceKind, SyncKind
from ptxfence.analysis.events import Event, Events, Touch
from ptxfence.analysis.handoff import releases
from ptxfence.analysis.universe import MOST_THREADS, WARP, Restriction, Universe, negate, varying, warp_range

MAX_DEPTH = 16


@dataclass(slots=True)
class Step:
    """One event (or a redefinition of predicates), ready to run."""

    index: int
    event: Event | None
    inside: Restriction | None = None
    outside: Restriction | None = None
    guarded: bool = False
    members: tuple[int, ...] = ()
    cta: tuple[tuple[int, ...], ...] = ()
    warp: tuple[tuple[int, ...], ...] = ()
    redefines: tuple[int, ...] = ()
    staled: int = 0
    alone: int = 0  # accesses that no other thread makes than those that run this step
    beyond: int = 0  # accesses that other warps make, where one warp (or a thread of it) runs this step


class Program:
    """Steps by block, restrictions by edge, for one kernel and one set of tracked accesses.

    `replaced` gives events other touches than their own; `settles` says which events may end a fact, besides
    waits, so that their thread sets are told apart.
    """

    def __init__(
        self,
        events: Events,
        conflicts: Conflicts,
        replaced: Mapping[int, tuple[Touch, ...]] | None = None,
        settles: Callable[[Event], bool] | None = None,
    ) -> None:
        self.replaced = replaced
        self._settles = _fences if settles is None else settles
        self.events = events
        self.conflicts = conflicts
        self.cfg = events.cfg
        self.threads = events.values.threads
        self.universe = Universe(*self._thread_sets())
        self._accessors = self._accessor_masks()
        self.depth = self._group_depth()
        self.steps: dict[int, list[Step]] = {b: self._steps(b) for b in self.cfg.order}
        self._hops: dict[int, int] = {}
        self._released: dict[int, bool] = {}
        self._at_once: dict[int, bool] = {}
        self._edges: dict[tuple[int, int], Restriction | None] = {}

    def _thread_sets(self) -> tuple[list[ThreadSet], list[ThreadSet]]:
        """Thread sets that fence or wait, and those that issue async operations."""
        helping: list[ThreadSet] = []
        operating: list[ThreadSet] = []
        for event in (e for block in self.events.by_block.values() for e in block):
            sync = event.effect.sync
            if self._settles(event):
                helping.insert(0, self.threads(event.index))
            elif sync is not None and sync.kind is SyncKind.MBARRIER_WAIT:
                helping.append(self.threads(event.index))
            elif any(touch.number in self.conflicts.operations for touch in self.touches(event)):
                operating.append(self.threads(event.index))
        return helping, operating

    def touches(self, event: Event) -> tuple[Touch, ...]:
        """The touches of an event."""
        return event.touches if self.replaced is None else self.replaced.get(event.index, ())

    def _accessor_masks(self) -> tuple[tuple[int, ThreadSet], ...]:
        masks: dict[ThreadSet, int] = {}
        for number, touch in enumerate(self.conflicts.touches):
            masks[touch.threads] = masks.get(touch.threads, 0) | 1 << number
        self._makers = tuple((mask, threads) for threads, mask in masks.items())
        self._within: dict[ThreadSet, int] = {}
        self._beyond: dict[ThreadSet, int] = {}
        return tuple((mask, threads) for mask, threads in self._makers if threads)

    def _group_depth(self) -> int:
        pending = [
            e.pending or 0 for block in self.events.by_block.values() for e in block if e.effect.group is not None
        ]
        return min(max(pending, default=0), MAX_DEPTH) + 2

    def _steps(self, block: int) -> list[Step]:
        steps = [self._step(event) for event in self.events.by_block[block]]
        bounds = self.cfg.blocks[block]
        stale: dict[int, int] = {}
        for mask, threads in self._accessors:
            for definition in {d for atom in threads for d in atom.defs}:
                stale[definition] = stale.get(definition, 0) | mask
        for definition in self.universe.resets.keys() | stale.keys():
            if bounds.start <= definition < bounds.end:
                redefines = self.universe.resets.get(definition, ())
                steps.append(Step(definition, None, redefines=redefines, staled=stale.get(definition, 0)))
        steps.sort(key=lambda step: (step.index, step.event is not None))
        return steps

    def _step(self, event: Event) -> Step:
        step = Step(event.index, event)
        threads = self.threads(event.index)
        arriving = self.events.values.arriving(self.cfg.block_of(event.index)) if event.guard else ALL
        if event.guard and not subset(arriving, event.guard):  # else it repeats a branch: all who come satisfy it
            step.guarded = True
            step.inside = self.universe.restriction(threads, event.guard, ALL, self._accessors)
            others = negate(event.guard)
            around = arriving | others
            step.outside = self.universe.restriction(around, others, event.guard, self._accessors)
        elif not event.guard and self.cfg.instructions[event.index].guard:
            step.guarded = True
        step.members = self.universe.members(threads)
        step.alone = self._made_within(threads)
        step.beyond = self._made_beyond(threads)
        publishes = event.effect.sync is not None or event.flag is not None
        if publishes or any(fence.kind is FenceKind.THREAD for fence in event.effect.fences):
            step.cta = self.universe.helpers(threads, warp=False)
            step.warp = self.universe.helpers(threads, warp=True)
        return step

    def _made_within(self, threads: ThreadSet) -> int:
        """Accesses whose threads are all among `threads`."""
        if threads not in self._within:
            inside, outside = varying(threads), 0
            for mask, accessor in self._makers:
                outside |= 0 if subset(accessor, inside) else mask
            self._within[threads] = ~outside
        return self._within[threads]

    def _made_beyond(self, threads: ThreadSet) -> int:
        """Accesses of other warps than the one warp whose thread runs a step; 0 where several warps may."""
        if threads not in self._beyond:
            span = warp_range(threads)
            self._beyond[threads] = 0 if span is None or span[1] - span[0] != WARP else self._outside(*span)
        return self._beyond[threads]

    def _outside(self, first: int, last: int) -> int:
        found = 0
        for mask, accessor in self._makers:
            lo, hi = warp_range(accessor) or (0, self.events.values.builder.launch.threads or MOST_THREADS)
            found |= mask if lo < first or hi > last else 0
        return found

    def behind_fence(self, step: Step) -> bool:
        """Whether a relaxed arrive comes right behind a thread fence that makes a release of it."""
        found = self._released.get(step.index)
        if found is None:
            before = [s.event for s in self._neighbours(step) if s.index < step.index and s.event is not None]
            found = self._released[step.index] = bool(before) and releases(before[-1], step.event)
        return found

    def waits_at_once(self, step: Step) -> bool:
        """Whether the wait of a cluster arrive is the next event."""
        found = self._at_once.get(step.index)
        if found is None:
            after = [s.event for s in self._neighbours(step) if s.index > step.index and s.event is not None]
            sync = after[0].effect.sync if after else None
            found = self._at_once[step.index] = sync is not None and sync.kind is SyncKind.CLUSTER_WAIT
        return found

    def _neighbours(self, step: Step) -> list[Step]:
        return self.steps[self.cfg.block_of(step.index)]

    def hop(self, block: int) -> int:
        """The block where something happens next: empty blocks with one way out are passed over."""
        found = self._hops.get(block)
        if found is None:
            found, seen = block, {block}
            while not self.steps[found] and len(self.cfg.succs[found]) == 1:
                (following,) = self.cfg.succs[found]
                if following in seen:
                    break
                seen.add(following)
                found = following
            self._hops[block] = found
        return found

    def edge(self, block: int, successor: int) -> Restriction | None:
        """What taking a control-flow edge does to the facts."""
        key = (block, successor)
        if key not in self._edges:
            values = self.events.values
            learned = values.edge(block, successor)
            others = [other for other in self.cfg.succs[block] if other != successor]
            refused = values.edge(block, others[0]) if len(others) == 1 else ALL
            around = values.arriving(block) | learned
            self._edges[key] = self.universe.restriction(around, learned, refused, self._accessors)
        return self._edges[key]


def _fences(event: Event) -> bool:
    return any(fence.kind is FenceKind.ASYNC for fence in event.effect.fences)
