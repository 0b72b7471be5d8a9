"""PF120: asynchronous operations still in flight when their bytes are used again.

The same flow with the roles swapped: tracked are async operations, from their issue on; what ends a fact is the wait
for the operation (the issuer's wait_group, a wait on the mbarrier that tells the end), then handed on by
synchronisation like a fence. Only operations and reuses at fixed places count: which instance of a ring slot is in
flight is a question of phases that this flow leaves alone (rings.py: bulk stores).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from ptxfence.analysis.conditions import ThreadSet, disjoint, subset
from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.context import Context
from ptxfence.analysis.effects import (
    Access,
    Completion,
    Fence,
    GroupKind,
    Role,
    SyncKind,
)
from ptxfence.analysis.events import SHARED, Event, Events, Touch, in_order
from ptxfence.analysis.flights import GROUPS, by_others, clash, fixed, least, one_issuer, provable
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.handoff import Handoffs
from ptxfence.analysis.overlaps import Overlap, apart, overlap
from ptxfence.analysis.program import Program, Step
from ptxfence.analysis.region import Region
from ptxfence.analysis.report import Confidence, Finding, Severity
from ptxfence.analysis.rings import never_waited, overtaken
from ptxfence.analysis.rules import NAMES
from ptxfence.analysis.state import State
from ptxfence.analysis.transfer import Changes, Hazard, Transfer
from ptxfence.analysis.universe import uniform_part
from ptxfence.analysis.updates import commit, landed, make
from ptxfence.analysis.witness import describe, verb

SETTLED = (*GROUPS, Completion.MBARRIER, Completion.TCGEN05)

_WAITS = {
    Completion.BULK_GROUP: "cp.async.bulk.wait_group (`.read` will do) by the thread that issued it",
    Completion.WGMMA: "wgmma.wait_group",
    Completion.MBARRIER: "a wait on its mbarrier",
    Completion.TCGEN05: "tcgen05.commit and a wait on its mbarrier",
}


class _Ends(Transfer):
    """Facts end with the completion of the operation instead of with a fence."""

    landing = False

    def __init__(self, program: Program, handoffs: Handoffs, changes: Changes, given: Mapping[int, int]) -> None:
        super().__init__(program, handoffs, changes, given)
        self._of: dict[Completion, int] = {}
        for number, touch in enumerate(self.conflicts.touches):
            how = touch.access.completion
            self._of[how] = self._of.get(how, 0) | 1 << number
        self._ended: dict[int, int] = {}
        self._ours: dict[int, int] = {}
        self._solo = 0  # operations that one thread of the CTA issues
        self._shared = 0  # bulk operations of several threads: whose wait ends whose is not followed
        for number, touch in enumerate(self.conflicts.touches):
            bulk = touch.access.completion is Completion.BULK_GROUP
            if one_issuer(touch):
                self._solo |= 1 << number
            elif bulk:
                self._shared |= 1 << number

    def access(self, step: Step, access: Access, bits: int, state: State) -> bool:
        if access.completion in GROUPS:
            state.groups[0] |= bits
        make(state, bits, step.members)
        return False

    def fence(self, index: int, fence: Fence, state: State) -> None:
        return

    def group(self, step: Step, event: Event, state: State) -> None:
        group = event.effect.group
        assert group is not None
        mine = self._of.get(group.completion, 0)
        others = [bits & ~mine for bits in state.groups]
        state.groups[:] = [bits & mine for bits in state.groups]
        if group.kind is GroupKind.COMMIT:
            commit(state)
        else:
            ended = landed(state, event)
            self._end(ended & (self._solo & step.alone | self._shared), state)
            state.own[:] = [known & ~ended for known in state.own]  # of its own; others wait for theirs
            state.local &= ~ended
        state.groups[:] = [a | b for a, b in zip(state.groups, others, strict=True)]

    def _publish_cta(self, step: Step, state: State) -> None:
        """Where all who issued an operation take part, it is in flight behind the barrier if it is for one of them."""
        flying = state.own[0]
        for bits in state.groups:
            flying |= bits
        super()._publish_cta(step, state)
        renewed = step.alone & self._grouped
        state.pub[:] = [known & ~renewed | flying & renewed for known in state.pub]

    @cached_property
    def _grouped(self) -> int:
        return self._of.get(Completion.BULK_GROUP, 0) | self._of.get(Completion.WGMMA, 0)

    def synchronise(self, step: Step, event: Event, state: State) -> bool:
        sync = event.effect.sync
        if sync is None or sync.kind is not SyncKind.MBARRIER_WAIT:
            return super().synchronise(step, event, state)
        facts = (state.own, state.warp, state.pub, state.peer)
        before = [known[:] for known in facts]
        changed = super().synchronise(step, event, state)
        mine = self._followed(event)
        for known, earlier in zip(facts, before, strict=True):
            known[:] = [a & ~mine | b & mine for a, b in zip(known, earlier, strict=True)]
        self._end(self._told(event), state)
        return changed

    def _followed(self, wait: Event) -> int:
        """Operations of the role that waits, followed in its own order: what others know of them is older."""
        if wait.index not in self._ours:
            numbered = enumerate(self.conflicts.touches)
            found = (1 << n for n, touch in numbered if self.program.cfg.leads(touch.index, wait.index))
            self._ours[wait.index] = sum(found)
        return self._ours[wait.index]

    def _told(self, wait: Event) -> int:
        """Operations whose end this wait on an mbarrier may tell."""
        if wait.index not in self._ended:
            found = 0
            for number, touch in enumerate(self.conflicts.touches):
                told = _tells(self.program.events, self.handoffs, wait, touch)
                found |= 1 << number if told else 0
            self._ended[wait.index] = found
        return self._ended[wait.index]

    def _end(self, bits: int, state: State) -> None:
        for facts in (state.own, state.warp, state.pub, state.peer):
            facts[:] = [known & ~bits for known in facts]
        state.local &= ~bits


class _Telling:
    """Waits on an mbarrier that may tell the end of an operation, looked for once each."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[int, list[Event]] = {}
        self._groups: dict[tuple[Completion, ThreadSet], frozenset[int]] = {}

    def groups(self, flying: Touch) -> frozenset[int]:
        """Waits for all groups by the threads that issued the operation."""
        key = (flying.access.completion, flying.threads)
        if key not in self._groups:
            self._groups[key] = _group_waits(self._context, flying)
        return self._groups[key]

    def of(self, flying: Touch) -> list[Event]:
        events, handoffs = self._context.events, self._context.handoffs
        if flying.number not in self._known:
            self._known[flying.number] = [e for e in in_order(events) if _tells(events, handoffs, e, flying)]
        return self._known[flying.number]


