"""A concrete interpreter for the integer side of PTX: one thread, real numbers, no abstraction.

It shares the front end with the tool but nothing with its analysis: opcodes are taken apart here, registers hold
Python integers, and every shared-memory operand that is executed is reported with its concrete address. Values that
the text does not determine (parameters, loads) come from a seeded source; waits succeed at once; floating point is
skipped. A shuffle reads what the source lane had when it ran the same shuffle (lanes are run one after the other).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ptxfence.grammar import Function, Instruction
from ptxfence.grammar.model import Address, Immediate, Negated, Operand, Pair, Register, Symbol, Vector

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
WINDOW = 1 << 40  # generic address of shared memory
PEER = 1 << 24  # distance of another CTA's window
Trace = Callable[[int, int, int], None]  # instruction, operand, address


def width_of(parts: list[str]) -> int:
    for part in parts:
        if part == "pred":
            return 1
        if part[:1] in "usbf" and part[1:].isdigit():
            return int(part[1:])
    return 32


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


@dataclass
class Launch:
    """One choice of everything that the text leaves open."""

    seed: int
    tid: int
    ctaid: int
    threads: int
    symbols: dict[str, int]
    shuffles: dict[tuple[int, int, int], int] = field(default_factory=dict)  # (lane's tid, instruction, occurrence)


class Thread:
    """Runs one function body for one thread until it ends or `steps` instructions are done."""

    def __init__(self, function: Function, launch: Launch, trace: Trace, watched: dict[int, list[int]]) -> None:
        self.function = function
        self.launch = launch
        self.trace = trace
        self.watched = watched
        self.registers: dict[str, int] = {}
        self.counts: dict[int, int] = {}
        self.shared = random.Random(launch.seed)
        self.choice = random.Random(f"{launch.seed} {launch.ctaid}")
        self.params: dict[str, int] = {}

    # --- operands --------------------------------------------------------------------------------

    def special(self, name: str, component: str) -> int | None:
        launch = self.launch
        match name:
            case "%tid":
                return launch.tid if component == "x" else 0
            case "%ntid":
                return launch.threads if component == "x" else 1
            case "%laneid":
                return launch.tid & 31
            case "%ctaid":
                return launch.ctaid if component == "x" else 0
            case "%nctaid":
                return 132 if component == "x" else 1
            case "%cluster_ctarank" | "%cluster_ctaid":
                return launch.ctaid & 1
            case "%dynamic_smem_size":
                return 200_000
            case _ if name.startswith(
                ("%cluster", "%nclusterid", "%smid", "%warpid", "%clock", "%globaltimer", "%lanemask")
            ):
                return 1
            case _:
                return None

    def value(self, operand: Operand) -> int:
        match operand:
            case Register(name, component):
                special = self.special(name, component)
                return special if special is not None else self.registers.get(name, 0)
            case Negated(inner):
                return 1 - (self.registers.get(inner.name, 0) & 1)
            case Immediate(value):
                return value if isinstance(value, int) else 0
            case Symbol(name, offset):
                return self.launch.symbols.get(name, 1 << 20) + offset
            case Address(base, offset):
                return (self.value(base) if base is not None else 0) + offset
            case _:
                return 0

    def write(self, operand: Operand, value: int) -> None:
        if isinstance(operand, Register):
            self.registers[operand.name] = value & M64

    # --- running ---------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        code, at = self.function.instructions, 0
        while steps and at < len(code):
            steps -= 1
            instruction = code[at]
            at += 1
            if instruction.guard is not None:
                holds = self.registers.get(instruction.guard, 0) & 1
                if bool(holds) == instruction.guard_negated:
                    continue
            target = self.step(instruction)
            if target is not None:
                at = target

    def step(self, instruction: Instruction) -> int | None:
        parts = instruction.opcode.split(".")
        index = instruction.index
        for position in self.watched.get(index, ()):
            self.trace(index, position, self.value(instruction.operands[position]))
        if parts[0] in ("ret", "exit", "trap"):
            return len(self.function.instructions)
        if parts[0] in ("bra", "brx"):
            return self.branch(instruction)
        operation = getattr(self, f"do_{parts[0]}", None)
        if operation is not None:
            operation(instruction, parts)
        elif instruction.operands:
            self.unknown(instruction, parts)
        return None

    def branch(self, instruction: Instruction) -> int:
        operands = instruction.operands
        if instruction.opcode.startswith("brx"):
            assert isinstance(operands[1], Symbol)
            names = self.function.targets[operands[1].name]
            return self.function.labels[names[self.value(operands[0]) % len(names)]]
        assert isinstance(operands[0], Symbol)
        return self.function.labels[operands[0].name]

    def unknown(self, instruction: Instruction, parts: list[str]) -> None:
        """Results that the text does not determine; a predicate of a wait is true."""
        first = instruction.operands[0]
        targets = (
            first.items
            if isinstance(first, Vector)
            else (first.first, first.second)
            if isinstance(first, Pair)
            else (first,)
        )
        for target in targets:
            if isinstance(target, Register):
                waits = parts[0] == "mbarrier" and "wait" in parts[1]
                kind = self.function.registers.get(target.name, "b32")
                self.write(
                    target,
                    1
                    if waits
                    else self.choice.randrange(2)
                    if kind == "pred"
                    else self.choice.choice((0, 1, 3, 17, 200)),
                )

    # --- memory ----------------------------------------------------------------------------------

    def do_ld(self, instruction: Instruction, parts: list[str]) -> None:
        target, source = instruction.operands[0], instruction.operands[1]
        targets = target.items if isinstance(target, Vector) else (target,)
        for number, item in enumerate(targets):
            if "param" in parts[1]:
                assert isinstance(source, Address)
                key = f"{source.base} {source.offset} {number}"
                self.write(item, self.params.setdefault(key, self.parameter(key, width_of(parts[1:]))))
            else:
                bits = min(width_of(parts[1:]), 16)
                self.write(item, self.choice.choice((0, 1, 2, 3, 5, 60)) & ((1 << bits) - 1))

    def parameter(self, key: str, width: int) -> int:
        source = random.Random(f"{self.launch.seed} {key}")
        if width == 64:
            return source.choice((1 << 44, (1 << 44) + 4096, 512, 4096))
        return source.choice((1, 2, 3, 7, 16, 64, 128, 257, 512, 1024))

    # --- arithmetic ------------------------------------------------------------------------------

    def args(self, instruction: Instruction, width: int, sign: bool) -> list[int]:
        fix = signed if sign else (lambda v, w: v & ((1 << w) - 1))
        return [fix(self.value(operand), width) for operand in instruction.operands[1:]]

    def integer(self, instruction: Instruction, parts: list[str], compute: Callable[..., int]) -> None:
        kind = next((p for p in parts[1:] if p[:1] in "usbf" and p[1:].isdigit()), "b32")
        if kind[0] == "f" or any("f16" in p or "f32" in p or "f64" in p for p in parts[1:]):
            self.write(instruction.operands[0], 0)
            return
        width = int(kind[1:])
        result = compute(*self.args(instruction, width, kind[0] == "s"))
        self.write(instruction.operands[0], result & ((1 << width) - 1))

    def do_add(self, i: Instruction, p: list[str]) -> None:
        self.integer(i, p, lambda a, b: a + b)

    def do_sub(self, i: Instruction, p: list[str]) -> None:
        self.integer(i, p, lambda a, b: a - b)

    def do_neg(self, i: Instruction, p: list[str]) -> None:
        self.integer(i, p, lambda a: -a)

    def do_abs(self, i: Instruction, p: list[str]) -> None:
        self.integer(i, p, abs)

    def do_min(self, i: Instruction, p: list[str]) -> None:
        self.integer(i, p, lambda *a: min(a))

    def do_max(self, i: Instruction, p: list[str]) -> None:
        self.integer(i, p, lambda *a: max(a))

    def do_div(self, i: Instruction, p: list[str]) -> None:
        self.integer(i, p, lambda a, b: (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0)

    def do_rem(self, i: Instruction, p: list[str]) -> None:
        self.integer(i, p, lambda a, b: (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else 0)

    def product(self, i: Instruction, p: list[str], more: int) -> None:
        if "wide" in p:
            width = width_of(p[1:])
            sign = any(x.startswith("s") and x[1:].isdigit() for x in p)
            a, b = self.args(i, width, sign)[:2]
            self.write(i.operands[0], (a * b + more) & ((1 << 2 * width) - 1))
        elif "hi" in p:
            width = width_of(p[1:])
            self.integer(i, p, lambda a, b, *_: ((a * b) >> width) + more)
        else:
            self.integer(i, p, lambda a, b, *_: a * b + more)

    def do_mul(self, i: Instruction, p: list[str]) -> None:
        self.product(i, p, 0)

    def do_mad(self, i: Instruction, p: list[str]) -> None:
        self.product(i, p, self.value(i.operands[3]))

    def do_and(self, i: Instruction, p: list[str]) -> None:
        self.logic(i, p, lambda a, b: a & b)

    def do_or(self, i: Instruction, p: list[str]) -> None:
        self.logic(i, p, lambda a, b: a | b)

    def do_xor(self, i: Instruction, p: list[str]) -> None:
        self.logic(i, p, lambda a, b: a ^ b)

    def do_not(self, i: Instruction, p: list[str]) -> None:
        self.logic(i, p, lambda a: ~a)

    def logic(self, i: Instruction, p: list[str], compute: Callable[..., int]) -> None:
        width = width_of(p[1:])
        self.write(i.operands[0], compute(*self.args(i, width, False)) & ((1 << width) - 1))

    def do_lop3(self, i: Instruction, p: list[str]) -> None:
        a, b, c, table = self.args(i, 32, False)[:4]
        out = 0
        for index in range(8):
            if table >> index & 1:
                out |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
        self.write(i.operands[0], out & M32)

    def do_shl(self, i: Instruction, p: list[str]) -> None:
        self.logic(i, p, lambda a, b: a << min(b, 64))

    def do_shr(self, i: Instruction, p: list[str]) -> None:
        width = width_of(p[1:])
        by = self.value(i.operands[2]) & M32
        a = self.value(i.operands[1])
        a = signed(a, width) if any(x == f"s{width}" for x in p) else a & ((1 << width) - 1)
        self.write(i.operands[0], (a >> min(by, width)) & ((1 << width) - 1))

    def do_shf(self, i: Instruction, p: list[str]) -> None:
        low, high, by = self.args(i, 32, False)
        by = min(by, 32) if "clamp" in p else by & 31
        both = high << 32 | low
        self.write(i.operands[0], (both >> by if "r" in p else both << by >> 32) & M32)

    def do_bfe(self, i: Instruction, p: list[str]) -> None:
        width = width_of(p[1:])
        a, at, count = self.value(i.operands[1]), self.value(i.operands[2]) & 255, self.value(i.operands[3]) & 255
        field = (a & ((1 << width) - 1)) >> at & ((1 << count) - 1)
        if p[1][0] == "s" and count:
            field = signed(field, min(count, width - at))
        self.write(i.operands[0], field & ((1 << width) - 1))

    def do_bfi(self, i: Instruction, p: list[str]) -> None:
        width = width_of(p[1:])
        a, b, at, count = (self.value(x) & ((1 << width) - 1) for x in i.operands[1:5])
        mask = (((1 << count) - 1) << at) & ((1 << width) - 1)
        self.write(i.operands[0], (b & ~mask) | (a << at & mask))

    def do_prmt(self, i: Instruction, p: list[str]) -> None:
        a, b, pick = self.args(i, 32, False)[:3]
        both, out = b << 32 | a, 0
        for k in range(4):
            nibble = pick >> 4 * k & 15
            byte = both >> 8 * (nibble & 7) & 255
            out |= ((255 if byte & 128 else 0) if nibble & 8 else byte) << 8 * k
        self.write(i.operands[0], out)

    def do_popc(self, i: Instruction, p: list[str]) -> None:
        self.write(i.operands[0], bin(self.value(i.operands[1]) & ((1 << width_of(p[1:])) - 1)).count("1"))

    def do_mov(self, i: Instruction, p: list[str]) -> None:
        target, source, width = i.operands[0], i.operands[1], width_of(p[1:])
        if isinstance(source, Vector):
            part = width // len(source.items)
            total = sum((self.value(x) & ((1 << part) - 1)) << part * k for k, x in enumerate(source.items))
        else:
            total = self.value(source)
        if isinstance(target, Vector):
            part = width // len(target.items)
            for k, item in enumerate(target.items):
                self.write(item, total >> part * k & ((1 << part) - 1))
        else:
            self.write(target, total & ((1 << width) - 1) if width > 1 else total & 1)

    def do_cvt(self, i: Instruction, p: list[str]) -> None:
        kinds = [x for x in p[1:] if x[:1] in "usbf" and x[1:].isdigit()]
        if len(kinds) < 2 or "f" in (kinds[0][0], kinds[1][0]):
            self.write(i.operands[0], self.choice.choice((0, 1, 5)))
            return
        to, origin = kinds[0], kinds[1]
        value = self.value(i.operands[1]) & ((1 << int(origin[1:])) - 1)
        if origin[0] == "s":
            value = signed(value, int(origin[1:]))
        if "sat" in p:
            value = max(0, min(value, (1 << int(to[1:])) - 1)) if to[0] == "u" else value
        value &= (1 << int(to[1:])) - 1
        if to[0] == "s":
            value = signed(value, int(to[1:]))
        self.write(i.operands[0], value & (M64 if int(to[1:]) == 64 else M32))

    def do_cvta(self, i: Instruction, p: list[str]) -> None:
        move = WINDOW if any(x.startswith("shared") for x in p) else 0
        self.write(i.operands[0], self.value(i.operands[1]) + (-move if "to" in p else move))

    def do_mapa(self, i: Instruction, p: list[str]) -> None:
        self.write(i.operands[0], self.value(i.operands[1]) + PEER * (1 + (self.value(i.operands[2]) & 7)))

    def do_selp(self, i: Instruction, p: list[str]) -> None:
        self.write(i.operands[0], self.value(i.operands[1] if self.value(i.operands[3]) & 1 else i.operands[2]))

    def do_setp(self, i: Instruction, p: list[str]) -> None:
        kind = next((x for x in reversed(p) if x[:1] in "usbf" and x[1:].isdigit()), "b32")
        if kind[0] == "f":
            result = self.choice.randrange(2)
        else:
            fix = signed if kind[0] == "s" else (lambda v, w: v & ((1 << w) - 1))
            a, b = (fix(self.value(x), int(kind[1:])) for x in i.operands[1:3])
            name = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(p[1], p[1])
            result = int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[name])
        combine = next((x for x in p[2:] if x in ("and", "or", "xor")), "")
        pair = [result, 1 - result]
        if combine:
            other = self.value(i.operands[3]) & 1
            pair = [{"and": x & other, "or": x | other, "xor": x ^ other}[combine] for x in pair]
        target = i.operands[0]
        for item, bit in zip(
            (target.first, target.second) if isinstance(target, Pair) else (target,), pair, strict=False
        ):
            self.write(item, bit)

    # --- other lanes -----------------------------------------------------------------------------

    def do_shfl(self, i: Instruction, p: list[str]) -> None:
        target = i.operands[0]
        first = target.first if isinstance(target, Pair) else target
        own, lane = self.value(i.operands[1]) & M32, self.value(i.operands[2])
        count = self.counts[i.index] = self.counts.get(i.index, 0) + 1
        self.launch.shuffles[(self.launch.tid, i.index, count)] = own
        here = self.launch.tid & 31
        source = {
            "idx": lane & 31,
            "bfly": here ^ (lane & 31),
            "up": max(here - lane, 0),
            "down": min(here + lane, 31),
        }[p[2]]
        self.write(first, self.launch.shuffles.get((self.launch.tid & ~31 | source, i.index, count), own))

    def do_elect(self, i: Instruction, p: list[str]) -> None:
        target = i.operands[0]
        if isinstance(target, Pair):
            self.write(target.first, 0)
            self.write(target.second, int(self.launch.tid & 31 == 0))
