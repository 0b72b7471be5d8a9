"""What every rule of one kernel may look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.events import Events
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.handoff import Handoffs
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
