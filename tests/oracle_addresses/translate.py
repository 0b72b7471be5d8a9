"""PTX integer instructions as Python source: one statement each, over a list `r` of register slots.

Written against the PTX ISA alone; nothing of the tool's analysis is used. A slot holds a register as an unsigned
integer. What the text does not determine (loads, results of unknown operations) comes from the thread `t`.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxfence.grammar import Instruction
from ptxfence.grammar.model import Address, Immediate, Negated, Operand, Pair, Register, Symbol, Vector

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
WINDOW = 1 << 40  # generic address of shared memory
PEER = 1 << 24  # distance of another CTA's window
_NO_RESULT = ("bar", "barrier", "bra", "brx", "st", "red", "cp", "prefetch", "nanosleep", "setmaxnreg", "stackrestore")


def typed(parts: list[str]) -> tuple[str, int]:
    """Kind and width of the last integer or bit type among the qualifiers; ("f", 0) for anything else."""
    if any(
        (x[:1] in ("f", "t", "e") and x[1:2].isdigit()) or x.startswith("bf") or x.endswith("x2") for x in parts[1:]
    ):
        return "f", 0
    for part in reversed(parts[1:]):
        if part == "pred":
            return "b", 1
        if part[:1] in ("u", "s", "b") and part[1:].isdigit():
            return part[0], int(part[1:])
    return "b", 32


def sources(instruction: Instruction) -> list[str]:
    """Registers that an instruction reads, its guard included."""
    found = [instruction.guard] if instruction.guard is not None else []
    for operand in instruction.operands[1:]:
        found += registers(operand)
    return found


def written(instruction: Instruction) -> list[str]:
    """Registers that an instruction gives a value."""
    parts = instruction.opcode.split(".")
    reads = (parts[0] in _NO_RESULT and "red" not in parts[1:]) or instruction.opcode.startswith("tcgen05.dealloc")
    if reads or not instruction.operands or isinstance(instruction.operands[0], Address):
        return []
    return registers(instruction.operands[0])


def registers(operand: Operand) -> list[str]:
    match operand:
        case Register(name, component):
            return [f"{name}.{component}" if component else name]
        case Negated(inner):
            return [inner.name]
        case Address(base):
            return [] if base is None else registers(base)
        case Vector(items):
            return [name for item in items for name in registers(item)]
        case Pair(first, second):
            return registers(first) + registers(second)
        case _:
            return []


class Translator:
    """Source text of instructions. `slots` numbers registers, special registers and symbols as they appear."""

    def __init__(self, kinds: dict[str, str]) -> None:
        self.kinds = kinds
        self.slots: dict[str, int] = {}

    # --- operands --------------------------------------------------------------------------------

    def slot(self, name: str) -> str:
        return f"r[{self.slots.setdefault(name, len(self.slots))}]"

    def value(self, operand: Operand) -> str:
        match operand:
            case Register(name, component):
                return self.slot(f"{name}.{component}" if component else name)
            case Negated(inner):
                return f"(1 - ({self.slot(inner.name)} & 1))"
            case Immediate(value):
                return f"({value if isinstance(value, int) else 0})"
            case Symbol(name, offset):
                return f"({self.slot('&' + name)} + {offset})"
            case Address(base, offset):
                return f"({self.value(base)} + {offset})" if base is not None else str(offset)
            case _:
                return "0"

    def unsigned(self, operand: Operand, width: int) -> str:
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return f"{operand.value & ((1 << width) - 1)}"
        if width >= 32 and isinstance(operand, Register) and self.kinds.get(operand.name, "")[1:] == str(width):
            return self.value(operand)
        return f"({self.value(operand)} & {(1 << width) - 1})"

    def signed(self, operand: Operand, width: int) -> str:
        half = 1 << (width - 1)
        return f"(({self.unsigned(operand, width)} ^ {half}) - {half})"

    def as_type(self, operand: Operand, kind: str, width: int) -> str:
        return self.signed(operand, width) if kind == "s" else self.unsigned(operand, width)

    # --- instructions ----------------------------------------------------------------------------

    def statements(self, instruction: Instruction) -> list[str]:
        """What an instruction does to its destinations."""
        parts = instruction.opcode.split(".")
        make: Callable[[Instruction, list[str]], list[str]] | None = getattr(self, f"_{parts[0]}", None)
        found = make(instruction, parts) if make is not None else []
        return found or self.unknown(instruction, parts)

    def unknown(self, instruction: Instruction, parts: list[str]) -> list[str]:
        waits = parts[0] == "mbarrier" and any("wait" in part for part in parts)
        found: list[str] = []
        for name in written(instruction):
            if waits:
                found.append(f"{self.slot(name)} = 1")
            elif self.kinds.get(name) == "pred":
                found.append(f"{self.slot(name)} = t.coin()")
            else:
                found.append(f"{self.slot(name)} = t.unknown()")
        return found

    def _amount(self, operand: Operand, most: int) -> str:
        by = self.unsigned(operand, 32)
        return str(min(int(by), most)) if by.isdigit() else f"min({by}, {most})"

    def _set(self, instruction: Instruction, expression: str, width: int) -> list[str]:
        target = instruction.operands[0]
        if not isinstance(target, Register):
            return []
        return [f"{self.slot(target.name)} = {expression} & {(1 << width) - 1}"]

    def _infix(self, i: Instruction, p: list[str], operator: str) -> list[str]:
        kind, width = typed(p)
        if kind == "f" or "sat" in p:
            return []
        a, b = self.value(i.operands[1]), self.value(i.operands[2])
        return self._set(i, f"({a} {operator} {b})", width)

    def _add(self, i: Instruction, p: list[str]) -> list[str]:
        return self._infix(i, p, "+")

    def _sub(self, i: Instruction, p: list[str]) -> list[str]:
        return self._infix(i, p, "-")

    def _and(self, i: Instruction, p: list[str]) -> list[str]:
        return self._infix(i, p, "&")

    def _or(self, i: Instruction, p: list[str]) -> list[str]:
        return self._infix(i, p, "|")

    def _xor(self, i: Instruction, p: list[str]) -> list[str]:
        return self._infix(i, p, "^")

    def _not(self, i: Instruction, p: list[str]) -> list[str]:
        return self._set(i, f"(~{self.value(i.operands[1])})", typed(p)[1])

    def _neg(self, i: Instruction, p: list[str]) -> list[str]:
        kind, width = typed(p)
        return [] if kind == "f" else self._set(i, f"(-{self.value(i.operands[1])})", width)

    def _call(self, i: Instruction, p: list[str]) -> list[str]:
        return []

    def _function(self, i: Instruction, p: list[str], name: str) -> list[str]:
        """`name` of the operands, read in the instruction's type."""
        kind, width = typed(p)
        if kind == "f" or width < 8:
            return []
        args = ", ".join(self.as_type(x, kind, width) for x in i.operands[1:])
        return self._set(i, f"{name}({args})", width)

    def _abs(self, i: Instruction, p: list[str]) -> list[str]:
        return self._function(i, p, "abs")

    def _min(self, i: Instruction, p: list[str]) -> list[str]:
        return self._function(i, p, "min")

    def _max(self, i: Instruction, p: list[str]) -> list[str]:
        return self._function(i, p, "max")

    def _div(self, i: Instruction, p: list[str]) -> list[str]:
        return self._function(i, p, "divide")

    def _rem(self, i: Instruction, p: list[str]) -> list[str]:
        return self._function(i, p, "remain")

    def _product(self, i: Instruction, p: list[str], more: str) -> list[str]:
        kind, width = typed(p)
        if kind == "f":
            return []
        if "wide" in p or "hi" in p:
            a, b = (self.as_type(x, kind, width) for x in i.operands[1:3])
            return (
                self._set(i, f"({a} * {b}{more})", 2 * width)
                if "wide" in p
                else self._set(i, f"(({a} * {b} >> {width}){more})", width)
            )
        a, b = (self.value(x) for x in i.operands[1:3])
        return self._set(i, f"({a} * {b}{more})", width)

    def _mul(self, i: Instruction, p: list[str]) -> list[str]:
        return self._product(i, p, "")

    def _mad(self, i: Instruction, p: list[str]) -> list[str]:
        return self._product(i, p, f" + {self.value(i.operands[3])}")

    def _lop3(self, i: Instruction, p: list[str]) -> list[str]:
        a, b, c, table = (self.unsigned(x, 32) for x in i.operands[1:5])
        return self._set(i, f"lop3({a}, {b}, {c}, {table})", 32)

    def _shl(self, i: Instruction, p: list[str]) -> list[str]:
        width = typed(p)[1]
        a, by = self.unsigned(i.operands[1], width), self._amount(i.operands[2], 64)
        return self._set(i, f"({a} << {by})", width)

    def _shr(self, i: Instruction, p: list[str]) -> list[str]:
        kind, width = typed(p)
        a, by = self.as_type(i.operands[1], kind, width), self._amount(i.operands[2], width)
        return self._set(i, f"({a} >> {by})", width)

    def _shf(self, i: Instruction, p: list[str]) -> list[str]:
        low, high, by = (self.unsigned(x, 32) for x in i.operands[1:4])
        amount = f"min({by}, 32)" if "clamp" in p else f"({by} & 31)"
        both = f"({high} << 32 | {low})"
        return self._set(i, f"({both} >> {amount})" if "r" in p else f"({both} << {amount} >> 32)", 32)

    def _bfe(self, i: Instruction, p: list[str]) -> list[str]:
        kind, width = typed(p)
        a, at, count = self.unsigned(i.operands[1], width), *(self.unsigned(x, 8) for x in i.operands[2:4])
        return self._set(i, f"field({a}, {at}, {count}, {width}, {kind == 's'})", width)

    def _bfi(self, i: Instruction, p: list[str]) -> list[str]:
        width = typed(p)[1]
        a, b = (self.unsigned(x, width) for x in i.operands[1:3])
        at, count = (self.unsigned(x, 8) for x in i.operands[3:5])
        return self._set(i, f"insert({a}, {b}, {at}, {count}, {width})", width)

    def _prmt(self, i: Instruction, p: list[str]) -> list[str]:
        if len(p) > 2:
            return []
        a, b, pick = (self.unsigned(x, 32) for x in i.operands[1:4])
        return self._set(i, f"permute({a}, {b}, {pick})", 32)

    def _popc(self, i: Instruction, p: list[str]) -> list[str]:
        return self._set(i, f"{self.unsigned(i.operands[1], typed(p)[1])}.bit_count()", 32)

    def _selp(self, i: Instruction, p: list[str]) -> list[str]:
        if typed(p)[0] == "f":
            return []
        a, b, c = (self.value(x) for x in i.operands[1:4])
        return self._set(i, f"({a} if {c} & 1 else {b})", max(typed(p)[1], 16))

    def _mov(self, i: Instruction, p: list[str]) -> list[str]:
        target, source = i.operands[0], i.operands[1]
        width = typed(p)[1] or int("".join(c for c in p[1] if c.isdigit()) or 32)
        total = self.value(source)
        if isinstance(source, Vector):
            part = width // len(source.items)
            fields = [f"{self.unsigned(x, part)} << {part * k}" for k, x in enumerate(source.items)]
            total = "(" + " | ".join(fields) + ")"
        if not isinstance(target, Vector):
            return self._set(i, total, width)
        part = width // len(target.items)
        found = [f"x = {total}"]
        for k, item in enumerate(target.items):
            if isinstance(item, Register):
                found.append(f"{self.slot(item.name)} = x >> {part * k} & {(1 << part) - 1}")
        return found

    def _cvt(self, i: Instruction, p: list[str]) -> list[str]:
        kinds = [x for x in p[1:] if x[:1] in ("u", "s", "b", "f", "t") and x[1:].isdigit()]
        if len(kinds) != 2 or not all(k[0] in "us" for k in kinds):
            return []
        to, origin = kinds
        value = self.as_type(i.operands[1], origin[0], int(origin[1:]))
        width = int(to[1:])
        if "sat" in p:
            least, most = (0, (1 << width) - 1) if to[0] == "u" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
            value = f"max({least}, min({value}, {most}))"
        low = f"({value} & {(1 << width) - 1})"
        if to[0] == "s" and width < 32:  # the register is wider: extended in it (PTX ISA 9.4.1)
            low = f"(({low} ^ {1 << (width - 1)}) - {1 << (width - 1)})"
        return self._set(i, low, 64 if width == 64 else 32)

    def _cvta(self, i: Instruction, p: list[str]) -> list[str]:
        move = WINDOW if any(x.startswith("shared") for x in p) else 0
        return self._set(i, f"({self.value(i.operands[1])} {'-' if 'to' in p else '+'} {move})", 64)

    def _mapa(self, i: Instruction, p: list[str]) -> list[str]:
        rank = f"({self.value(i.operands[2])} & 7)"
        return self._set(i, f"({self.value(i.operands[1])} + {PEER} * (1 + {rank}))", 64)

    def _setp(self, i: Instruction, p: list[str]) -> list[str]:
        kind, width = typed(p)
        if kind == "f":
            result = "t.coin()"
        else:
            kind = "u" if p[1] in ("lo", "ls", "hi", "hs") else kind
            a, b = (self.as_type(x, kind, width) for x in i.operands[1:3])
            operator = {"eq": "==", "ne": "!=", "lt": "<", "lo": "<", "le": "<=", "ls": "<=", "gt": ">", "hi": ">"}
            result = f"({a} {operator.get(p[1], '>=')} {b})"
        combine = {"and": "&", "or": "|", "xor": "^"}.get(next((x for x in p[2:] if x in ("and", "or", "xor")), ""))
        target = i.operands[0]
        items = (target.first, target.second) if isinstance(target, Pair) else (target,)
        found = [f"x = int({result})"]
        for negate, item in enumerate(items):
            if not isinstance(item, Register):
                continue
            bit = "1 - x" if negate else "x"
            if combine:
                bit = f"({bit}) {combine} ({self.value(i.operands[3])} & 1)"
            found.append(f"{self.slot(item.name)} = {bit}")
        return found

    # --- memory and other lanes ------------------------------------------------------------------

    def _ld(self, i: Instruction, p: list[str]) -> list[str]:
        target, source = i.operands[0], i.operands[1]
        kind = next((x for x in reversed(p) if x[1:].isdigit() and x[0] in "usbf"), "b32")
        bits = int(kind[1:])
        found: list[str] = []
        for number, item in enumerate(target.items if isinstance(target, Vector) else (target,)):
            if not isinstance(item, Register):
                continue
            if "param" in p[1] and isinstance(source, Address):
                key = f"{source.base} {source.offset + number * bits // 8}"
                found.append(f"{self.slot(item.name)} = t.parameter({key!r}, {bits})")
            else:
                found.append(f"{self.slot(item.name)} = t.load({bits}, {kind[0] == 's'})")
        return found

    def _shfl(self, i: Instruction, p: list[str]) -> list[str]:
        target = i.operands[0]
        first = target.first if isinstance(target, Pair) else target
        if not isinstance(first, Register):
            return []
        own, lane = (self.unsigned(x, 32) for x in i.operands[1:3])
        found = [f"{self.slot(first.name)} = t.shuffle({i.index}, {p[2]!r}, {own}, {lane})"]
        if isinstance(target, Pair) and isinstance(target.second, Register):
            found.append(f"{self.slot(target.second.name)} = 1")
        return found

    def _elect(self, i: Instruction, p: list[str]) -> list[str]:
        target = i.operands[0]
        items = (target.first, target.second) if isinstance(target, Pair) else (target,)
        values = ("0", f"int({self.slot('%laneid')} == 0)")
        return [f"{self.slot(x.name)} = {v}" for x, v in zip(items, values, strict=False) if isinstance(x, Register)]


