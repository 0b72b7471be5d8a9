"""Last writers: an access whose bytes something else has replaced since cannot meet a later reader.

A completed bulk load: the access and the load were judged where the load was issued (write after write, write after
read). A reader that has waited for the load sees the load's bytes, whatever older generic writes still lack a fence.

Another role's stores, fenced and handed over: a role that has waited for the reader writes scratch data into its tile,
and the tile's own writer fills it again for the next round. That the writer comes last follows from the phases of
their barriers and from trip counts, which are not followed here; so this is a doubt about a hazard, not a proof.
"""

from __future__ import annotations

from ptxfence.analysis.conditions import disjoint
from ptxfence.analysis.effects import Completion, Mode, SyncKind
from ptxfence.analysis.events import Event, Touch
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.paths import Paths
from ptxfence.analysis.region import Region

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
        self._renewed: dict[tuple[int, int, int], Touch | None] = {}

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

    def renewed(self, access: Touch, operation: Touch, pending: int) -> Touch | None:
        """A store of another role that may have replaced the written bytes, fenced, before the operation reads them.

        `pending` are the accesses (bits) that reach the operation unfenced. Required: all ways to the access wait for
        the end of the operation, and all ways from it to the operation wait for the other store.
        """
        key = (access.number, operation.number, pending)
        if key not in self._renewed:
            self._renewed[key] = self._renewing(access, operation, pending)
        return self._renewed[key]

    def _renewing(self, access: Touch, operation: Touch, pending: int) -> Touch | None:
        conflicts = self.flow.conflicts
        masks = conflicts.operations[operation.number]
        fenced = masks.near & masks.writes & ~pending
        for _, store in conflicts.touches_of(fenced):
            apart = disjoint(store.threads, access.threads)
            if apart and store.region.holds(operation.region) and self._handed(store, access, operation):
                return store if self._follows(access, operation) else None
        return None

    def _handed(self, store: Touch, access: Touch, operation: Touch) -> bool:
        """Whether all ways from the access to the operation pass a wait for something that follows the store."""
        told = frozenset(
            wait
            for wait, waiter in self.flow.handoffs.waiters.items()
            for group in waiter.groups
            if any(self.paths.reaches(store.index, release.index, leap=False) for release in group)
        )
        return not self.paths.reaches(access.index, operation.index, told)

    def _follows(self, access: Touch, operation: Touch) -> bool:
        """Whether every thread waits for the end of the operation before it makes the access."""
        cfg = self.flow.cfg
        block = cfg.block_of(access.index)
        for wait in self._waits:
            at = cfg.block_of(wait.index)
            first = wait.index < access.index if at == block else cfg.dominates(at, block)
            if first and self._ended_by(wait, operation):
                return True
        return False

    def _ended_by(self, wait: Event, operation: Touch) -> bool:
        """Whether the wait is for a commit of the thread that issues the operation, later than the operation."""
        waiter = self.flow.handoffs.waiters.get(wait.index)
        releases = [r for group in waiter.groups for r in group] if waiter is not None else []
        commits = (r for r in releases if r.effect.sync and r.effect.sync.kind is SyncKind.TCGEN05_COMMIT)
        return any(self.paths.reaches(operation.index, commit.index, leap=False) for commit in commits)

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
