"""Control-flow graph of one function: basic blocks, reverse post-order, dominators, natural loops.

The graph library of the project (networkx) is not used here: its import alone costs more than the time
allowed for a cold `check`, and these algorithms are short. Dominators: Cooper, Harvey, Kennedy, "A simple,
fast dominance algorithm" (2001). Everything is iterative, so depth of the program is no limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ptxfence.analysis.effects import Effect, Flow
from ptxfence.analysis.inline import Copy, Routine
from ptxfence.analysis.isa import lookup
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.model import Symbol


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions `[start, end)`."""

    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop; `blocks` includes the header. Loops that share a header are one."""

    header: int
    blocks: frozenset[int]
    latches: tuple[int, ...]


class Cfg:
    """Control flow of `function`. `unresolved` names branches with unknown targets; `home` is the block of each
    instruction."""

    def __init__(self, function: Routine) -> None:
        self.function = function
        self.instructions = function.instructions
        self.unresolved: list[int] = []
        self._beyond: dict[int, set[int]] = {}
        starts = self._leaders()
        ends = [*starts[1:], len(self.instructions)]
        self.blocks = tuple(Block(i, s, e) for i, (s, e) in enumerate(zip(starts, ends, strict=True)))
        self.home = [block.index for block in self.blocks for _ in range(block.start, block.end)]
        self.succs: list[tuple[int, ...]] = [self._successors(block) for block in self.blocks]
        preds: list[list[int]] = [[] for _ in self.blocks]
        for block, targets in enumerate(self.succs):
            for target in targets:
                preds[target].append(block)
        self.preds: list[tuple[int, ...]] = [tuple(p) for p in preds]

    def _leaders(self) -> list[int]:
        starts = {0, *self.function.labels.values()}
        leaving = {code for code in self.opcodes if lookup(code).flow not in (Flow.NEXT, Flow.CALL)}
        starts.update([i.index + 1 for i in self.instructions if i.opcode in leaving])
        starts.discard(len(self.instructions))
        return sorted(starts) if self.instructions else []

    def block_of(self, index: int) -> int:
        """The block that holds instruction `index`."""
        return self.home[index]

    def _target(self, label: str) -> int | None:
        index = self.function.labels.get(label)
        if index is None or index >= len(self.instructions):
            return None
        return self.block_of(index)

    def branch_targets(self, instruction: Instruction | Copy) -> tuple[str, ...]:
        """Labels that a branch may jump to."""
        effect: Effect = lookup(instruction.opcode)
        operands = instruction.operands
        if effect.flow is Flow.BRANCH and operands and isinstance(operands[0], Symbol):
            return (operands[0].name,)
        if effect.flow is Flow.INDEXED and len(operands) > 1 and isinstance(operands[1], Symbol):
            return self.function.targets.get(operands[1].name, ())
        return ()

    def _successors(self, block: Block) -> tuple[int, ...]:
        last = self.instructions[block.end - 1]
        flow = lookup(last.opcode).flow
        follow = (block.index + 1,) if block.index + 1 < len(self.blocks) else ()
        if flow in (Flow.NEXT, Flow.CALL):
            return follow
        if flow is Flow.EXIT:
            return follow if last.guard else ()
        labels = self.branch_targets(last)
        if not labels:
            self.unresolved.append(last.index)
        targets = tuple(t for label in labels if (t := self._target(label)) is not None)
        if last.guard:
            targets += follow
        return tuple(dict.fromkeys(targets))

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """The distinct opcodes of the function."""
        return frozenset([instruction.opcode for instruction in self.instructions])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Reachable blocks in reverse post-order."""
        if not self.blocks:
            return ()
        seen = {0}
        post: list[int] = []
        stack = [(0, iter(self.succs[0]))]
        while stack:
            block, successors = stack[-1]
            for successor in successors:
                if successor not in seen:
                    seen.add(successor)
                    stack.append((successor, iter(self.succs[successor])))
                    break
            else:
                post.append(block)
                stack.pop()
        return tuple(reversed(post))

    @cached_property
    def rank(self) -> dict[int, int]:
        """Position of each reachable block in `order`."""
        return {block: i for i, block in enumerate(self.order)}

    @cached_property
    def idom(self) -> dict[int, int]:
        """Immediate dominator of each reachable block; the entry dominates itself."""
        rank, idom = self.rank, {0: 0}
        changed = True
        while changed:
            changed = False
            for block in self.order[1:]:
                known = [p for p in self.preds[block] if p in idom]
                new = known[0]
                for other in known[1:]:
                    new = _meet(new, other, idom, rank)
                if idom.get(block) != new:
                    idom[block] = new
                    changed = True
        return idom

    @cached_property
    def _interval(self) -> dict[int, tuple[int, int]]:
        children: dict[int, list[int]] = {}
        for block, parent in self.idom.items():
            if block != parent:
                children.setdefault(parent, []).append(block)
        result: dict[int, tuple[int, int]] = {}
        clock = 0
        stack: list[tuple[int, int]] = [(0, -1)] if self.blocks else []
        while stack:
            block, entered = stack.pop()
            if entered >= 0:
                result[block] = (entered, clock)
                continue
            stack.append((block, clock))
            clock += 1
            stack.extend((child, -1) for child in children.get(block, ()))
        return result

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path from the entry to block `b` passes block `a` (both reachable)."""
        interval = self._interval
        if a not in interval or b not in interval:
            return False
        return interval[a][0] <= interval[b][0] and interval[b][1] <= interval[a][1]

    def leads(self, source: int, target: int) -> bool:
        """Whether control flow can come from after instruction `source` to instruction `target`."""
        here, there = self.home[source], self.home[target]
        mine = self.loops_of.get(here, ())
        if (here == there and target > source) or not set(mine).isdisjoint(self.loops_of.get(there, ())):
            return True
        whole = max(mine, key=lambda number: len(self.loops[number].blocks), default=None)
        start = here if whole is None else self.loops[whole].header  # comes to what all of the loop comes to
        if start not in self._beyond:
            seen: set[int] = set()
            work = list(self.succs[start])
            while work:
                block = work.pop()
                if block not in seen:
                    seen.add(block)
                    work.extend(self.succs[block])
            self._beyond[start] = seen
        return there in self._beyond[start]

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Natural loops, outermost first."""
        latches: dict[int, list[int]] = {}
        for block in self.order:
            for successor in self.succs[block]:
                if self.dominates(successor, block):
                    latches.setdefault(successor, []).append(block)
        found = [Loop(h, self._loop_body(h, ls), tuple(ls)) for h, ls in latches.items()]
        return tuple(sorted(found, key=lambda loop: -len(loop.blocks)))

    def _loop_body(self, header: int, latches: list[int]) -> frozenset[int]:
        body = {header}
        work = [b for b in latches if b != header]
        body.update(work)
        while work:
            for pred in self.preds[work.pop()]:
                if pred not in body and pred in self.rank:
                    body.add(pred)
                    work.append(pred)
        return frozenset(body)

    @cached_property
    def loops_of(self) -> dict[int, tuple[int, ...]]:
        """For each block the indices of the loops that hold it, outermost first."""
        result: dict[int, list[int]] = {block: [] for block in self.order}
        for number, loop in enumerate(self.loops):
            for block in loop.blocks:
                result[block].append(number)
        return {block: tuple(numbers) for block, numbers in result.items()}

    def depth(self, index: int) -> int:
        """Loop depth of instruction `index`."""
        return len(self.loops_of.get(self.block_of(index), ()))


def _meet(a: int, b: int, idom: dict[int, int], rank: dict[int, int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = idom[a]
        while rank[b] > rank[a]:
            b = idom[b]
    return a
