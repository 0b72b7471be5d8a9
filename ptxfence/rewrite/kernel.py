"""One kernel as placement sees it: the flow with nothing assumed fenced, and the text positions of its points."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.effects import Order, SyncKind
from ptxfence.analysis.events import Event, Events
from ptxfence.analysis.findings import Findings
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.handoff import Handoffs
from ptxfence.analysis.program import Program, Step
from ptxfence.analysis.report import Finding
from ptxfence.analysis.state import State
from ptxfence.analysis.transfer import Changes, Hazard
from ptxfence.analysis.values import Values
from ptxfence.grammar import Function, Module, PtxFile
from ptxfence.rewrite.edits import insertion_after, insertion_point
from ptxfence.rewrite.roots import routine

RELAXABLE = (SyncKind.CLUSTER_ARRIVE, SyncKind.MBARRIER_ARRIVE)


@dataclass(frozen=True, slots=True)
class Spot:
    """The point before step `slot` of block `block`; behind the last step if there are only `slot` steps."""

    block: int
    slot: int


@dataclass(frozen=True, slots=True)
class Level:
    """Unfenced accesses at a spot, as bit masks.

    `near` are known to a thread of the CTA (`own`: made by the thread itself and unpublished), `far` to one of the
    peer CTA, `carried` are under way to a cluster barrier's wait, where no fence reaches them.
    """

    own: int
    near: int
    far: int
    carried: int


class Kernel:
    """Builds the analysis of `function` anew; nothing is shared with the report that asked for the patch.

    The flow is open: a reported access stays unfenced behind the operation. The analysis takes what it has
    reported as fenced from there on, so that one cause is one finding; a patch must cover the later operations too.
    """

    def __init__(self, file: PtxFile, module: Module, function: Function) -> None:
        self.file = file
        self.module = module
        self.function = function
        body = routine(module, function)
        self.cfg = Cfg(body)
        self.events = Events(module, body, self.cfg, Values(body, self.cfg, module))
        self.conflicts = Conflicts(self.events)
        self.flow = Flow(Program(self.events, self.conflicts), Handoffs(self.events), changes=Changes(open=True))
        self.levels: dict[Spot, Level] = {}
        for block in self.flow.inputs:
            self._read(block)

    def _read(self, block: int) -> None:
        state = self.flow.inputs[block].copy()
        self.levels[Spot(block, 0)] = _level(state)
        for number, step in enumerate(self.steps(block), 1):
            self.flow.transfer.apply(step, state, None)
            self.levels[Spot(block, number)] = _level(state)

    def steps(self, block: int) -> list[Step]:
        return self.flow.steps[block]

    def handed_over(self, wait: int) -> Iterator[tuple[Event, int]]:
        """Releases that wait `wait` may acquire, with the unfenced accesses (bits) that each brings."""
        waiter = self.flow.handoffs.waiters.get(wait)
        for release in (r for group in waiter.groups for r in group) if waiter else ():
            message = self.flow.transfer.messages.get(release.index)
            if message is not None:
                published = 0 if waiter is not None and release.index in waiter.near else message.pub
                yield release, message.own | published | message.peer

    @cached_property
    def findings(self) -> tuple[tuple[Hazard, Finding], ...]:
        """Every finding of the open flow with the hazard it comes from."""
        hazards: list[Hazard] = []
        self.flow.hazards(hazards.append)
        builder = Findings(self.file, self.flow)
        return tuple((hazard, finding) for hazard in hazards for finding in builder.of(hazard))

    # --- places in the text ----------------------------------------------------------------------

    @cached_property
    def _origins(self) -> tuple[list[int], list[tuple[Function, int]]]:
        found = sorted(
            (instruction.start, function, instruction.index)
            for function in self.module.functions
            if function.has_body
            for instruction in function.instructions
        )
        return [start for start, _, _ in found], [(function, index) for _, function, index in found]

    def origin(self, index: int) -> tuple[Function, int]:
        """The function of the text, and the position in it, that instruction `index` comes from (calls are inlined)."""
        if self.cfg.instructions is self.function.instructions:
            return self.function, index
        starts, places = self._origins
        return places[bisect_right(starts, self.cfg.instructions[index].start) - 1]

    def line_before(self, index: int) -> int | None:
        """Line before which a fence runs right before instruction `index`."""
        return insertion_point(self.file, *self.origin(index))

    def line_of(self, spot: Spot) -> int | None:
        """Line before which a fence runs at the spot, as late as the text allows; None if the text has no such line, or
        a thread fence before it has released what the arrive behind it hands over."""
        steps = self.steps(spot.block)
        if spot.slot < len(steps) and self._late(steps[spot.slot]):
            return None
        low, high = self._range(spot)
        for index in range(high, low - 1, -1):
            line = self.line_before(index)
            if line is not None:
                return line
        if spot.slot < len(self.steps(spot.block)) or low <= self.cfg.blocks[spot.block].start:
            return None
        return insertion_after(self.file, *self.origin(low - 1))

    def _late(self, step: Step) -> bool:
        sync = step.event.effect.sync if step.event is not None else None
        if sync is None or sync.kind not in RELAXABLE or sync.order is not Order.RELAXED:
            return False
        return self.flow.program.behind_fence(step)

    def _range(self, spot: Spot) -> tuple[int, int]:
        """Instructions before which the spot lies; empty (high < low) behind a block's last instruction."""
        bounds, steps = self.cfg.blocks[spot.block], self.steps(spot.block)
        low = steps[spot.slot - 1].index + 1 if spot.slot else bounds.start
        high = steps[spot.slot].index if spot.slot < len(steps) else bounds.end - 1
        return low, high

    def spots(self) -> Iterator[Spot]:
        """All spots that control flow reaches, in text order of blocks."""
        yield from self.levels

    def depth(self, spot: Spot) -> int:
        """Loops around the spot."""
        return len(self.cfg.loops_of.get(spot.block, ()))


def _level(state: State) -> Level:
    own = state.own[0] | state.warp[0]
    return Level(state.own[0], own | state.pub[0], state.peer[0], state.carry)
