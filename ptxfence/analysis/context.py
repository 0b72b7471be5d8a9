"""What every rule of one kernel may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.events import Events, Touch
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.handoff import Handoffs
from ptxfence.analysis.report import Confidence, Finding, Severity
from ptxfence.analysis.rules import NAMES
from ptxfence.analysis.witness import Witness
from ptxfence.grammar.module import PtxFile


@dataclass(frozen=True, slots=True)
class Context:
    """One kernel after its flow has run. `tick` may raise when time is up."""

    file: PtxFile
    events: Events
    conflicts: Conflicts
    handoffs: Handoffs
    flow: Flow
    witness: Witness
    tick: Callable[[], None]

    def likely(self, rule: str, first: Touch, second: Touch, message: str) -> Finding:
        """An error of `rule` about two accesses, its path without the second."""
        route = self.witness.route(first, second)
        return Finding(
            rule=rule,
            name=NAMES[rule],
            severity=Severity.ERROR,
            confidence=Confidence.LIKELY,
            kernel=self.events.function.name,
            cause=None,
            message=message,
            first=self.witness.place(first.index, first.region),
            second=self.witness.place(second.index, second.region),
            path=self.witness.steps(first, second, route)[:-1],
        )
