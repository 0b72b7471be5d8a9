"""PF121: an mbarrier used by a thread that nothing has told of its initialisation (proxy-semantics C.9).

The same flow: tracked are mbarrier.init instructions, no fence ends a fact, and a fact that a barrier has published
is exactly what a use by another thread needs. `fence.mbarrier_init` lets the init pass a relaxed cluster barrier.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.conditions import ThreadSet, subset
from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.context import Context
from ptxfence.analysis.effects import Access, Bytes, Fence, FenceKind, Mode, Order, Proxy, Role, Space, SyncKind
from ptxfence.analysis.events import Event, Touch, in_order
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.program import Program, Step
from ptxfence.analysis.region import Region
from ptxfence.analysis.report import Finding
from ptxfence.analysis.state import State
from ptxfence.analysis.transfer import Changes, Transfer
from ptxfence.analysis.universe import WARP, one_thread, warp_range
from ptxfence.analysis.witness import describe

_INIT = Access(0, Proxy.GENERIC, Mode.WRITE, Space.CTA, Bytes(8), Role.MBARRIER)
_USE = Access(0, Proxy.GENERIC, Mode.BOTH, Space.CTA, Bytes(8), Role.MBARRIER)
_USES = (
    SyncKind.MBARRIER_ARRIVE,
    SyncKind.MBARRIER_EXPECT_TX,
    SyncKind.MBARRIER_COMPLETE_TX,
    SyncKind.MBARRIER_WAIT,
    SyncKind.CP_ASYNC_ARRIVE,
    SyncKind.TCGEN05_COMMIT,
)


class _Publication(Transfer):
    clears = False

    def fence(self, index: int, fence: Fence, state: State) -> None:
        return

    def group(self, step: Step, event: Event, state: State) -> None:
        return

    def synchronise(self, step: Step, event: Event, state: State) -> bool:
        sync = event.effect.sync
        if sync is not None and sync.kind is SyncKind.MBARRIER_WAIT:
            return False  # a hand-off through an mbarrier presupposes what is to be shown
        changed = super().synchronise(step, event, state)
        if sync is not None and sync.kind is SyncKind.CLUSTER_WAIT:
            for i in step.members:
                state.pub[i] |= self.changes.announced
                state.peer[i] |= self.changes.announced
        return changed


def _announced(context: Context, inits: list[Touch]) -> int:
    """Inits between which and some relaxed arrival at the cluster barrier their own threads execute a fence: the
    waiters of every warp learn of them, whichever role they wait in."""
    arrivals = [
        e
        for e in in_order(context.events)
        if e.effect.sync is not None and e.effect.sync.kind is SyncKind.CLUSTER_ARRIVE
    ]
    fences = [e.index for e in in_order(context.events) if any(_announces(f) for f in e.effect.fences)]
    found = 0
    for bit, init in enumerate(inits):
        for fence in fences:
            if not _follows(context, init.index, fence, init.threads):
                continue
            if any(_follows(context, fence, arrival.index, init.threads) for arrival in arrivals):
                found |= 1 << bit
    return found


def _announces(fence: Fence) -> bool:
    return fence.kind is FenceKind.MBARRIER_INIT or (
        fence.kind is FenceKind.THREAD and fence.order is not Order.ACQUIRE
    )


def _follows(context: Context, first: int, second: int, threads: ThreadSet) -> bool:
    """Whether `threads` may come from one instruction to the other without another thread's help."""
    return subset(threads, context.flow.threads(second)) and context.witness.paths.reaches(first, second, leap=False)


def unpublished(context: Context) -> Iterator[Finding]:
    """PF121 findings of one kernel, one per init and kind of use."""
    inits, uses = _touches(context)
    if not inits or not uses:
        return
    pairs = [(i, u) for i in _flat(inits) for u in _flat(uses) if overlap(i.region, u.region) is not Overlap.NO]
    if all(_plainly_published(context, init, use) for init, use in pairs):
        return
    everything = [touch for touches in (*inits.values(), *uses.values()) for touch in touches]
    conflicts = Conflicts(
        context.events,
        [t for touches in inits.values() for t in touches],
        [t for touches in uses.values() for t in touches],
        lambda init, use: True,
    )
    replaced: dict[int, tuple[Touch, ...]] = {}
    for touch in everything:
        replaced[touch.index] = (*replaced.get(touch.index, ()), touch)
    program = Program(context.events, conflicts, replaced)
    flow = Flow(
        program,
        context.handoffs,
        context.tick,
        Changes(open=True, announced=_announced(context, conflicts.touches)),
        _Publication,
    )
    seen: set[int] = set()
    for block in sorted(flow.inputs):
        state = flow.inputs[block].copy()
        for step in flow.steps[block]:
            if step.event is not None and step.index in uses:
                for use in uses[step.index]:
                    yield from _judge(context, conflicts, use, step, state, seen)
            flow.apply(step, state)


