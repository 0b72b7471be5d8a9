"""Runs a program under many schedules and collects what happened."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tests.oracle import barriers, generic, operations
from tests.oracle.compile import build
from tests.oracle.machine import Machine, Step, Stuck, Thread, random_chooser
from tests.oracle.program import PARAM_BASE, Program, load
from tests.oracle.shadow import Hazard

__all__ = ["Hazard", "Observations", "run"]

_VISIBLE = ("ld", "ldu", "st", "red", "atom", "ldmatrix", "stmatrix", "bar", "barrier", "mbarrier", "cp", "wgmma",
            "tcgen05", "clusterlaunchcontrol", "tensormap")  # fmt: skip
_MODULES = (barriers, generic, operations)  # imported for the builders that they register


@dataclass(frozen=True, slots=True)
class Observations:
    """What the schedules showed. `deadlocks`: one text per schedule that did not end. `executed`: lines run."""

    hazards: frozenset[Hazard]
    deadlocks: tuple[str, ...]
    executed: frozenset[int]
    schedules: int

    @property
    def pairs(self) -> frozenset[tuple[int, int, str]]:
        """(first line, second line, rule) of every hazard that a rule names."""
        return frozenset((h.first, h.second, h.rule) for h in self.hazards if h.rule)


Steps = list[tuple[Step, int, bool, bool]]
Start = tuple[int, list[int]]  # where a thread comes to its first visible instruction, and with which registers


@lru_cache(maxsize=64)
def _compiled(text: str) -> tuple[Program, Steps]:
    program = load(text)
    steps = [
        (build(op, program), -1 if op.guard is None else op.guard, op.negated, _is_visible(op.words))
        for op in program.ops
    ]
    return program, steps


def _is_visible(words: tuple[str, ...]) -> bool:
    return words[0] in _VISIBLE and "param" not in words


class _Systematic:
    """Depth-first enumeration of schedules: replays a prefix of choices, then takes the first choice everywhere."""

    def __init__(self) -> None:
        self.prefix: list[int] = []
        self.trail: list[tuple[int, int]] = []

    def __call__(self, ready: Sequence[Thread], flights: int) -> int:
        depth = len(self.trail)
        pick = self.prefix[depth] if depth < len(self.prefix) else 0
        self.trail.append((pick, len(ready) + flights))
        return pick

    def next(self) -> bool:
        """Moves to the next schedule; False after the last."""
        while self.trail and self.trail[-1][0] + 1 >= self.trail[-1][1]:
            self.trail.pop()
        if not self.trail:
            return False
        self.prefix = [pick for pick, _ in self.trail]
        self.prefix[-1] += 1
        self.trail = []
        return True


def run(
    ptx_text: str, *, threads: int | None = None, ctas: int | None = None, warp: int = 4,
    params: dict[str, int] | None = None, schedules: int = 20, seed: int = 0, exhaustive: bool = False,
    box: int = 0, limit: int = 200_000,
) -> Observations:  # fmt: skip
    """Runs the `.entry` of a module.

    `threads` per CTA (default `.reqntid`), `ctas` (default the cluster size), `warp` lanes per warp. `params` gives
    values by parameter name or position (`"0"`); others are 2 (32 bits) or distinct global addresses (64 bits).
    `schedules` random ones from `seed`, or with `exhaustive` the first that many in depth-first order. `box` is the
    size in bytes of a tensor copy, 0: what the mbarrier expects. Raises OracleError outside the subset.
    """
    program, steps = _compiled(ptx_text)
    threads = threads or program.directives.get("reqntid", (warp,))[0]
    ctas = ctas or program.directives.get("reqnctapercluster", (1,))[0]
    values = _params(program, params or {})
    systematic = _Systematic()
    starts: list[Start] = []
    hazards: set[Hazard] = set()
    deadlocks: list[str] = []
    executed: set[int] = set()
    count = 0
    for count in range(1, schedules + 1):
        machine = Machine(program, steps, threads, ctas, warp, values, box)
        _set_off(machine, starts)
        chooser = systematic if exhaustive else random_chooser(random.Random(seed * 1_000_003 + count))
        try:
            machine.run(chooser, limit)
        except Stuck as stuck:
            deadlocks.append(str(stuck))
        hazards |= machine.shadow.hazards
        executed |= machine.executed
        if exhaustive and not systematic.next():
            break
    lines = frozenset(program.ops[pc].line for pc in executed)
    return Observations(frozenset(hazards), tuple(deadlocks), lines, count)


def _set_off(machine: Machine, starts: list[Start]) -> None:
    """Brings every thread to its first visible instruction: what comes before is the same in every schedule."""
    if not starts:
        slots = machine.program.entry.slots
        for thread in machine.threads:
            for name, value in machine.params.items():
                thread.r[slots[name]] = value
            machine.approach(thread)
            starts.append((thread.pc, thread.r[:]))
        return
    for thread, (pc, registers) in zip(machine.threads, starts, strict=True):
        thread.pc, thread.r = pc, registers[:]


def _params(program: Program, given: dict[str, int]) -> dict[str, int]:
    values: dict[str, int] = {}
    for index, param in enumerate(program.params):
        default = PARAM_BASE * (index + 1) if param.size == 8 else 2
        values[param.name] = given.get(param.name, given.get(str(index), default))
    return values