def unobserved(context: Context) -> Iterator[Finding]:
    """PF120 findings of one kernel."""
    events = context.events
    moving = [t for t in events.touches if t.is_async and t.region.space in SHARED and t.access.completion in SETTLED]
    tracked = [known for t in moving if fixed(known := least(t))]
    telling = _Telling(context)
    barriers = context.conflicts.barrier_regions
    reuses = [
        t
        for t in events.touches
        if t.region.space in SHARED and fixed(t) and t.access.role is not Role.TMEM_SLOT
        if not any(barrier.holds(t.region) for barrier in barriers)
    ]
    for flying, reuse, slots in overtaken(context):
        yield _finding(context, [flying], reuse, f" {slots} rounds of the loop later")
    for flying, reuse in never_waited(context, moving):
        yield _finding(context, [flying], reuse, "", Confidence.LIKELY)
    yield from _unshared(context, telling, tracked, reuses)
    yield from _unwaited(context, telling, tracked, reuses)
    by_region: dict[Region, list[Touch]] = {}
    for touch in reuses:
        by_region.setdefault(touch.region, []).append(touch)
    near = _Near(by_region)
    tracked = [t for t in tracked if _may_fly(context, telling, t, near)]
    if not tracked or not reuses:
        return
    conflicts = Conflicts(events, tracked, reuses, clash)
    if not conflicts.touches:
        return
    program = Program(events, conflicts, settles=_waits)
    flow = Flow(program, context.handoffs, context.tick, kind=_Ends)
    hazards: list[Hazard] = []
    flow.hazards(hazards.append)
    for hazard in hazards:
        reuse = hazard.operation.touch
        pending = (touch for _, touch in conflicts.touches_of(hazard.accesses) if touch.index != reuse.index)
        proven = (t for t in pending if provable(t.region, reuse.region))
        flying = [t for t in proven if _untold(context, telling, t, reuse)]
        if flying:
            yield _finding(context, flying, reuse)


