"""What the fences of a text cost, and what the recheck finds in it; for bench/repairs.py and bench/reinsert.py."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import FenceKind
from ptxfence.analysis.isa import lookup
from ptxfence.grammar import PtxFile
from ptxfence.rewrite.forms import cycles_of
from ptxfence.rewrite.placement import LOOP_FACTOR
from ptxfence.rewrite.recheck import recheck
from ptxfence.rewrite.roots import roots, routine

Pairs = set[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class Cost:
    """Fences and their estimated cycles."""

    fences: int
    cycles: int

    def __str__(self) -> str:
        return f"{self.fences} ({self.cycles})"

    def within(self, other: Cost) -> bool:
        """Whether neither number is larger than the other's."""
        return self.fences <= other.fences and self.cycles <= other.cycles


def is_fence(opcode: str) -> bool:
    """Whether it is a fence between the generic and the async proxy."""
    return any(fence.kind is FenceKind.ASYNC for fence in lookup(opcode).fences)


def weights(file: PtxFile) -> dict[int, int]:
    """Estimated cycles of the fences of a file, by line; those of a called function once for each call."""
    found: dict[int, int] = {}
    for module, function in roots(file):
        body = routine(module, function)
        cfg = Cfg(body)
        for instruction in body.instructions:
            if is_fence(instruction.opcode):
                line = file.position(instruction.start)[0]
                cycles = cycles_of(instruction.opcode) * LOOP_FACTOR ** cfg.depth(instruction.index)
                found[line] = found.get(line, 0) + cycles
    return found


def uncovered(file: PtxFile) -> Pairs:
    """Pairs that the recheck finds, by positions among the instructions that are no fences."""
    found: Pairs = set()
    for module, function in roots(file):
        body = routine(module, function)
        at = [i for i, code in enumerate(body.instructions) if is_fence(code.opcode)]
        for pair in recheck(module, body):
            access, operation = (i - bisect_left(at, i) for i in (pair.access, pair.operation))
            found.add((function.name, access, operation))
    return found
