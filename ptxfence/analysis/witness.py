"""The path that a finding shows, in words a kernel author checks against the text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from ptxfence.analysis.effects import Completion, FenceKind, GroupKind, Mode, SyncKind
from ptxfence.analysis.events import Event, Touch
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.inline import Routine
from ptxfence.analysis.paths import Paths, Segment
from ptxfence.analysis.region import Base, BaseKind, Region
from ptxfence.analysis.report import Place, Step
from ptxfence.grammar.module import PtxFile

SHOWN = 14
TEXT = 100

_SYNC_WORDS = {
    SyncKind.BAR: "CTA barrier: the threads that take part are ordered, the proxies are not",
    SyncKind.BAR_ARRIVE: "arrives on a named barrier",
    SyncKind.WARP: "warp barrier: orders the lanes, not the proxies",
    SyncKind.CLUSTER_ARRIVE: "arrives at the cluster barrier",
    SyncKind.CLUSTER_WAIT: "waits at the cluster barrier",
    SyncKind.MBARRIER_ARRIVE: "arrives on the mbarrier: hands over",
    SyncKind.MBARRIER_WAIT: "waits on the mbarrier",
    SyncKind.CP_ASYNC_ARRIVE: "arrives on the mbarrier when the thread's cp.async have landed",
    SyncKind.TCGEN05_COMMIT: "commits to the mbarrier",
}


@dataclass(frozen=True, slots=True)
class Route:
    """A witness: the events on a path from the first access to the operation."""

    segments: tuple[Segment, ...]
    events: tuple[tuple[Event, bool], ...]  # the event and whether a hand-off leads to it

    @property
    def syncs(self) -> list[Event]:
        return [e for e, _ in self.events if e.effect.sync is not None]


class Witness:
    """Builds routes and places for one kernel."""

    def __init__(self, file: PtxFile, flow: Flow, paths: Paths) -> None:
        self.file = file
        self.flow = flow
        self.paths = paths
        self.function = flow.events.function
        self._events: dict[int, Event] = {}
        covering: list[int] = []
        for step in (s for steps in flow.steps.values() for s in steps):
            if step.event is None:
                continue
            self._events[step.index] = step.event
            fences = step.event.effect.fences
            if fences and not step.guarded and any(f.kind is FenceKind.ASYNC and f.covers for f in fences):
                covering.append(step.index)
        self._order = sorted(self._events)
        self._covering = frozenset(covering)

    def route(self, access: Touch, operation: Touch) -> Route:
        """A path on which no fence helps, if the text has one; else the shortest."""
        found = self.paths.find(access.index, operation.index, self._covering)
        if found is None:
            found = self.paths.find(access.index, operation.index) or ()
        events: list[tuple[Event, bool]] = []
        for segment in found:
            first = bisect_left(self._order, segment.first)
            last = bisect_right(self._order, segment.last)
            for position, index in enumerate(self._order[first:last]):
                event = self._events[index]
                if index not in (access.index, operation.index) and _shown(event):
                    events.append((event, segment.handoff and position == 0))
        return Route(found, tuple(events))

    def steps(self, access: Touch, operation: Touch, route: Route) -> tuple[Step, ...]:
        """The route as text, first and second access included."""
        steps = [self._end(access)]
        seen: set[int] = set()
        for event, handoff in route.events:
            if event.index in seen:
                continue
            seen.add(event.index)
            words = self._words(event)
            steps.append(Step(self.line(event.index), f"another thread: {words}" if handoff else words))
        if len(steps) > SHOWN:
            steps = steps[: SHOWN // 2] + steps[-SHOWN // 2 :]
        return (*steps, self._end(operation))

    def _end(self, touch: Touch) -> Step:
        what = f"{verb(touch)} {describe(touch.region)} ({touch.access.proxy.value} proxy)"
        return Step(self.line(touch.index), what)

    def _words(self, event: Event) -> str:
        sync, group = event.effect.sync, event.effect.group
        if sync is not None:
            return f"{self.opcode(event.index)}: {_SYNC_WORDS.get(sync.kind, sync.kind.value)}"
        if group is not None:
            return f"{self.opcode(event.index)}: waits until the copied bytes have landed (no proxy fence)"
        return f"{self.opcode(event.index)}: does not cover this access"

    def line(self, index: int) -> int:
        return self.file.position(self.function.instructions[index].start)[0]

    def opcode(self, index: int) -> str:
        return self.function.instructions[index].opcode

    def place(self, index: int, region: Region | None = None) -> Place:
        """Where an instruction stands, in PTX and in its source language."""
        return place(self.file, self.function, index, region)


def place(file: PtxFile, function: Routine, index: int, region: Region | None = None) -> Place:
    """Where an instruction of `function` stands."""
    instruction = function.instructions[index]
    line, column = file.position(instruction.start)
    text = " ".join(file.text[instruction.start : instruction.end].split())
    if len(text) > TEXT:
        text = text[: TEXT - 3] + "..."
    source = function.source_at(index)
    return Place(index, line, column, text, source, "" if region is None else describe(region))


def _shown(event: Event) -> bool:
    if event.effect.sync is not None:
        return event.effect.sync.kind in _SYNC_WORDS
    group = event.effect.group
    if group is not None:
        return group.kind is not GroupKind.COMMIT and group.completion is Completion.CP_ASYNC
    return any(f.kind in (FenceKind.ASYNC, FenceKind.THREAD, FenceKind.ALIAS) for f in event.effect.fences)


def verb(touch: Touch) -> str:
    mode = touch.access.mode
    if mode == Mode.BOTH:
        return "updates"
    return "writes" if mode & Mode.WRITE else "reads"


def describe(region: Region) -> str:
    """`global_smem[0..16384)`; `?` for what is not known."""
    name = "shared memory" if region.base is None else _name(region.base)
    if region.lo is None and region.hi is None:
        return name if region.base is None else f"{name}[?]"
    lo = "?" if region.lo is None else region.lo
    hi = "?" if region.hi is None else region.hi
    return f"{name}[{lo}..{hi})"


def _name(base: Base) -> str:
    return base.name if base.kind is BaseKind.SYMBOL else f"*{base.name}"
