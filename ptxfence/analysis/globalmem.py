"""PF112: global memory written through the generic proxy, then read by a bulk operation of the same kernel.

The same flow over global touches, with fences that cover global memory. Pointers come from the host, so only the
same pointer is proof, the same parameter or symbol is suspicion, and anything else is silent.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxfence.analysis.causes import explain
from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.context import Context
from ptxfence.analysis.diagnosis import Diagnosis
from ptxfence.analysis.effects import Access, Direction, Fence, FenceKind, Mode, Proxy, Role, Space
from ptxfence.analysis.events import Touch
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.overlaps import Overlap
from ptxfence.analysis.program import Program
from ptxfence.analysis.report import Cause, Confidence, Finding, Severity
from ptxfence.analysis.rules import NAMES
from ptxfence.analysis.state import State
from ptxfence.analysis.transfer import Hazard, Transfer
from ptxfence.analysis.witness import describe

FENCE = "fence.proxy.async.global;"


class _GlobalFences(Transfer):
    flags = True

    def fence(self, index: int, fence: Fence, state: State) -> None:
        if fence.kind is not FenceKind.ASYNC or Space.GLOBAL not in fence.covers:
            return
        if fence.direction in (Direction.BOTH, Direction.RELEASE):
            for facts in (state.own, state.warp, state.pub, state.peer):
                facts[:] = [0] * len(facts)


def unfenced(context: Context) -> Iterator[Finding]:
    """PF112 findings of one kernel."""
    touches = [t for t in context.events.touches if t.region.space is Space.GLOBAL and t.region.base is not None]
    writes = [t for t in touches if t.access.proxy is Proxy.GENERIC and t.access.role is Role.DATA]
    writes = [t for t in writes if t.access.mode & Mode.WRITE]
    reads = [t for t in touches if t.is_async and t.access.mode & Mode.READ]
    reads = [t for t in reads if any(t.region.base == w.region.base for w in writes)]
    if not writes or not reads:
        return
    conflicts = Conflicts(context.events, writes, reads, _clash)
    flow = Flow(Program(context.events, conflicts), context.handoffs, context.tick, kind=_GlobalFences)
    hazards: list[Hazard] = []
    flow.hazards(hazards.append)
    diagnosis = Diagnosis(flow, context.witness.paths) if hazards else None
    for hazard in hazards:
        assert diagnosis is not None
        found = [
            (bit, touch)
            for bit, touch in conflicts.touches_of(hazard.accesses)
            if touch.region.base == hazard.operation.touch.region.base
        ]
        if found:
            bit, touch = found[0]
            cause, sighting = diagnosis.cause(bit, touch, hazard.operation.touch, Space.GLOBAL)
            says = explain(context.witness, cause, sighting)
            yield _finding(context, conflicts, touch, hazard.operation.touch, cause, says, len(found) - 1)


def _clash(write: Access, read: Access) -> bool:
    return True


def _finding(
    context: Context, conflicts: Conflicts, write: Touch, read: Touch, cause: Cause, says: str, more: int
) -> Finding:
    witness = context.witness
    certain = conflicts.how(write, read) is Overlap.CERTAIN or _same_place(write, read)
    route = witness.route(write, read)
    anchor = next((event.index for event, _ in route.events if event.effect.sync is not None), read.index)
    others = f" (and {more} more like it)" if more else ""
    syncs = ", ".join(f"{witness.opcode(e.index)} (line {witness.line(e.index)})" for e in route.syncs[:3])
    message = (
        f"line {witness.line(write.index)}: {witness.opcode(write.index)} writes {describe(write.region)}{others} in "
        f"global memory through the generic proxy; line {witness.line(read.index)}: {witness.opcode(read.index)} reads "
        f"{describe(read.region)} through the async proxy; {_between(syncs)}; {says}; "
        f"insert `{FENCE}` before line {witness.line(anchor)}"
    )
    return Finding(
        rule="PF112",
        name=NAMES["PF112"],
        severity=Severity.ERROR if certain else Severity.WARNING,
        confidence=Confidence.LIKELY if certain else Confidence.POSSIBLE,
        kernel=context.events.function.name,
        cause=cause,
        message=message,
        first=witness.place(write.index, write.region),
        second=witness.place(read.index, read.region),
        path=witness.steps(write, read, route),
        anchor=anchor,
        fence=FENCE,
    )


def _between(syncs: str) -> str:
    return f"ordered by {syncs}" if syncs else "no synchronisation stands between, one thread does both"


def _same_place(write: Touch, read: Touch) -> bool:
    """Whether both count from one pointer, with the same terms outside the thread index."""
    a, b = write.region, read.region
    if a.base != b.base or a.terms is None or b.terms is None:
        return False
    uniform = {(t.variable, t.scale) for t in a.terms if not t.varies}
    return uniform == {(t.variable, t.scale) for t in b.terms if not t.varies}