# --- what the source calls -----------------------------------------------------------------------


def divide(a: int, b: int) -> int:
    return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0


def remain(a: int, b: int) -> int:
    return (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else 0


def lop3(a: int, b: int, c: int, table: int) -> int:
    out = 0
    for index in range(8):
        if table >> index & 1:
            out |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
    return out


def field(a: int, at: int, count: int, width: int, signed: bool) -> int:
    found = a >> at & ((1 << count) - 1)
    top = min(count, width - at)
    return found - (1 << top) if signed and top > 0 and found >> (top - 1) & 1 else found


def insert(a: int, b: int, at: int, count: int, width: int) -> int:
    mask = (((1 << count) - 1) << at) & ((1 << width) - 1)
    return (b & ~mask) | (a << at & mask)


def permute(a: int, b: int, pick: int) -> int:
    both, out = b << 32 | a, 0
    for k in range(4):
        nibble = pick >> 4 * k & 15
        byte = both >> 8 * (nibble & 7) & 255
        out |= ((255 if byte & 128 else 0) if nibble & 8 else byte) << 8 * k
    return out


HELPERS: dict[str, Callable[..., int]] = {
    "divide": divide,
    "remain": remain,
    "lop3": lop3,
    "field": field,
    "insert": insert,
    "permute": permute,
}
