"""PF201 to PF204: notes on fences that a proven kernel could do without, or with less."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxfence.analysis.effects import SyncKind
from ptxfence.analysis.events import Event
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.redundancy import MOST_FENCES, Redundancy, Use, reaching
from ptxfence.analysis.report import Confidence, Finding, Severity
from ptxfence.analysis.rules import NAMES
from ptxfence.analysis.transfer import Hazard
from ptxfence.analysis.witness import Witness


def advise(flow: Flow, witness: Witness, hazards: Iterable[Hazard]) -> Iterator[Finding]:
    """Notes for one proven kernel, in text order. `hazards` are all that the flow has found, tolerated ones."""
    redundancy = Redundancy(flow, reaching(hazards))
    if len(redundancy.fences) > MOST_FENCES:
        return
    for use in reversed(list(redundancy.remarkable())):
        for rule, message in _rules(use, flow, witness):
            yield Finding(
                rule=rule,
                name=NAMES[rule],
                severity=Severity.OFF if rule == "PF204" else Severity.NOTE,
                confidence=Confidence.CERTAIN,
                kernel=flow.events.function.name,
                cause=None,
                message=message,
                first=witness.place(use.event.index),
                second=None,
            )


def _rules(use: Use, flow: Flow, witness: Witness) -> Iterator[tuple[str, str]]:
    what = f"line {witness.line(use.event.index)}: {witness.opcode(use.event.index)}"
    if use.redundant:
        why = "no access that reaches it needs it: the kernel stays proven without it"
        if _after_init(use.event, flow):
            why = "conventional after mbarrier.init, which goes through the generic proxy on both sides; not needed"
        yield "PF201", f"{what}: {why}"
        return
    if use.over_wide:
        yield "PF202", f"{what}: everything it orders lies in this CTA's shared memory; `.shared::cta` covers it"
    if use.hoistable:
        yield "PF203", f"{what}: runs in every iteration although what needs it is done before the loop"
    if use.issuer_side:
        yield "PF204", f"{what}: covers on the issuer's side only, behind the synchronisation"


def _after_init(event: Event, flow: Flow) -> bool:
    block = flow.events.by_block[flow.cfg.block_of(event.index)]
    earlier = [e for e in block if e.index < event.index]
    last = earlier[-1].effect.sync if earlier else None
    return last is not None and last.kind is SyncKind.MBARRIER_INIT
