"""Where a line can be inserted so that it runs at a given program point, and nowhere else.

A point lies in the gap between two instructions. A gap holds labels, directives, comments and scope braces; the
new line goes to a line boundary inside it. What decides among the boundaries of a gap:

- before instruction `i` means after every label of the gap (all paths into `i` run the line), after instruction `i`
  means before every label (only the path that falls out of `i` runs it);
- outside inline-asm blocks (`// begin inline asm` ... `// end inline asm`) and nested scopes where possible, so that
  the line does not come between `{ .reg` and its use or between the text of one asm statement;
- never inside a wait block (a scope that only polls an mbarrier), never in a statement or comment that spans lines;
- after declarations, else as early as possible, so that `.loc` lines and comments stay with what they describe.

A gap without a good boundary (several statements on one line) is left through neighbours that touch no memory and
order nothing: before or after those is the same point.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from ptxfence.analysis.effects import Effect, Flow, Knowledge, Space, SyncKind
from ptxfence.analysis.isa import lookup
from ptxfence.grammar import Function, Instruction, PtxFile
from ptxfence.grammar.lexical import COMMENT, LOC, NAME

_BEGIN_ASM = "begin inline asm"
_END_ASM = "end inline asm"
_TOKEN = re.compile(
    rf"(?P<blank>\s+)|(?P<comment>{COMMENT})|(?P<loc>{LOC})|(?P<open>\{{)|(?P<close>\}})|(?P<label>{NAME}\s*:)"
    rf'|(?P<directive>\.\w+(?:[^;"/]|{COMMENT}|/|"[^"]*+")*+;?)|(?P<other>.)'
)
# Loop pragmas count from the label they follow (PTX ISA 11.3); others belong to the next instruction.
_LOOP_PRAGMA = re.compile(r'\.pragma\s*"[^"]*(?:nounroll|unroll)')
_DECLARATION = re.compile(r"\.(?:reg|shared|local|param|const|global)\b")
_PRIVATE = frozenset({Space.PARAM, Space.CONST, Space.LOCAL})


@dataclass(slots=True)
class _Block:
    """A nested `{ }`. `works`: something in it does more than poll a barrier."""

    outer: _Block | None
    works: bool = False


@dataclass(frozen=True, slots=True)
class _Boundary:
    """A line start in a gap. `cost`: 0 in the open; +1 before declarations, +2 in a nested scope, +4 inside asm."""

    offset: int
    cost: int
    labels_before: int
    block: _Block | None


@dataclass(frozen=True, slots=True)
class _Gap:
    boundaries: tuple[_Boundary, ...]
    labels: int


class Layout:
    """Insertion points of one function."""

    def __init__(self, file: PtxFile, function: Function) -> None:
        self._file = file
        self._text = file.text
        self._instructions = function.instructions
        self._end = function.body_end if function.body_end is not None else function.end
        self._start = (function.body_start or 0) + 1
        # What encloses the end of gap k's predecessor: scope and whether an asm block is open.
        self._enclosing: list[tuple[_Block | None, bool]] = []
        self._gaps: dict[int, _Gap] = {}
        self._walk()

    def before(self, index: int) -> int | None:
        """Line (from 1) before which a new line runs immediately before instruction `index`; None if there is none."""
        best: _Boundary | None = None
        while True:
            gap = self._gap(index)
            best = _better(best, (b for b in gap.boundaries if b.labels_before == gap.labels))
            if (best is not None and best.cost == 0) or gap.labels or index == 0:
                break
            if not transparent(self._instructions[index - 1]):
                break
            index -= 1
        return self._line(best)

    def after(self, index: int) -> int | None:
        """Line before which a new line runs right after instruction `index`, only when it falls through; or None."""
        best: _Boundary | None = None
        first = self._instructions[index]
        if first.guard is None and lookup(first.opcode).flow not in (Flow.NEXT, Flow.CALL):
            return None  # it never falls through
        while True:
            gap = self._gap(index + 1)
            best = _better(best, (b for b in gap.boundaries if b.labels_before == 0))
            if (best is not None and best.cost == 0) or gap.labels or index + 1 >= len(self._instructions):
                break
            if not transparent(self._instructions[index + 1]):
                break
            index += 1
        return self._line(best)

    def _line(self, boundary: _Boundary | None) -> int | None:
        return None if boundary is None else self._file.position(boundary.offset)[0]

    def _span(self, k: int) -> tuple[int, int]:
        """Gap `k` lies before instruction `k`; the last one ends at the closing brace of the body."""
        start = self._instructions[k - 1].end if k else self._start
        return start, self._instructions[k].start if k < len(self._instructions) else self._end

    def _walk(self) -> None:
        """Finds the enclosing scope and asm block of every instruction."""
        block: _Block | None = None
        asm = False
        for k in range(len(self._instructions) + 1):
            self._enclosing.append((block, asm))
            start, end = self._span(k)
            for name, token, _ in self._tokens(start, end):
                block, asm = _enter(name, token, block, asm)
            if k == len(self._instructions) or block is None:
                continue
            effect = lookup(self._instructions[k].opcode)
            outer: _Block | None = block if _does_work(effect) else None
            while outer is not None and not outer.works:
                outer.works = True
                outer = outer.outer

    def _tokens(self, start: int, end: int) -> Iterator[tuple[str, str, int]]:
        text = self._text
        if text[start:end].isspace() or start >= end:
            return
        for match in _TOKEN.finditer(text, start, end):
            yield match.lastgroup or "other", match.group(), match.end()

    def _gap(self, k: int) -> _Gap:
        known = self._gaps.get(k)
        if known is None:
            known = self._gaps[k] = self._read_gap(k)
        return known

    def _read_gap(self, k: int) -> _Gap:
        start, end = self._span(k)
        block, asm = self._enclosing[k]
        found: list[_Boundary] = []
        labels = 0
        for match in _TOKEN.finditer(self._text, start, end):
            name, token = match.lastgroup or "other", match.group()
            if name == "blank":
                cost = 2 * (block is not None) + 4 * asm
                found += (
                    _Boundary(match.start() + at + 1, cost, labels, block) for at, c in enumerate(token) if c == "\n"
                )
                continue
            if name == "label" or (name == "directive" and labels and _LOOP_PRAGMA.match(token)):
                labels += 1
            if name == "directive" and _DECLARATION.match(token):
                found = [replace(b, cost=b.cost | 1) if b.block is block else b for b in found]
            block, asm = _enter(name, token, block, asm)
        legal = tuple(b for b in found if b.block is None or b.block.works)
        return _Gap(legal, labels)


def _enter(name: str, token: str, block: _Block | None, asm: bool) -> tuple[_Block | None, bool]:
    """Scope and asm state after a token of a gap."""
    if name == "open":
        return _Block(block), asm
    if name == "close":
        return (block.outer if block is not None else None), asm
    if name == "comment" and _BEGIN_ASM in token:
        return block, True
    if name == "comment" and _END_ASM in token:
        return block, False
    return block, asm


def _better(best: _Boundary | None, more: Iterator[_Boundary]) -> _Boundary | None:
    """The cheapest boundary; among equals the earliest of the gap that was looked at first."""
    for boundary in more:
        if best is None or boundary.cost < best.cost:
            best = boundary
    return best


def _does_work(effect: Effect) -> bool:
    if effect.sync is not None:
        return effect.sync.kind is not SyncKind.MBARRIER_WAIT
    return effect.relevant


def transparent(instruction: Instruction) -> bool:
    """Whether a fence before the instruction and one after it are the same: no shared or global access, no order."""
    effect = lookup(instruction.opcode)
    if effect.flow is not Flow.NEXT or effect.knowledge is Knowledge.UNKNOWN:
        return False
    if effect.fences or effect.sync or effect.group:
        return False
    return all(access.space in _PRIVATE for access in effect.accesses)


@lru_cache(maxsize=4)
def layout(file: PtxFile, function: Function) -> Layout:
    """The layout of a function, kept for the next question."""
    return Layout(file, function)
