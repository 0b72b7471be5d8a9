"""A concrete interpreter for the integer side of PTX: one thread after the other, real numbers, no abstraction.

It shares the front end with the tool but nothing with its analysis. The instructions that an address or a branch
depends on become Python source (`translate`), one function a basic block; every watched operand that is executed is
reported with its concrete address. Values that the text does not determine (parameters, loads) come from a seeded
source, half of them from the constants that the kernel itself compares with; waits succeed at once; floating point is
unknown. A shuffle reads what the source lane had when it ran the same shuffle.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ptxfence.grammar import Function, Instruction
from ptxfence.grammar.model import Immediate, Symbol

from .translate import HELPERS, WINDOW, Translator, registers, sources, written

Block = Callable[[list[int], "Thread", list[list[int]]], int]
Shape = tuple[int, int, int]

_LEAVING = ("ret", "exit", "trap")
SMALL, MIDDLE, LARGE = (0, 1, 2, 3), (4, 5, 7, 8, 16, 31), (33, 60, 64, 127, 200, 257, 512, 1024, 4096)


@dataclass
class Launch:
    """One choice of everything that the text leaves open. `shape` are the threads of a CTA, `ctas` those of a cluster.

    `params` may be filled before: a launch that led somewhere new, with some parameters changed.
    """

    seed: int
    shape: Shape
    symbols: dict[str, int]
    ctas: int = 2
    constants: tuple[int, ...] = ()
    params: dict[str, int] = field(default_factory=dict[str, int])
    shuffles: dict[tuple[int, int, int], int] = field(default_factory=dict[tuple[int, int, int], int])

    def __post_init__(self) -> None:
        source = random.Random(self.seed)
        self.ctaid = tuple(source.choice((0, 0, 1, 2, 5, 40, 131)) for _ in range(3))
        self.rank = source.randrange(self.ctas)
        self.pool = source.choice((SMALL, SMALL + MIDDLE, SMALL + MIDDLE + LARGE, MIDDLE + LARGE, LARGE))

    def number(self, source: random.Random) -> int:
        """A number that a kernel may meet: small, or one of its own constants or beside one."""
        if self.constants and source.random() < 0.4:
            return source.choice(self.constants) + source.choice((-1, 0, 0, 1))
        return source.choice(self.pool)

    def parameter(self, key: str, bits: int) -> int:
        found = self.params.get(key)
        if found is None:
            source = random.Random(f"{self.seed} {key}")
            pointer = bits == 64 and source.random() < 0.7
            found = source.choice((1 << 44, (1 << 44) + 4096)) if pointer else self.number(source)
            found = self.params[key] = found & ((1 << bits) - 1)
        return found

    def changed(self, symbols: dict[str, int], source: random.Random) -> Launch:
        """The same launch at other addresses and with a few parameters drawn again."""
        dropped = {key for key in self.params if source.random() < 2 / len(self.params)}
        kept = {key: value for key, value in self.params.items() if key not in dropped}
        seed = source.randrange(1 << 30) if dropped else self.seed
        return Launch(seed, self.shape, symbols, self.ctas, self.constants, kept)


class Program:
    """A function ready to run: the blocks that start at labels, each a Python function."""

    def __init__(self, function: Function, watched: list[tuple[int, int]]) -> None:
        self.function = function
        self.translator = Translator(dict(function.registers))
        self.code = function.instructions
        self.places: dict[int, list[tuple[int, int]]] = {}
        for number, (index, operand) in enumerate(watched):
            self.places.setdefault(index, []).append((number, operand))
        self.needed = self._needed()
        self.constants = self._constants()
        self.starts = sorted({0, *(at for at in function.labels.values() if at < len(self.code))})
        self.sizes: dict[int, int] = {}
        scope: dict[str, Block] = {}
        exec("\n".join(self._block(n) for n in range(len(self.starts))), dict(HELPERS), scope)
        self.blocks = {start: scope[f"block{start}"] for start in self.starts}

    def _needed(self) -> set[str]:
        """Registers that addresses of watched operands and branches depend on."""
        needed: set[str] = set()
        writers: dict[str, list[Instruction]] = {}
        for instruction in self.code:
            if instruction.guard is not None and self._branches(instruction):
                needed.add(instruction.guard)
            if instruction.opcode.startswith("brx"):
                needed.update(registers(instruction.operands[0]))
            for _, operand in self.places.get(instruction.index, ()):
                needed.update(registers(instruction.operands[operand]))
                if instruction.guard is not None:
                    needed.add(instruction.guard)
            for name in written(instruction):
                writers.setdefault(name, []).append(instruction)
        work = list(needed)
        while work:
            for instruction in writers.get(work.pop(), ()):
                fresh = set(sources(instruction)) - needed
                needed |= fresh
                work.extend(fresh)
        return needed

    def _branches(self, instruction: Instruction) -> bool:
        return instruction.opcode.split(".")[0] in ("bra", "brx", *_LEAVING)

    def _constants(self) -> tuple[int, ...]:
        """Positive constants that the kernel compares with."""
        found: set[int] = set()
        for instruction in self.code:
            operands = instruction.operands if instruction.opcode.startswith("setp") else ()
            values = [x.value for x in operands if isinstance(x, Immediate)]
            found.update(x for x in values if isinstance(x, int) and 0 < x < 1 << 20)
        return tuple(sorted(found))

    def _block(self, number: int) -> str:
        start = self.starts[number]
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.code)
        lines = [f"def block{start}(r, t, s):"]
        for instruction in self.code[start:end]:
            body = self._statements(instruction)
            if not body:
                continue
            if instruction.guard is None:
                lines += [f"    {line}" for line in body]
                continue
            test = f"{self.translator.slot(instruction.guard)} & 1"
            lines.append(f"    if {'not ' if instruction.guard_negated else ''}{test}:")
            lines += [f"        {line}" for line in body]
        self.sizes[start] = len(lines)
        lines.append(f"    return {end if end < len(self.code) else -1}")
        return "\n".join(lines)

    def _statements(self, instruction: Instruction) -> list[str]:
        translator = self.translator
        found = [
            f"s[{number}].append({translator.value(instruction.operands[operand])})"
            for number, operand in self.places.get(instruction.index, ())
        ]
        parts = instruction.opcode.split(".")
        if parts[0] in _LEAVING:
            return ["return -1"]
        if parts[0] == "bra":
            assert isinstance(instruction.operands[0], Symbol)
            return [f"return {self._target(instruction.operands[0].name)}"]
        if parts[0] == "brx":
            assert isinstance(instruction.operands[1], Symbol)
            targets = [self._target(name) for name in self.function.targets[instruction.operands[1].name]]
            choice = translator.value(instruction.operands[0])
            return [f"return {targets}[{choice} % {len(targets)}]"]
        if not self.needed.isdisjoint(written(instruction)):
            found += translator.statements(instruction)
        return found

    def _target(self, label: str) -> int:
        at = self.function.labels[label]
        return at if at < len(self.code) else -1


class Thread:
    """Runs a program for one thread until it ends or `steps` statements are done."""

    def __init__(self, program: Program, launch: Launch, tid: Shape, reports: list[list[int]]) -> None:
        self.program = program
        self.launch = launch
        self.tid = tid
        self.linear = tid[0] + launch.shape[0] * (tid[1] + launch.shape[1] * tid[2])
        self.reports = reports
        self.counts: dict[int, int] = {}
        self.choice = random.Random(f"{launch.seed} loads")

    def run(self, steps: int) -> None:
        blocks, sizes = self.program.blocks, self.program.sizes
        registers = [self._initial(name) for name in self.program.translator.slots]
        at = 0
        while at >= 0 and steps > 0:
            steps -= sizes[at]
            at = blocks[at](registers, self, self.reports)

    def _initial(self, slot: str) -> int:
        """A special register, the address of a symbol, else zero."""
        launch = self.launch
        if slot.startswith("&"):
            return launch.symbols.get(slot[1:], 1 << 20)
        name, _, component = slot.partition(".")
        if name in self.program.translator.kinds or not name.startswith("%"):
            return 0
        axis = "xyz".find(component) if component else 0
        lane, warp = self.linear & 31, self.linear >> 5
        many = launch.shape[0] * launch.shape[1] * launch.shape[2]
        x = int(axis == 0)
        known = {
            "%tid": self.tid[axis],
            "%ntid": launch.shape[axis],
            "%ctaid": launch.ctaid[axis],
            "%nctaid": 132,
            "%laneid": lane,
            "%warpid": warp,
            "%nwarpid": -(-many // 32),
            "%cluster_ctarank": launch.rank,
            "%cluster_ctaid": launch.rank * x,
            "%cluster_nctarank": launch.ctas,
            "%cluster_nctaid": launch.ctas if x else 1,
            "%dynamic_smem_size": 200_000,
            "%total_smem_size": 200_000,
            "%lanemask_eq": 1 << lane,
            "%lanemask_lt": (1 << lane) - 1,
            "%lanemask_le": (2 << lane) - 1,
        }
        return known.get(name, 1)

    # --- what translated code calls --------------------------------------------------------------

    def parameter(self, key: str, bits: int) -> int:
        return self.launch.parameter(key, bits)

    def coin(self) -> int:
        return self.choice.randrange(2)

    def unknown(self) -> int:
        return max(0, self.launch.number(self.choice))

    def load(self, bits: int, signed: bool) -> int:
        value = self.launch.number(self.choice) if bits >= 8 else self.choice.randrange(2)
        if signed and bits < 64 and self.choice.random() < 0.2:
            value = -value
            return value & ((1 << max(32, bits)) - 1) if bits >= 32 or -(1 << (bits - 1)) <= value else 0
        return value & ((1 << bits - int(signed and bits < 32)) - 1)

    def shuffle(self, index: int, mode: str, own: int, lane: int) -> int:
        count = self.counts[index] = self.counts.get(index, 0) + 1
        known = self.launch.shuffles
        known[self.linear, index, count] = own
        here = self.linear & 31
        source = {"idx": lane & 31, "bfly": here ^ (lane & 31), "up": here - lane, "down": here + lane}[mode]
        if not 0 <= source <= 31:
            return own
        return known.get((self.linear & ~31 | source, index, count), own)


__all__ = ["WINDOW", "Launch", "Program", "Shape", "Thread"]
