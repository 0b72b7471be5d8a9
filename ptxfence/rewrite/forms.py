"""The proxy fences that a patch may use, and what one execution costs.

Cycles: measured on an H200 with nothing outstanding, one warp (fence, then `bar.sync`, against `bar.sync` alone);
to all of them comes the time that pending accesses need to drain, which is what the fence is for. Only the order
matters to the choice of a form; ptxas 12.9 to 13.5 emits the same instructions on sm_90 to sm_120.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptxfence.analysis.effects import Direction, FenceKind, Space
from ptxfence.analysis.isa import lookup


@dataclass(frozen=True, slots=True)
class Form:
    """One spelling of the generic-async proxy fence; `covers` comes from the instruction table."""

    opcode: str
    cycles: int

    @property
    def covers(self) -> frozenset[Space]:
        """State spaces whose accesses it orders."""
        return next(f.covers for f in lookup(self.opcode).fences if f.kind is FenceKind.ASYNC)

    @property
    def statement(self) -> str:
        """As a line of PTX."""
        return f"{self.opcode};"


OWN = Form("fence.proxy.async.shared::cta", 30)
GLOBAL = Form("fence.proxy.async.global", 30)
CLUSTER = Form("fence.proxy.async.shared::cluster", 290)
EVERYTHING = Form("fence.proxy.async", 290)
FORMS = (OWN, GLOBAL, CLUSTER, EVERYTHING)


def cycles_of(opcode: str) -> int:
    """The cost of a fence found in a text.

    A release half costs what the two-way form of its space does; the acquire and `::read` halves emit an empty
    instruction that waits for loads.
    """
    fence = next((f for f in lookup(opcode).fences if f.kind is FenceKind.ASYNC), None)
    if fence is None or fence.direction in (Direction.ACQUIRE, Direction.RELEASE_READS):
        return 0
    exact = next((form for form in FORMS if form.opcode == opcode), None)
    if exact is not None:
        return exact.cycles
    return min((form.cycles for form in FORMS if form.covers >= fence.covers), default=EVERYTHING.cycles)