def _unshared(
    context: Context, telling: _Telling, tracked: list[Touch], reuses: list[Touch]
) -> Iterator[Finding]:
    """Reuses by threads to whom nothing hands on that the issuers have waited."""
    kinds: dict[_Kind, list[Touch]] = {}
    for flying in tracked:
        kinds.setdefault(_kind(flying), []).append(flying)
    paths, syncs = context.witness.paths, context.events.joins
    waits: dict[_Kind, list[tuple[Touch, frozenset[int]]]] = {}
    met: dict[_Kind, list[_Kind]] = {}
    for reuse in reuses:
        kind = _kind(reuse)
        if kind not in met:
            met[kind] = [k for k, (t, *_) in kinds.items() if clash(t.access, reuse.access) and by_others(t, reuse)]
        for other in met[kind]:
            if other not in waits:
                waits[other] = _first_waits(context, telling, kinds[other])
            guilty = next((t for t, w in waits[other] if paths.any_reaches(w, reuse.index, syncs)), None)
            if guilty is not None:
                yield _finding(context, [guilty], reuse)
                break


_Kind = tuple[Region, Access, ThreadSet]


def _kind(touch: Touch) -> _Kind:
    """What is alike in copies of one instruction, as unrolling leaves them."""
    return touch.region, touch.access, touch.threads


def _unwaited(context: Context, telling: _Telling, tracked: list[Touch], reuses: list[Touch]) -> Iterator[Finding]:
    """Bulk loads for which no thread waits, in one role, and reuses of their bytes in another: no way leads from one to
    the other, so nothing says which comes first."""
    if context.handoffs.murky:
        return
    for flying in (t for t in tracked if t.access.completion is Completion.MBARRIER):
        others = (r for r in reuses if clash(flying.access, r.access) and _concurrent(context, flying, r))
        reuse = next((r for r in others if provable(flying.region, r.region)), None)
        if reuse is not None and not telling.of(flying):
            yield _finding(context, [flying], reuse)


def _concurrent(context: Context, flying: Touch, reuse: Touch) -> bool:
    """Whether threads of two roles, both in every CTA that runs one of them, do the two and nothing orders them."""
    comes = context.witness.paths.comes
    if comes(flying.index, reuse.index) or comes(reuse.index, flying.index):
        return False
    return not disjoint(uniform_part(flying.threads), uniform_part(reuse.threads))


class _Near:
    """Provable reuses that clash with an operation, looked for once for operations that are alike."""

    def __init__(self, reuses: Mapping[Region, list[Touch]]) -> None:
        self._reuses = reuses
        self._found: dict[tuple[Region, Access], list[Touch]] = {}

    def of(self, flying: Touch) -> list[Touch]:
        key = (flying.region, flying.access)
        if key not in self._found:
            mine = flying.region
            near = (touches for r, touches in self._reuses.items() if not apart(mine, r) and provable(mine, r))
            self._found[key] = [r for touches in near for r in touches if clash(flying.access, r.access)]
        return self._found[key]


def _may_fly(context: Context, telling: _Telling, flying: Touch, near: _Near) -> bool:
    """Whether the flow has to decide: some way leads from the operation to a provable reuse without a plain wait."""
    comes = context.witness.paths.comes
    meets = [r for r in near.of(flying) if r.index != flying.index and comes(flying.index, r.index)]
    if not meets:
        return False
    if flying.access.completion not in GROUPS:
        waits = telling.of(flying)
        return not all(_told_between(context, waits, flying, reuse) for reuse in meets)
    waits = telling.groups(flying)
    return any(_exposed(context, flying, reuse, waits) for reuse in meets)


def _exposed(context: Context, flying: Touch, reuse: Touch, waits: frozenset[int]) -> bool:
    """Whether a way to the reuse has no wait, or, for other threads than the issuers, no barrier behind it."""
    paths = context.witness.paths
    if paths.reaches(flying.index, reuse.index, waits):
        return True
    if flying.access.completion is Completion.BULK_GROUP and subset(reuse.threads, flying.threads):
        return False
    return paths.any_reaches(waits, reuse.index, context.events.barriers)


