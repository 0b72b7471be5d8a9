"""The data flow over the events of one kernel: which accesses no fence has covered where.

The CFG carries facts about the executing thread's own accesses; synchronisation turns them into facts about other
threads', along the barrier itself or as a message from a release to the waits that may acquire it
(handoff.py). The lattice is state.py's, thread sets are universe.py's. Joins are unions of "not covered", so
over control-flow paths a cover must hold on all; at a synchronisation the facts of the participants are
intersected, because over happens-before paths one covered chain is enough. What releases know of is settled
beforehand (knowledge.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping

from ptxfence.analysis.handoff import Handoffs
from ptxfence.analysis.knowledge import Habits, Knowledge
from ptxfence.analysis.program import Program, Step
from ptxfence.analysis.state import State
from ptxfence.analysis.transfer import Changes, Hazard, Transfer
from ptxfence.analysis.updates import restrict

NO_CHANGES = Changes()


class Flow:
    """Runs to the fixpoint on construction. `tick` is called now and then and may raise to stop the work."""

    def __init__(
        self,
        program: Program,
        handoffs: Handoffs,
        tick: Callable[[], None] = lambda: None,
        changes: Changes = NO_CHANGES,
        kind: type[Transfer] = Transfer,
        knowledge: Mapping[int, int] | None = None,
    ) -> None:
        self.program = program
        self.events = program.events
        self.conflicts = program.conflicts
        self.handoffs = handoffs
        self.cfg = program.cfg
        self.threads = program.threads
        self.steps = program.steps
        self.tick = tick
        self.inputs: dict[int, State] = {}
        self.knowledge: Mapping[int, int] = knowledge if knowledge is not None else self._learned(kind)
        self.transfer = kind(program, handoffs, changes, self.knowledge)
        self._run()

    def _learned(self, kind: type[Transfer]) -> Mapping[int, int]:
        """What releases know of; nothing where that cannot clear a fact."""
        if not kind.clears:
            return {}
        return Knowledge(self.program, self.handoffs, Habits(kind.landing, kind.flags)).of_releases

    def trial(self, changes: Changes) -> Flow:
        """The same kernel with some fences changed."""
        return Flow(self.program, self.handoffs, self.tick, changes, type(self.transfer), self.knowledge)

    def _run(self) -> None:
        if not self.cfg.order:
            return
        rank = self.cfg.rank
        self.inputs[0] = State(self.program.universe.size, self.program.depth)
        queue = [(0, 0)]
        queued = {0}
        while queue:
            self.tick()
            _, block = heapq.heappop(queue)
            queued.discard(block)
            touched = self._flow_block(block)
            for other in touched:
                if other not in queued and other in self.inputs:
                    queued.add(other)
                    heapq.heappush(queue, (rank[other], other))

    def _flow_block(self, block: int) -> set[int]:
        state = self.inputs[block].copy()
        again: set[int] = set()
        for step in self.steps[block]:
            if self.transfer.apply(step, state, None):
                again.update(self.cfg.block_of(i) for i in self.handoffs.listeners.get(step.index, ()))
        changes = self.transfer.changes
        for successor in self.cfg.succs[block]:
            out = self._along(block, successor, state)
            if not (changes.moved or changes.open):  # those look at every block, also one without events
                successor = self.program.hop(successor)
            known = self.inputs.get(successor)
            if known is None:
                self.inputs[successor] = out.copy()
                again.add(successor)
            elif known.join(out):
                again.add(successor)
        return again

    def _along(self, block: int, successor: int, state: State) -> State:
        """The facts on an edge."""
        restriction = self.program.edge(block, successor)
        moved = [f for f, a, b in self.transfer.changes.moved if (a, b) == (block, successor)]
        if restriction is None and not moved:
            return state
        out = state.copy()
        if restriction is not None:
            restrict(out, restriction)
        for index in moved:
            for fence in self.events.at(index).effect.fences:
                self.transfer.fence(index, fence, out)
        return out

    def apply(self, step: Step, state: State) -> None:
        """What `step` does to `state`, in place."""
        self.transfer.apply(step, state, None)

    def hazards(self, report: Callable[[Hazard], None]) -> None:
        """Passes every hazard of the fixpoint to `report`, in program order."""
        for block in sorted(self.inputs):
            state = self.inputs[block].copy()
            for step in self.steps[block]:
                self.transfer.apply(step, state, report)