def _flat(touches: dict[int, list[Touch]]) -> list[Touch]:
    return [touch for group in touches.values() for touch in group]


def _plainly_published(context: Context, init: Touch, use: Touch) -> bool:
    """Whether a barrier of the whole CTA (cluster) stands on every way to the use: no flow is needed to see it."""
    cfg = context.flow.cfg
    if cfg.loops_of.get(cfg.block_of(init.index)) or context.events.relaxed_cluster:
        return False
    if any(_precedes(cfg, init.index, b) and _precedes(cfg, b, use.index) for b in _common(context, use)):
        return True
    if use.region.peer:
        return False
    for barrier in context.events.barriers:
        if not _precedes(cfg, barrier, use.index):
            continue
        party = context.flow.threads(barrier)
        if _precedes(cfg, init.index, barrier) and subset(init.threads, party) and subset(use.threads, party):
            return True
        waiter = context.handoffs.waiters.get(barrier)
        releases = [release for group in waiter.groups for release in group] if waiter is not None else []
        if any(_precedes(cfg, init.index, release.index) for release in releases):
            return True
    return False


def _common(context: Context, use: Touch) -> list[int]:
    return context.events.common_barriers[use.region.peer]


def _precedes(cfg: Cfg, first: int, second: int) -> bool:
    """Whether the first of two instructions runs, in one pass, before the second on every way to it; an init under a
    condition counts where its block comes first."""
    a, b = cfg.block_of(first), cfg.block_of(second)
    if a == b:
        return first < second
    above = cfg.idom.get(a)
    return cfg.dominates(a, b) or (above is not None and cfg.dominates(above, b) and cfg.rank[a] < cfg.rank[b])


def _judge(
    context: Context, conflicts: Conflicts, use: Touch, step: Step, state: State, seen: set[int]
) -> Iterator[Finding]:
    operation = conflicts.operations[use.number]
    remote = use.region.peer
    published = state.peer[0] if remote else state.pub[0] | state.peer[0] | state.warp[0]
    for bit, init in conflicts.touches_of((operation.near | operation.far) & ~published & ~operation.unresolved):
        mine = context.flow.threads(init.index)
        if bit in seen or (_one_leader(mine, use.threads) and not remote):
            continue
        if not context.witness.paths.reaches(init.index, use.index):
            continue
        seen.add(bit)
        yield _finding(context, init, use, remote)


def _one_leader(init: ThreadSet, use: ThreadSet) -> bool:
    """Whether one thread does both. The lane that elect.sync picks and lane 0 of the same warp pass for one: compilers
    mix the two spellings (Triton initialises under elect.sync and arrives as thread 0)."""
    if init and init == use:
        return True  # an init by several threads at once would be another bug
    if not one_thread(init):
        return False
    if subset(use, init):
        return True
    span = warp_range(init)
    return one_thread(use) and span is not None and span == warp_range(use) and span[1] - span[0] == WARP


def _touches(context: Context) -> tuple[dict[int, list[Touch]], dict[int, list[Touch]]]:
    """mbarrier.init and every other use of an mbarrier, as touches numbered from zero."""
    inits: dict[int, list[Touch]] = {}
    uses: dict[int, list[Touch]] = {}
    number = 0
    for event in in_order(context.events):
        for kind, region in _objects(context, event):
            if not region.bounded:
                continue
            threads = context.flow.threads(event.index)
            target = inits if kind is SyncKind.MBARRIER_INIT else uses
            access = _INIT if kind is SyncKind.MBARRIER_INIT else _USE
            target.setdefault(event.index, []).append(Touch(number, event.index, access, region, threads))
            number += 1
    return inits, uses


def _objects(context: Context, event: Event) -> Iterator[tuple[SyncKind, Region]]:
    sync = event.effect.sync
    if sync is not None and event.barrier is not None and sync.kind in (SyncKind.MBARRIER_INIT, *_USES):
        yield sync.kind, event.barrier
    operands = {access.mbarrier for access in event.effect.accesses} - {None}
    for operand in operands:
        assert operand is not None
        yield SyncKind.MBARRIER_COMPLETE_TX, context.events.values.mbarrier_region(event.index, operand)


def _finding(context: Context, init: Touch, use: Touch, remote: bool) -> Finding:
    witness = context.witness
    need = (
        "fence.mbarrier_init.release.cluster by the initialising thread and a cluster barrier"
        if remote
        else "a barrier of the CTA"
    )
    who = "a peer CTA's" if remote else "another thread's"
    message = (
        f"line {witness.line(init.index)}: {witness.opcode(init.index)} initialises {describe(init.region)}; line "
        f"{witness.line(use.index)}: {witness.opcode(use.index)} is {who} use of it and nothing publishes the "
        f"initialisation; put {need} between them"
    )
    return context.likely("PF121", init, use, message)
