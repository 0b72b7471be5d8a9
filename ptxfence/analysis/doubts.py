"""Synchronisation that may or may not pair: an mbarrier whose address, or a barrier whose number, is not known.

Such a pairing clears nothing and accuses nobody. Where it would bring an access that nobody has fenced to an operation,
with no fence on the way, the kernel is not proven either.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxfence.analysis.effects import Direction, FenceKind
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.paths import Paths


def doubtful(flow: Flow, paths: Paths) -> Iterator[int]:
    """Waits that may tell of an unfenced access on the way to an operation on its bytes."""
    open_ = {index: waiter.uncertain for index, waiter in flow.handoffs.waiters.items() if waiter.uncertain}
    if not open_:
        return
    fences = frozenset(
        event.index
        for event in flow.events.ordered
        for fence in event.effect.fences
        if fence.kind is FenceKind.ASYNC and fence.direction in (Direction.BOTH, Direction.RELEASE)
    )
    messages = flow.transfer.messages
    for wait, releases in sorted(open_.items()):
        bits = 0
        for release in releases:
            message = messages.get(release.index)
            bits |= message.own | message.pub | message.peer if message is not None else 0
        met = (o.touch.index for o in flow.conflicts.operations.values() if bits & (o.near | o.far))
        if any(paths.reaches(wait, index, fences) for index in met):
            yield wait
