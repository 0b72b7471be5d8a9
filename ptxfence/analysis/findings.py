"""From hazards to findings: rule, severity, confidence, cause, message and path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ptxfence.analysis.causes import explain
from ptxfence.analysis.conditions import subset
from ptxfence.analysis.diagnosis import Diagnosis, Sighting, rank
from ptxfence.analysis.effects import Completion, Mode, Role
from ptxfence.analysis.events import Touch
from ptxfence.analysis.extent import fixed, outside, surely, too_many
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.overwrite import Overwrites
from ptxfence.analysis.paths import Paths
from ptxfence.analysis.pinned import pinned
from ptxfence.analysis.region import Region
from ptxfence.analysis.report import Cause, Confidence, Finding, Severity
from ptxfence.analysis.rules import NAMES
from ptxfence.analysis.transfer import Hazard
from ptxfence.analysis.universe import WARP, issuing_warps, warp_range
from ptxfence.analysis.unordered import Unordered
from ptxfence.analysis.witness import Route, Witness, describe, verb
from ptxfence.grammar.module import PtxFile

OWN_FENCE = "fence.proxy.async.shared::cta;"
CLUSTER_FENCE = "fence.proxy.async.shared::cluster;"


@dataclass(frozen=True, slots=True)
class Pairing:
    """One access of one hazard with its verdict."""

    bit: int
    access: Touch
    operation: Touch
    rule: str
    severity: Severity
    cause: Cause
    sighting: Sighting | None
    ordered: bool = True
    renewal: Touch | None = None  # a store that may replace what the access wrote (overwrite.py)


class Findings:
    """Turns the hazards of one kernel into findings."""

    def __init__(self, file: PtxFile, flow: Flow) -> None:
        self.flow = flow
        self.conflicts = flow.conflicts
        self.paths = Paths(flow.cfg, flow.handoffs)
        self.diagnosis = Diagnosis(flow, self.paths)
        self.witness = Witness(file, flow, self.paths)
        self.overwrites = Overwrites(flow, self.paths)
        self.unordered = Unordered(flow, self.paths, self.diagnosis, self.overwrites)
        self.reasons: dict[str, int | None] = {}
        self._slots: set[int] = set()  # slot loads that have had their note

    def of(self, hazard: Hazard) -> Iterator[Finding]:
        """One finding per rule for this async operation."""
        operation = hazard.operation
        pairings: dict[str, list[Pairing]] = {}
        for bit, access in self.conflicts.touches_of(hazard.accesses):
            if bit & operation.unresolved:
                self._undecided(access, operation.touch)
                continue
            for rule in self._rules(access, operation.touch):
                pairing = self._pairing(rule, bit, access, operation.touch, hazard.accesses)
                if pairing is not None and hazard.alone & bit and self._races(access, operation.touch):
                    pairing = replace(pairing, ordered=False)
                if pairing is not None and self._news(pairing):
                    pairings.setdefault(pairing.rule, []).append(pairing)
        for bit, access in self.conflicts.touches_of(self._unordered(hazard)):
            pairing = self._unsynchronised(bit, access, operation.touch, bool(hazard.bare & bit))
            pairings.setdefault(pairing.rule, []).append(pairing)
        for bit, access in self.conflicts.touches_of(hazard.flying & ~hazard.accesses):
            if fixed(access.region) and surely(access.region, operation.touch.region):
                pairing = self._unsynchronised(bit, access, operation.touch, bare=False)
                pairings.setdefault(pairing.rule, []).append(pairing)
        if not pairings:
            for bit, access in self.conflicts.touches_of(self.unordered.of(hazard)):
                pairing = self._unsynchronised(bit, access, operation.touch, self.unordered.bare(bit, access))
                pairings.setdefault(pairing.rule, []).append(pairing)
        for rule in sorted(pairings):
            yield self._finding(pairings[rule])

    def _unordered(self, hazard: Hazard) -> int:
        """Accesses that reach the operation with no synchronisation for certain, whatever fence there was."""
        operation = hazard.operation
        found = 0
        for bit, access in self.conflicts.touches_of((hazard.unsynchronised | hazard.loose) & ~operation.unresolved):
            loose = hazard.loose & bit and not self.overwrites.retired(access, operation.touch)
            if loose or self._races(access, operation.touch):
                found |= bit
        return found

    def _news(self, pairing: Pairing) -> bool:
        """The note on the load of a tensor memory address comes once, at the first operation on the slot."""
        if pairing.severity is not Severity.NOTE:
            return True
        index = pairing.access.index
        fresh = index not in self._slots
        self._slots.add(index)
        return fresh

    def _undecided(self, access: Touch, operation: Touch) -> None:
        for touch in (access, operation):
            if not touch.region.bounded:
                index = touch.index
                place = self.witness.place(index)
                reason = f"line {place.line}: {place.text}: address not resolved"
                lost = self.flow.events.values.unresolved(index, touch.access)
                if lost is not None and lost[0] != index:
                    reason += f" (lost at line {self.witness.line(lost[0])}: {lost[1]})"
                self.reasons.setdefault(reason, index)

    def _pairing(self, rule: str, bit: int, access: Touch, operation: Touch, pending: int) -> Pairing | None:
        if self.overwrites.retired(access, operation):
            return None
        severity = self._severity(rule, bit, access, operation)
        if severity is Severity.NOTE:
            return Pairing(bit, access, operation, rule, severity, Cause.NO_FENCE, None)
        cause, sighting = self.diagnosis.cause(bit, access, operation)
        if cause is Cause.WRONG_SPACE:
            rule = "PF111"
            severity = self._severity(rule, bit, access, operation)
        renewal = self.overwrites.renewed(access, operation, pending) if rule == "PF101" else None
        severity = severity if renewal is None else Severity.WARNING
        return Pairing(bit, access, operation, rule, severity, cause, sighting, renewal=renewal)

    def _unsynchronised(self, bit: int, access: Touch, operation: Touch, bare: bool) -> Pairing:
        """`bare`: somebody who made the access has not fenced it, which is the more specific cause."""
        rule = self._rules(access, operation)[0]
        severity = self._severity(rule, bit, access, operation)
        cause, sighting = self.diagnosis.cause(bit, access, operation) if bare else (Cause.UNSYNCHRONISED, None)
        return Pairing(bit, access, operation, rule, severity, cause, sighting, ordered=False)

    def _races(self, access: Touch, operation: Touch) -> bool:
        """Whether threads that no synchronisation joined with the issuer made the access for certain."""
        issuers = self.flow.threads(operation.index)
        spans = issuing_warps(issuers)
        if spans is None or subset(access.threads, issuers):
            return False
        warps, others = spans
        theirs = warp_range(access.threads)
        if theirs is not None and warps[0] <= theirs[0] and theirs[1] <= warps[1]:
            return False
        if self.overwrites.retired(access, operation):
            return False
        parts = outside(access.region, warps, others)
        if any(overlap(region, operation.region) is not Overlap.NO for region in parts):
            return True
        return too_many(access.region, WARP, operation.region)

    def _rules(self, access: Touch, operation: Touch) -> tuple[str, ...]:
        """Rules that the pair breaks; an atomic that returns what it read breaks two under an async write."""
        if access.access.completion in (Completion.CP_ASYNC, Completion.MBARRIER):
            return ("PF104",)
        if not access.access.mode & Mode.WRITE:
            return ("PF103",)
        if not operation.access.mode & Mode.WRITE:
            return ("PF101",)
        returns = access.access.mode & Mode.READ and access.access.value is not None
        return ("PF102", "PF103") if returns else ("PF102",)

    def _severity(self, rule: str, bit: int, access: Touch, operation: Touch) -> Severity:
        if rule == "PF104":
            return Severity.WARNING if bit & self.conflicts.via_mbarrier else Severity.ERROR
        if rule == "PF102":
            certain = surely(access.region, operation.region)
            return Severity.ERROR if certain else Severity.WARNING
        if rule == "PF103":
            if self._slot_load(access, operation):
                return Severity.NOTE
            value = access.access.value
            return Severity.WARNING if pinned(self.flow.cfg, access.index, value, operation.index) else Severity.ERROR
        return Severity.ERROR

    def _slot_load(self, access: Touch, operation: Touch) -> bool:
        """The load of the address that tcgen05.alloc wrote, with a CTA or cluster barrier before the operation."""
        slots = [t for t in self.flow.events.touches if t.access.role is Role.TMEM_SLOT]
        if not any(_same_place(slot.region, access.region) for slot in slots):
            return False
        return not self.paths.reaches(access.index, operation.index, self.flow.events.barriers)

    def _finding(self, pairings: list[Pairing]) -> Finding:
        worst = max(p.severity for p in pairings)
        lead = min(pairings, key=lambda p: (-p.severity, rank(p.cause), p.access.index))
        others = list({p.access.index: p for p in pairings if p.access.index != lead.access.index}.values())
        route = self.witness.route(lead.access, lead.operation)
        anchor, fence = self._remedy(lead, route)
        return Finding(
            rule=lead.rule,
            name=NAMES[lead.rule],
            severity=worst,
            confidence=self._confidence(lead),
            kernel=self.flow.events.function.name,
            cause=lead.cause,
            message=self._message(lead, route, len(others), anchor, fence),
            first=self.witness.place(lead.access.index, lead.access.region),
            second=self.witness.place(lead.operation.index, lead.operation.region),
            path=self.witness.steps(lead.access, lead.operation, route),
            others=tuple(self.witness.place(p.access.index, p.access.region) for p in others),
            anchor=anchor,
            fence=fence,
        )

    def _confidence(self, pairing: Pairing) -> Confidence:
        if pairing.renewal is not None:
            return Confidence.POSSIBLE
        how = self.conflicts.how(pairing.access, pairing.operation)
        if how is Overlap.CERTAIN and pairing.access.region.exact and pairing.operation.region.exact:
            return Confidence.CERTAIN
        bounded = pairing.access.region.bounded and pairing.operation.region.bounded
        return Confidence.LIKELY if bounded else Confidence.POSSIBLE

    def _remedy(self, pairing: Pairing, route: Route) -> tuple[int | None, str | None]:
        if not pairing.ordered:
            return None, None
        far = pairing.operation.access.multicast or pairing.operation.access.both_ctas or pairing.access.region.peer
        fence = CLUSTER_FENCE if far else OWN_FENCE
        if pairing.bit & self.conflicts.via_mbarrier or pairing.access.access.completion is Completion.MBARRIER:
            return pairing.operation.index, fence
        landed = pairing.access.access.completion is Completion.SYNC
        for event, _ in route.events:
            if event.effect.group is not None:
                landed = True
            elif landed and event.effect.sync is not None:
                return event.index, fence
        return pairing.operation.index, fence

    def _message(self, lead: Pairing, route: Route, more: int, anchor: int | None, fence: str | None) -> str:
        witness = self.witness
        first, second = lead.access, lead.operation
        count = f" (and {more} more like it)" if more else ""
        parts = [
            f"line {witness.line(first.index)}: {witness.opcode(first.index)} {verb(first)} {describe(first.region)}"
            f"{count} through the generic proxy; line {witness.line(second.index)}: {witness.opcode(second.index)} "
            f"{verb(second)} {describe(second.region)} through the async proxy",
            self._between(route, lead.cause),
            explain(witness, lead.cause, lead.sighting),
        ]
        if not lead.ordered and lead.cause is not Cause.UNSYNCHRONISED:
            parts.append("nothing orders other threads' accesses before it either: a fence needs a barrier behind it")
        if lead.renewal is not None:
            place = self.witness.place(lead.renewal.index)
            parts.append(
                f"another role waits, writes these bytes with a fence (line {place.line}) and hands them over on the "
                "way: a matter of phases, which are not followed"
            )
        if anchor is not None and fence is not None:
            parts.append(f"insert `{fence}` before line {witness.line(anchor)}")
        return "; ".join(parts)

    def _between(self, route: Route, cause: Cause) -> str:
        named = (f"{self.witness.opcode(e.index)} (line {self.witness.line(e.index)})" for e in route.syncs)
        syncs = list(dict.fromkeys(named))
        if not syncs:
            return "no synchronisation stands between, one thread does both"
        shown = ", ".join(syncs[:3]) + (", ..." if len(syncs) > 3 else "")
        return f"on the way {shown}" if cause is Cause.UNSYNCHRONISED else f"ordered by {shown}"


def _same_place(slot: Region, region: Region) -> bool:
    return (slot.base, slot.lo, slot.hi) == (region.base, region.lo, region.hi)
