"""PF110: a tensor map modified in the kernel, then used by a tensor operation without release and acquire.

The same flow, run twice over the writes of the map and the operations that use it: in one run facts end with the
release half by the modifying threads, in the other with the acquire half on the using side (proxy-semantics C.10).
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxfence.analysis.conditions import subset
from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.context import Context
from ptxfence.analysis.effects import Access, Bytes, Direction, Fence, FenceKind, Mode, Proxy, Role, Space
from ptxfence.analysis.events import Event, Events, Touch, in_order
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.program import Program
from ptxfence.analysis.region import Region
from ptxfence.analysis.report import Finding
from ptxfence.analysis.state import State
from ptxfence.analysis.transfer import Hazard, Transfer
from ptxfence.analysis.witness import describe

MAP_BYTES = 128


class _Half(Transfer):
    half = Direction.RELEASE

    def fence(self, index: int, fence: Fence, state: State) -> None:
        if fence.kind is FenceKind.TENSORMAP and fence.direction is self.half:
            keep = self._elsewhere(index, fence)
            for facts in (state.own, state.warp, state.pub, state.peer):
                facts[:] = [bits & keep for bits in facts]

    def _elsewhere(self, index: int, fence: Fence) -> int:
        """Writes of other maps than the one that the fence names."""
        named = _named(self.program.events, index, fence)
        if named is None:
            return 0
        numbered = enumerate(self.conflicts.touches)
        return sum(1 << n for n, touch in numbered if overlap(touch.region, named) is Overlap.NO)


class _Released(_Half):
    half = Direction.RELEASE


class _Acquired(_Half):
    half = Direction.ACQUIRE


def unfenced(context: Context) -> Iterator[Finding]:
    """PF110 findings of one kernel, one per operation."""
    maps = [t for t in context.events.touches if t.access.role is Role.TENSOR_MAP and t.region.base is not None]
    writes = [t for t in maps if t.access.proxy is Proxy.GENERIC and t.access.mode & Mode.WRITE]
    uses = [t for t in maps if t.access.proxy is Proxy.TENSORMAP]
    uses = [t for t in uses if any(t.region.base == w.region.base for w in writes)]
    if not writes or not uses:
        return
    if all(_plainly_fenced(context, write, use) for write in writes for use in uses):
        return
    conflicts = Conflicts(context.events, writes, uses, lambda write, use: True)
    program = Program(context.events, conflicts, settles=_tensormap_fence)
    seen: set[int] = set()
    for kind in (_Released, _Acquired):
        hazards: list[Hazard] = []
        Flow(program, context.handoffs, context.tick, kind=kind).hazards(hazards.append)
        for hazard in hazards:
            use = hazard.operation.touch
            reaching = (touch for _, touch in conflicts.touches_of(hazard.accesses))
            write = next((touch for touch in reaching if touch.region.base == use.region.base), None)
            if write is not None and use.index not in seen and not _on_some_path(context, write, use, kind.half):
                seen.add(use.index)
                yield _finding(context, write, use, kind.half)


def _on_some_path(context: Context, write: Touch, use: Touch, half: Direction) -> bool:
    """Whether some path has the half. Kernels acquire under a flag that says whether the map has changed; that the
    other paths cannot follow a modification is beyond this analysis."""
    paths, ends = context.witness.paths, (write.index, use.index)
    return any(
        paths.reaches(write.index, event.index, ends) and paths.reaches(event.index, use.index, ends[:1])
        for event, fence in _halves(context, half)
        if _speaks_of(context, event, fence, use)
    )


def _plainly_fenced(context: Context, write: Touch, use: Touch) -> bool:
    """Whether every way from the write to the use passes both halves, run by all who wrote: no flow is needed."""
    if write.region.base != use.region.base:
        return True
    threads, paths = context.flow.threads, context.witness.paths
    halves: dict[Direction, frozenset[int]] = {}
    for half in (Direction.RELEASE, Direction.ACQUIRE):
        halves[half] = frozenset(
            event.index
            for event, fence in _halves(context, half)
            if _speaks_of(context, event, fence, use)
            if half is Direction.ACQUIRE or subset(write.threads, threads(event.index))
        )
    if write.index in halves[Direction.RELEASE]:
        del halves[Direction.RELEASE]  # tensormap.cp_fenceproxy releases what it writes
    return not any(paths.reaches(write.index, use.index, stops) for stops in halves.values())


def _halves(context: Context, half: Direction) -> Iterator[tuple[Event, Fence]]:
    for event in in_order(context.events):
        for fence in event.effect.fences:
            if fence.kind is FenceKind.TENSORMAP and fence.direction is half:
                yield event, fence


def _speaks_of(context: Context, event: Event, fence: Fence, use: Touch) -> bool:
    """Whether the fence is for every map, or may be for the one that is used."""
    named = _named(context.events, event.index, fence)
    return named is None or overlap(named, use.region) is not Overlap.NO


def _named(events: Events, index: int, fence: Fence) -> Region | None:
    """The bytes of the map that an acquire names; None for a release, which speaks of all."""
    if fence.address is None:
        return None
    access = Access(fence.address, Proxy.TENSORMAP, Mode.READ, Space.ANY, Bytes(MAP_BYTES), Role.TENSOR_MAP)
    return events.values.region(index, access)


def _tensormap_fence(event: Event) -> bool:
    return any(fence.kind is FenceKind.TENSORMAP for fence in event.effect.fences)


def _finding(context: Context, write: Touch, use: Touch, half: Direction) -> Finding:
    witness = context.witness
    missing = (
        "no fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy) follows the modification"
        if half is Direction.RELEASE
        else "no fence.proxy.tensormap::generic.acquire on the map precedes the use"
    )
    message = (
        f"line {witness.line(write.index)}: {witness.opcode(write.index)} modifies the tensor map at "
        f"{describe(write.region)}; line {witness.line(use.index)}: {witness.opcode(use.index)} uses it through the "
        f"tensormap proxy; {missing}"
    )
    return context.likely("PF110", write, use, message)
