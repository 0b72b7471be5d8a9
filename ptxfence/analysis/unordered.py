"""Pairs that nothing orders: a plain race beside the proxy rule (contract 2, cause `unsynchronised`).

The flow knows of every access that reaches an operation through some synchronisation. What it has not heard of may
come later, or never meet it. Only pairs that cannot be ordered either way are accused (no control flow and no hand-off
leads from the operation to the access, and no wait for its completion does), and pairs handed over by an arrival that
is relaxed. Kernels with a barrier that is not resolved accuse nobody here.
"""

from __future__ import annotations

from functools import cached_property

from ptxfence.analysis.conditions import disjoint, subset
from ptxfence.analysis.diagnosis import Diagnosis
from ptxfence.analysis.effects import Direction, FenceKind, SyncKind
from ptxfence.analysis.events import Event, Touch
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.overwrite import Overwrites
from ptxfence.analysis.paths import Paths
from ptxfence.analysis.transfer import Hazard
from ptxfence.analysis.universe import one_thread, uniform_part, varying


class Unordered:
    """Answers for one kernel."""

    def __init__(self, flow: Flow, paths: Paths, diagnosis: Diagnosis, overwrites: Overwrites) -> None:
        self.flow = flow
        self.paths = paths
        self.diagnosis = diagnosis
        self.overwrites = overwrites

    def of(self, hazard: Hazard) -> int:
        """Accesses (bits) that race with the operation for certain."""
        if not hazard.unheard or self.flow.handoffs.murky:
            return 0
        operation = hazard.operation
        found = 0
        for bit, access in self.flow.conflicts.touches_of(hazard.unheard & ~operation.unresolved):
            certain = bit & operation.certain and self._races(access, operation.touch)
            if certain or self._relaxed(access, operation.touch):
                found |= bit
        return found

    def _relaxed(self, access: Touch, operation: Touch) -> bool:
        """Whether what hands the access over is an arrival that orders nothing: relaxed, with no fence before it."""
        paths, handoffs = self.paths, self.flow.handoffs
        for release in handoffs.relaxed:
            if not paths.reaches(access.index, release.index, self._fences, leap=False):
                continue
            waits = handoffs.listeners.get(release.index, (release.index,))  # of a cluster barrier: behind it
            if any(paths.reaches(wait, operation.index) for wait in waits):
                return True
        return False

    @cached_property
    def _fences(self) -> frozenset[int]:
        steps = (step for steps in self.flow.steps.values() for step in steps if step.event is not None)
        return frozenset(
            step.index
            for step in steps
            if step.event is not None and any(f.kind is FenceKind.THREAD for f in step.event.effect.fences)
        )

    @cached_property
    def _waits(self) -> list[Event]:
        return [
            step.event
            for steps in self.flow.steps.values()
            for step in steps
            if step.event is not None
            and step.event.effect.sync is not None
            and step.event.effect.sync.kind is SyncKind.MBARRIER_WAIT
        ]

    def _races(self, access: Touch, operation: Touch) -> bool:
        crosses = access.region.peer or operation.access.multicast or operation.access.both_ctas
        if not crosses and disjoint(uniform_part(access.threads), uniform_part(operation.threads)):
            return False  # arms of one condition of the whole CTA
        apart = disjoint(varying(access.threads), varying(operation.threads))
        if not crosses and not apart and not one_thread(operation.threads):
            return False
        if not crosses and not apart and self.paths.reaches(access.index, operation.index):
            return False
        if self.paths.reaches(operation.index, access.index) or self._completes_before(operation, access):
            return False
        return not self.overwrites.retired(access, operation)

    def _completes_before(self, operation: Touch, access: Touch) -> bool:
        """Whether some wait for the end of the operation leads to the access."""
        operand = operation.access.mbarrier
        if operand is None:
            return False
        barrier = self.flow.events.values.mbarrier_region(operation.index, operand)
        waits = (w for w in self._waits if w.barrier is not None and overlap(w.barrier, barrier) is not Overlap.NO)
        return any(self.paths.reaches(wait.index, access.index) for wait in waits)

    def bare(self, bit: int, access: Touch) -> bool:
        """Whether no fence by everybody who made the access follows it."""
        for seen in self.diagnosis.sightings:
            good = seen.fence.kind is FenceKind.ASYNC and seen.fence.direction in (Direction.BOTH, Direction.RELEASE)
            if good and seen.own & bit and subset(access.threads, varying(self.flow.threads(seen.event.index))):
                return False
        return True
