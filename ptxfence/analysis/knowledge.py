"""What each release knows of: the accesses that its thread has made or received on every path to it.

A must-analysis of its own, in front of the flow, because fences do not bear on it: so the flow runs once, and trials
with other fences need not ask again. Roles that learn from each other must not vouch for each other: the first round
takes releases to know what their own threads did, each further one uses what the round before has shown, which is the
least fixpoint from below.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ptxfence.analysis.effects import Completion, GroupKind, Order, SyncKind
from ptxfence.analysis.events import Event, FlagUse
from ptxfence.analysis.handoff import Handoffs, Waiter
from ptxfence.analysis.program import Program

MAX_ROUNDS = 16  # a chain of more roles than that is taken to have learned less

_SENDS = (
    SyncKind.BAR,
    SyncKind.BAR_ARRIVE,
    SyncKind.MBARRIER_ARRIVE,
    SyncKind.CP_ASYNC_ARRIVE,
    SyncKind.TCGEN05_COMMIT,
)
_RECEIVES = (SyncKind.BAR, SyncKind.MBARRIER_WAIT)
_NEVER_RELAXED = (SyncKind.BAR,)


@dataclass(frozen=True, slots=True)
class _Act:
    """What one event does to knowledge. `copies` are cp.async bits that an mbarrier would tell of; `group` commits
    cp.async groups or waits for them, `waits` down to so many."""

    index: int
    gains: int
    copies: int
    group: GroupKind | None
    waits: int
    sends: bool
    flying: bool
    leaves: int | None
    waiter: Waiter | None
    guarded: bool


@dataclass(frozen=True, slots=True)
class Habits:
    """What of a kind of flow bears on knowledge: whether copies are known only once they have landed, and whether
    flags in global memory carry facts."""

    landing: bool = True
    flags: bool = False


class Knowledge:
    """Rounds over one program; `of_releases` is the answer."""

    def __init__(self, program: Program, handoffs: Handoffs, habits: Habits) -> None:
        self._program = program
        self._handoffs = handoffs
        self._habits = habits
        self._cfg = program.cfg
        self.of_releases: dict[int, int] = {}
        if not handoffs.waiters:
            return
        self._acts = {block: self._of_block(block) for block in self._cfg.order}
        self._copying = any(act.copies for acts in self._acts.values() for act in acts)
        for _ in range(MAX_ROUNDS):
            found = self._round(self.of_releases)
            if found == self.of_releases:
                break
            self.of_releases = found

    def _of_block(self, block: int) -> list[_Act]:
        acts: list[_Act] = []
        for step in self._program.steps[block]:
            if step.event is not None and (act := self._act(step.event, step.guarded)) is not None:
                acts.append(act)
        return acts

    def _act(self, event: Event, guarded: bool) -> _Act | None:
        gains = copies = 0
        leaves: int | None = None
        for touch in self._program.touches(event):
            bits = self._program.conflicts.mask(touch)
            how = touch.access.completion if self._habits.landing else None
            if how is Completion.CP_ASYNC:
                copies |= bits
            elif how is Completion.MBARRIER and bits:
                leaves = bits
            else:
                gains |= bits
        sync, group = event.effect.sync, event.effect.group
        grouped = self._habits.landing and group is not None and group.completion is Completion.CP_ASYNC
        kind = sync.kind if sync is not None else None
        orders = sync is not None and (kind in _NEVER_RELAXED or sync.order is not Order.RELAXED)
        sends = orders and kind in _SENDS
        receives = orders and kind in _RECEIVES
        if self._habits.flags and event.flag is not None:
            orders_flag = {access.order for access in event.effect.accesses} & {Order.RELEASE, Order.ACQ_REL, Order.SC}
            sends = sends or (event.flags in (FlagUse.RELEASE, FlagUse.BOTH) and bool(orders_flag))
            leaves = 0 if event.flags in (FlagUse.RELEASE, FlagUse.BOTH) and not orders_flag else leaves
            receives = receives or event.flags in (FlagUse.ACQUIRE, FlagUse.BOTH)
        waiter = self._handoffs.waiters.get(event.index) if receives else None
        if not (gains or copies or grouped or sends or waiter or leaves is not None):
            return None
        return _Act(
            event.index,
            gains,
            copies,
            group.kind if group is not None and grouped else None,
            0 if group is not None and group.kind is GroupKind.WAIT_ALL else (event.pending or 0) + 1,
            sends,
            kind is SyncKind.CP_ASYNC_ARRIVE,
            leaves,
            waiter,
            guarded,
        )

    def _round(self, given: Mapping[int, int]) -> dict[int, int]:
        """One forward pass to its fixpoint; what the releases know at its end."""
        depth = self._program.depth if self._copying else 0
        entry: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, (0,) * depth)}
        found: dict[int, int] = {}
        received = {a.index: _received(a.waiter, given) for acts in self._acts.values() for a in acts if a.waiter}
        changed = bool(self._cfg.order)
        while changed:
            changed = False
            for block in self._cfg.order:
                if block not in entry:
                    continue
                known, groups = self._through(self._acts[block], *entry[block], received, found)
                for successor in self._cfg.succs[block]:
                    old, kept = entry.get(successor), self._along(block, successor, groups)
                    new = (known, kept) if old is None else (known & old[0], _joined(kept, old[1]))
                    if new != old:
                        entry[successor] = new
                        changed = True
        return found

    def _along(self, block: int, successor: int, groups: tuple[int, ...]) -> tuple[int, ...]:
        """Copies in flight on an edge: those that the threads which take it cannot have made are not theirs."""
        restriction = self._program.edge(block, successor) if groups else None
        if restriction is None or not restriction.own_drop:
            return groups
        return tuple(bits & ~restriction.own_drop for bits in groups)

    @staticmethod
    def _through(
        acts: list[_Act], known: int, groups: tuple[int, ...], received: Mapping[int, int], found: dict[int, int]
    ) -> tuple[int, tuple[int, ...]]:
        """What is known, and the copies in flight, after a block; releases leave what they know in `found`."""
        for act in acts:
            here = known | act.gains
            moved = groups
            if groups and (act.copies or act.group is not None):
                moved, landed = _moved(act, groups)
                here |= landed
            if act.leaves is not None:
                found[act.index] = found.get(act.index, -1) & act.leaves
            if act.sends:
                flying = _union(moved) << 1 if act.flying else 0
                found[act.index] = found.get(act.index, -1) & (here | flying)
            if act.waiter is not None:
                here |= received[act.index]
            if act.guarded:
                groups = _joined(groups, moved)
            else:
                known, groups = here, moved
        return known, groups


def _received(waiter: Waiter, given: Mapping[int, int]) -> int:
    """What a wait learns: of each role all that every release of it knows that may be the one."""
    total = 0
    for group in () if waiter.alone else waiter.groups:
        known = -1
        for release in group:
            known &= given.get(release.index, -1)
        total |= known if known != -1 else 0
    return total


def _moved(act: _Act, groups: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Copies in flight after an event, and those that it knows to have landed."""
    first = (groups[0] | act.copies, *groups[1:])
    if act.group is None:
        return first, 0
    if act.group is GroupKind.COMMIT:
        return (0, *first[:-2], first[-1] | first[-2]), 0
    waits = min(act.waits, len(first))
    return (*first[:waits], *(0 for _ in first[waits:])), _union(first[waits:])


def _joined(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return a if a == b else tuple(x | y for x, y in zip(a, b, strict=True))


def _union(parts: tuple[int, ...]) -> int:
    total = 0
    for bits in parts:
        total |= bits
    return total
