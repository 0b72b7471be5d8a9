"""Larger kernels from real ones: the innermost loops of a kernel, unrolled in its text. A wait is no loop here."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ptxfence.analysis.cfg import Cfg, Loop
from ptxfence.analysis.values_ssa import destinations
from ptxfence.grammar import Function, parse
from ptxfence.grammar.instruction import Instruction

_WORD = re.compile(r"[%$\w]+")
_NUMBERED = re.compile(r"(%[A-Za-z]+)(\d+)")
LEAST = 16  # instructions of a loop that is worth it; loops that wait for an mbarrier are shorter


@dataclass(frozen=True, slots=True)
class Unrolled:
    """The text, and (instructions of the kernel, those inside the loops) before it grew."""

    text: str
    sizes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Body:
    """A loop that is one stretch of text: instructions `[first, last]`, the last one the branch back."""

    first: int
    last: int


def unrolled(text: str, copies: int) -> Unrolled:
    """The first kernel of a file with every loop body that contains no other `copies` times in a row."""
    function = next(f for m in parse(text).modules for f in m.functions if f.has_body)
    code = function.instructions
    bodies = loops_in_text(function)
    fresh = Fresh(text, function)
    pieces: list[str] = []
    at = 0
    for body in bodies:
        pieces.append(text[at : code[body.first].start])
        pieces += _copied(text, function, body, copies, fresh)
        at = code[body.last].end
    pieces.append(text[at:])
    inside = sum(b.last - b.first + 1 for b in bodies)
    return Unrolled(fresh.declared("".join(pieces)), (len(code), inside))


def loops_in_text(function: Function) -> list[Body]:
    """Innermost loops that stand in one piece, are entered at the top and end with their only branch back."""
    cfg = Cfg(function)
    sizes = {loop: sum(cfg.blocks[b].end - cfg.blocks[b].start for b in loop.blocks) for loop in cfg.loops}
    large = [loop for loop, size in sizes.items() if size >= LEAST]
    found: list[Body] = []
    for loop in sorted(large, key=lambda one: cfg.blocks[one.header].start):
        inner = any(other is not loop and other.header in loop.blocks for other in large)
        body = None if inner else _stretch(function, cfg, loop)
        if body is not None:
            found.append(body)
    return found


def _stretch(function: Function, cfg: Cfg, loop: Loop) -> Body | None:
    blocks = sorted(loop.blocks)
    first, last = cfg.blocks[blocks[0]].start, cfg.blocks[blocks[-1]].end - 1
    names = [name for name, at in function.labels.items() if at == first]
    branch = function.instructions[last]
    whole = blocks == list(range(blocks[0], blocks[-1] + 1)) and blocks[0] == loop.header
    latches = [b for b in blocks if loop.header in cfg.succs[b]]
    if not whole or not names or latches != [blocks[-1]] or branch.scope:
        return None
    return Body(first, last)


class Fresh:
    """New registers of the kernel: numbers above those that its declarations name."""

    def __init__(self, text: str, function: Function) -> None:
        self.declarations = {m[2]: m for m in re.finditer(r"(\.reg\s*\.\w+\s*)(%\w+?)<(\d+)>", text)}
        self.next = {prefix: int(match[3]) for prefix, match in self.declarations.items()}
        places = Counter[str]()
        self.first: dict[str, int] = {}
        for instruction in function.instructions:
            for name in destinations(instruction):
                places[name] += 1
                self.first.setdefault(name, instruction.index)
        self.single = {name for name, count in places.items() if count == 1}

    def name(self, register: str) -> str | None:
        """A register of the same kind; None where it is not one of a numbered family."""
        match = _NUMBERED.fullmatch(register)
        if match is None or match[1] not in self.next:
            return None
        number = self.next[match[1]]
        self.next[match[1]] += 1
        return f"{match[1]}{number}"

    def declared(self, text: str) -> str:
        for prefix, match in self.declarations.items():
            text = text.replace(match[0], f"{match[1]}{prefix}<{self.next[prefix]}>", 1)
        return text


def _copied(text: str, function: Function, body: Body, copies: int, fresh: Fresh) -> list[str]:
    """The text of a loop whose body stands there `copies` times.

    Registers that the body defines once and uses only after that are new in every copy but the last; those that go
    round stay. Only the last copy is followed by the branch back, as where a trip count has a known factor.
    """
    code = function.instructions
    start, end = code[body.first].start, code[body.last].start
    inner, branch = text[start:end], code[body.last]
    local = {n for n in fresh.single if body.first <= fresh.first[n] <= body.last and not _read_before(code, body, n)}
    labels = [n for n, at in function.labels.items() if body.first < at <= body.last and "#" not in n]
    found: list[str] = []
    for copy in range(copies - 1):
        renamed = {name: new for name in local if (new := fresh.name(name)) is not None}
        renamed.update((name, f"{name}_{body.first}_{copy}") for name in labels)
        new = _WORD.sub(lambda m, table=renamed: table.get(m[0], m[0]), inner)
        found.append(new)
    return [*found, inner, branch.text]


def _read_before(code: tuple[Instruction, ...], body: Body, register: str) -> bool:
    """Whether an instruction of the body up to the register's definition names it."""
    for instruction in code[body.first : body.last + 1]:
        names = _WORD.findall(instruction.operand_text)
        if instruction.guard == register:
            return True
        if register in names:
            return register not in destinations(instruction) or names.count(register) > 1
    return False
