"""PF113: global memory of the previous kernel, read by an async operation after griddepcontrol.wait (proxy-semantics
C.12). What the previous kernel did is not in the text, so the wait stands for its writes; off by default."""

from __future__ import annotations

from collections.abc import Iterator

from ptxfence.analysis.context import Context
from ptxfence.analysis.effects import Completion, FenceKind, Mode, Proxy, Space, SyncKind
from ptxfence.analysis.events import Event, in_order
from ptxfence.analysis.report import Confidence, Finding, Severity, Step
from ptxfence.analysis.rules import NAMES

_PREFETCH = Completion.NONE


def unfenced(context: Context) -> Iterator[Finding]:
    """PF113 findings of one kernel: of each wait the first operation that a way without a fence leads to, and waits
    that lead to one operation are one finding."""
    every = in_order(context.events)
    waits = [e.index for e in every if e.effect.sync is not None and e.effect.sync.kind is SyncKind.GRID_WAIT]
    if not waits:
        return
    fences = frozenset(e.index for e in every if _covers_global(e))
    reads = [e.index for e in every if _reads_global(e)]
    paths = context.witness.paths
    found: dict[int, list[int]] = {}
    for wait in waits:
        reached = next((read for read in reads if paths.reaches(wait, read, fences)), None)
        if reached is not None:
            found.setdefault(reached, []).append(wait)
    for read, leading in found.items():
        leading.sort(key=lambda wait: not paths.reaches(wait, read, leap=False))  # the reader's own wait first
        yield _finding(context, leading, read)


def _covers_global(event: Event) -> bool:
    return any(fence.kind is FenceKind.ASYNC and Space.GLOBAL in fence.covers for fence in event.effect.fences)


def _reads_global(event: Event) -> bool:
    return any(
        access.proxy is Proxy.ASYNC
        and access.mode & Mode.READ
        and access.space in (Space.GLOBAL, Space.TENSOR)
        and access.completion is not _PREFETCH
        for access in event.effect.accesses
    )


def _finding(context: Context, waits: list[int], read: int) -> Finding:
    witness = context.witness
    wait, *others = waits
    message = (
        f"line {witness.line(wait)}: {witness.opcode(wait)} waits for the kernel before; line {witness.line(read)}: "
        f"{witness.opcode(read)} reads global memory through the async proxy; no proxy fence for what that kernel "
        "wrote through the generic proxy stands between"
    )
    return Finding(
        rule="PF113",
        name=NAMES["PF113"],
        severity=Severity.OFF,
        confidence=Confidence.POSSIBLE,
        kernel=context.events.function.name,
        cause=None,
        message=message,
        first=witness.place(wait),
        second=witness.place(read),
        others=tuple(witness.place(other) for other in others),
        path=(
            Step(witness.line(wait), "waits for the kernel before: its writes are performed"),
            Step(witness.line(read), "reads global memory (async proxy)"),
        ),
    )
