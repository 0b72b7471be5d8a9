"""Changes of a state in place that need no more than the state."""

from __future__ import annotations

from ptxfence.analysis.effects import GroupKind
from ptxfence.analysis.events import Event
from ptxfence.analysis.state import State
from ptxfence.analysis.universe import Restriction


def commit(state: State) -> None:
    """Everything issued and not yet committed becomes the newest group."""
    top = len(state.groups) - 1
    state.groups[top] |= state.groups[top - 1]
    state.groups[1:top] = state.groups[0 : top - 1]
    state.groups[0] = 0


def landed(state: State, wait: Event) -> int:
    """What a wait knows to have ended; no longer in flight after it."""
    assert wait.effect.group is not None
    first = 0 if wait.effect.group.kind is GroupKind.WAIT_ALL else (wait.pending or 0) + 1
    found = 0
    for k in range(min(first, len(state.groups)), len(state.groups)):
        found |= state.groups[k]
        state.groups[k] = 0
    return found


def make(state: State, bits: int, members: tuple[int, ...]) -> None:
    """The executing thread makes accesses `bits`, which are new, unpublished and not fenced."""
    if not bits:
        return
    for i in members:
        state.own[i] |= bits
    state.local |= bits
    state.unjoined |= bits
    state.others |= bits
    state.made |= bits
    state.stale &= ~bits
    state.absorbed &= ~bits


def restrict(state: State, by: Restriction) -> None:
    """Keeps what is true on an edge (see universe.Restriction)."""
    for i in by.unreached:
        state.present &= ~(1 << i)
    for facts in (state.own, state.warp, state.pub, state.peer):
        if not any(facts):
            continue
        for i in by.unreached:
            facts[i] = 0
        if len(by.inside) > 1:
            bits = state.meet(facts, by.inside)
            for i in by.inside:
                facts[i] = bits
    fresh = ~state.stale | by.lasting
    if by.own_drop:
        keep = ~(by.own_drop & fresh)
        state.own[:] = [bits & keep for bits in state.own]
        state.groups[:] = [bits & keep for bits in state.groups]
        state.local &= keep
        state.unjoined &= keep
        state.made &= keep
    if by.warp_drop:
        keep = ~(by.warp_drop & fresh)
        state.warp[:] = [bits & keep for bits in state.warp]
    if by.never:
        keep = ~by.never
        state.warp[:] = [bits & keep for bits in state.warp]
        state.pub[:] = [bits & keep for bits in state.pub]
        state.loose &= keep
        state.apart &= keep
        state.others &= keep
