"""Which definition of a register reaches a place: static single assignment form, built on demand.

A register with one definition is that definition. For the others (4 to 6 % of registers in compiler output, but all
ring indices) phi places are the iterated dominance frontier of the defining blocks, computed once per register; the
definition that reaches a place is then the nearest one up the dominator tree.
Cytron et al., "Efficiently computing static single assignment form and the control dependence graph" (1991).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.inline import Copy
from ptxfence.analysis.isa_operations import operation
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.model import Operand, Pair, Register, Vector

# A definition is the index of an instruction, or the (register, block) of a phi.
Definition = int | tuple[str, int]

# Operations whose first operand is no destination.
_NO_RESULT = frozenset(
    [
        "st",
        "red",
        "bra",
        "brx",
        "ret",
        "exit",
        "trap",
        "brkpt",
        "bar",
        "barrier",
        "membar",
        "fence",
        "call",
        "prefetch",
        "prefetchu",
        "nanosleep",
        "pmevent",
        "cp",
        "wgmma",
        "stmatrix",
        "setmaxnreg",
        "griddepcontrol",
        "discard",
        "applypriority",
        "stackrestore",
        "sust",
        "sured",
        "tensormap",
        "fabric",
    ]
)


_DESTINATION = re.compile(r"\s*(?:\{([^{}/]*)\}|([\w$%]+)(?:\s*\|\s*([\w$%]+))?\s*[,;])")
_writes: dict[str, bool] = {}


def _has_result(opcode: str) -> bool:
    found = _writes.get(opcode)
    if found is None:
        name = operation(opcode).name
        reduces = opcode.startswith(("bar.red", "barrier.cta.red", "barrier.red"))
        found = _writes[opcode] = name not in _NO_RESULT or reduces
    return found


def destinations(instruction: Instruction | Copy) -> list[str]:
    """Registers that the instruction writes.

    Read off the text where that is enough: parsing every operand would cost more than the rest of the analysis.
    """
    opcode = instruction.opcode
    if not _has_result(opcode):
        return _call_results(instruction) if opcode.startswith("call") else []
    if instruction.scope == 0 and (match := _DESTINATION.match(instruction.operand_text + ";")):
        vector, first, second = match.groups()
        if vector is not None:
            return [name for part in vector.split(",") if (name := part.strip()) != "_"]
        return [name for name in (first, second) if name and name != "_"]
    operands = instruction.operands
    return list(_registers(operands[0])) if operands else []


def _call_results(instruction: Instruction | Copy) -> list[str]:
    operands = instruction.operands
    return list(_registers(operands[0])) if len(operands) > 1 and isinstance(operands[0], Vector) else []


def _registers(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)


def _written(cfg: Cfg) -> dict[str, list[int]]:
    """Every register that is written, and the indices of the instructions that do. Hot: 1 us an instruction."""
    places: dict[str, list[int]] = {}
    text = next((i.source for i in cfg.instructions if isinstance(i, Instruction)), "")
    match = _DESTINATION.match
    for instruction in cfg.instructions:
        opcode = instruction.opcode
        writes = _writes.get(opcode)
        if not (_has_result(opcode) if writes is None else writes) and opcode[:4] != "call":
            continue
        names: list[str] | None = None
        if instruction.scope == 0 and writes and isinstance(instruction, Instruction):
            found = match(text, instruction.operand_start)
            if found is not None and found.lastindex == 2:
                names = [found[2]] if found[2] != "_" else []
        for name in destinations(instruction) if names is None else names:
            if name in places:
                places[name].append(instruction.index)
            else:
                places[name] = [instruction.index]
    return places


class Definitions:
    """Definitions of every register of a function, and which of them reaches a place."""

    def __init__(self, cfg: Cfg) -> None:
        self.cfg = cfg
        self.block_of = cfg.home
        self._places = _written(cfg)
        self._phis: dict[str, frozenset[int]] = {}
        self._at_end: dict[tuple[str, int], Definition | None] = {}

    def places(self, register: str) -> list[int]:
        """Indices of the instructions that write the register, ascending."""
        return self._places.get(register, [])

    @cached_property
    def _frontier(self) -> dict[int, set[int]]:
        idom, preds = self.cfg.idom, self.cfg.preds
        frontier: dict[int, set[int]] = {}
        for block in self.cfg.order:
            if len(preds[block]) < 2:
                continue
            for pred in preds[block]:
                runner = pred
                while runner in idom and runner != idom[block]:
                    frontier.setdefault(runner, set()).add(block)
                    if runner == idom[runner]:
                        break
                    runner = idom[runner]
        return frontier

    def _phi_blocks(self, register: str) -> frozenset[int]:
        found = self._phis.get(register)
        if found is None:
            frontier, blocks = self._frontier, {self.block_of[i] for i in self._places[register]}
            work, placed = list(blocks), set[int]()
            while work:
                for block in frontier.get(work.pop(), ()):
                    if block not in placed:
                        placed.add(block)
                        work.append(block)
            found = self._phis[register] = frozenset(placed)
        return found

    def reaching(self, register: str, index: int) -> Definition | None:
        """The definition that instruction `index` reads; None where there is none."""
        places = self._places.get(register)
        if places is None:
            return None
        block = self.block_of[index]
        if len(places) == 1:
            place = places[0]
            own = self.block_of[place]
            if place < index if own == block else self.cfg.dominates(own, block):
                return place
        at = bisect_left(places, index) - 1
        if at >= 0 and places[at] >= self.cfg.blocks[block].start:
            return places[at]
        return self._entering(register, block)

    def _entering(self, register: str, block: int) -> Definition | None:
        if block in self._phi_blocks(register):
            return (register, block)
        parent = self.cfg.idom.get(block, block)
        return None if parent == block else self.leaving(register, parent)

    def leaving(self, register: str, block: int) -> Definition | None:
        """The definition in force at the end of a block; None where there is none."""
        places = self._places.get(register)
        if places is None:
            return None
        if len(places) == 1 and self.cfg.dominates(self.block_of[places[0]], block):
            return places[0]
        phis, idom, blocks, memo = self._phi_blocks(register), self.cfg.idom, self.cfg.blocks, self._at_end
        walked: list[int] = []
        result: Definition | None = None
        while True:
            key = (register, block)
            if key in memo:
                result = memo[key]
                break
            walked.append(block)
            at = bisect_left(places, blocks[block].end) - 1
            if at >= 0 and places[at] >= blocks[block].start:
                result = places[at]
                break
            if block in phis:
                result = key
                break
            parent = idom.get(block, block)
            if parent == block:
                break
            block = parent
        for seen in walked:
            memo[(register, seen)] = result
        return result