def _group_waits(context: Context, flying: Touch) -> frozenset[int]:
    """Waits for all groups by the threads that issued the operation."""
    return frozenset(
        event.index
        for event in in_order(context.events)
        if (group := event.effect.group) is not None
        and group.completion is flying.access.completion
        and (group.kind is GroupKind.WAIT_ALL or (group.kind is GroupKind.WAIT and event.pending == 0))
        and subset(flying.threads, context.flow.threads(event.index))
    )


def _first_waits(
    context: Context, telling: _Telling, copies: list[Touch]
) -> list[tuple[Touch, frozenset[int]]]:
    """Of each of some like operations the waits that its issuer comes to next: a later one tells of later operations.
    None for bulk loads that other threads wait for as well."""
    grouped = copies[0].access.completion in GROUPS
    common = _group_waits(context, copies[0]) if grouped else frozenset[int]()
    found: list[tuple[Touch, frozenset[int]]] = []
    for flying in copies:
        waits = common
        if not grouped:
            events = telling.of(flying)
            alone = all(subset(context.flow.threads(wait.index), flying.threads) for wait in events)
            waits = frozenset(wait.index for wait in events) if alone else common
        found.append((flying, context.witness.paths.first_of(flying.index, waits)))
    return found


def _tells(events: Events, handoffs: Handoffs, wait: Event, flying: Touch) -> bool:
    sync, operand = wait.effect.sync, flying.access.mbarrier
    if sync is None or sync.kind is not SyncKind.MBARRIER_WAIT or wait.barrier is None:
        return False
    if flying.access.completion is Completion.MBARRIER and operand is not None:
        barrier = events.values.mbarrier_region(flying.index, operand)
        return overlap(barrier, wait.barrier) is not Overlap.NO
    waiter = handoffs.waiters.get(wait.index)
    return waiter is not None and waiter.commits


def _untold(context: Context, telling: _Telling, flying: Touch, reuse: Touch) -> bool:
    return flying.access.completion in GROUPS or not _told_between(context, telling.of(flying), flying, reuse)


def _told_between(context: Context, waits: list[Event], flying: Touch, reuse: Touch) -> bool:
    """Whether some path waits on an mbarrier for the end of the operation. Conditions of phases and trip counts often
    make the paths without such a wait impossible, so one wait is enough to stay silent."""
    paths, both = context.witness.paths, (flying.index, reuse.index)
    elsewhere = not paths.reaches(flying.index, reuse.index, leap=False)  # another thread's work: its own wait tells it
    again = () if _at_times(context, flying) else (flying.index,)
    return any(
        (elsewhere or paths.reaches(flying.index, wait.index, both)) and paths.reaches(wait.index, reuse.index, again)
        for wait in waits
    )


def _at_times(context: Context, flying: Touch) -> bool:
    """Whether the operation's own guard changes from iteration to iteration, as that of a last load does."""
    values = context.events.values
    instruction = context.events.cfg.instructions[flying.index]
    if instruction.guard is None:
        return False
    return bool(values.guards.defs(values.builder.register(instruction.guard, flying.index)))


def _finding(
    context: Context, pending: list[Touch], reuse: Touch, when: str = "", confidence: Confidence = Confidence.CERTAIN
) -> Finding:
    witness = context.witness
    flying, *rest = pending
    first, second = flying.region, reuse.region
    how = flying.access.completion
    others = f" (and {len(rest)} more like it)" if rest else ""
    message = (
        f"line {witness.line(flying.index)}: {witness.opcode(flying.index)} {verb(flying)} {describe(first)}{others} "
        f"and may still be in flight when line {witness.line(reuse.index)}: {witness.opcode(reuse.index)} "
        f"{verb(reuse)} {describe(second)}{when}; between them must stand {_WAITS[how]}, handed on by a barrier where "
        "another thread goes on"
    )
    route = witness.route(flying, reuse)
    return Finding(
        rule="PF120",
        name=NAMES["PF120"],
        severity=Severity.ERROR,
        confidence=confidence if first.exact and second.exact else Confidence.LIKELY,
        kernel=context.events.function.name,
        cause=None,
        message=message,
        first=witness.place(flying.index, first),
        second=witness.place(reuse.index, second),
        path=witness.steps(flying, reuse, route),
        others=tuple(witness.place(touch.index, touch.region) for touch in rest),
    )


def _waits(event: Event) -> bool:
    group = event.effect.group
    return group is not None and group.kind is not GroupKind.COMMIT
