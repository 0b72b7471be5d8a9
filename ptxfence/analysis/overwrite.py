"""Last writers: an access whose bytes a completed bulk load has replaced since cannot meet a later reader.

The access and the load were judged where the load was issued (write after write, write after read). A reader
that has waited for the load sees the load's bytes, whatever older generic writes of the place still lack a fence.
"""

from __future__ import annotations

from ptxfence.analysis.effects import Completion, Mode, SyncKind
from ptxfence.analysis.events import Touch
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.paths import Paths
from ptxfence.analysis.region import Region
from ptxfence.analysis.regions import Overlap, overlap

ASSUMPTION = "tensor boxes end before the next base"


class Overwrites:
    """Answers for one kernel; `assumptions` collects what the answers rest on."""

    def __init__(self, flow: Flow, paths: Paths) -> None:
        self.flow = flow
        self.paths = paths
        self.assumptions: dict[str, None] = {}
        self._loads = [
            t
            for t in flow.events.touches
            if t.is_async and t.access.mode & Mode.WRITE and t.access.completion is Completion.MBARRIER
        ]
        self._waits = [
            step.event
            for steps in flow.steps.values()
            for step in steps
            if step.event is not None
            and step.event.effect.sync is not None
            and step.event.effect.sync.kind is SyncKind.MBARRIER_WAIT
        ]
        self._cache: dict[tuple[int, int], bool] = {}

    def retired(self, access: Touch, operation: Touch) -> bool:
        """Whether every path from the access to the (reading) operation waits for a load that replaces its bytes."""
        if operation.access.mode & Mode.WRITE or not self._loads:
            return False
        key = (access.number, operation.number)
        if key not in self._cache:
            self._cache[key] = self._retired(access, operation)
        return self._cache[key]

    def _retired(self, access: Touch, operation: Touch) -> bool:
        loads = [t for t in self._loads if t.region.holds(operation.region)]
        if not loads:
            return False
        fixed = all(not _moves(t.region) for t in (*loads, operation))
        if not fixed and self._same_loop(access, operation):
            return False
        barriers = [self._barrier(t) for t in loads]
        waits = {
            w.index
            for w in self._waits
            if w.barrier is not None and any(overlap(w.barrier, b) is not Overlap.NO for b in barriers)
        }
        if not waits or self.paths.reaches(access.index, operation.index, frozenset(waits)):
            return False
        if any(t.region.bounded_by for t in loads):
            self.assumptions.setdefault(ASSUMPTION)
        return True

    def _barrier(self, load: Touch) -> Region:
        assert load.access.mbarrier is not None
        return self.flow.events.values.mbarrier_region(load.index, load.access.mbarrier)

    def _same_loop(self, access: Touch, operation: Touch) -> bool:
        """Whether the innermost loop of the operation also runs the access (a pipelined in-place update)."""
        cfg = self.flow.cfg
        inner = cfg.loops_of.get(cfg.block_of(operation.index), ())
        return bool(inner) and cfg.block_of(access.index) in cfg.loops[inner[-1]].blocks


def _moves(region: Region) -> bool:
    """Whether the place changes from one execution to the next."""
    return region.step != 0 or any(term.lo != term.hi for term in region.terms or ())
