"""What a picture shows of a kernel: its blocks with the instructions that matter to proxies, and how they follow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import Effect, FenceKind, Mode, Proxy, Role, Space
from ptxfence.analysis.isa import lookup
from ptxfence.grammar import Function, Instruction, PtxFile

_PRIVATE = (Space.LOCAL, Space.PARAM, Space.CONST)
_MANY = 250  # blocks; above that, blocks with ordinary accesses only are left out


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction, or `count` alike in a row from `line` to `last`.

    `kind` is `generic read`, `generic write`, `async read`, `async write`, `fence`, `other fence`, `sync` or
    `completion`.
    """

    line: int
    last: int
    kind: str
    text: str
    count: int = 1

    def holds(self, line: int) -> bool:
        return self.line <= line <= self.last


@dataclass(frozen=True, slots=True)
class Node:
    """A block. `index` is its number in reverse post-order, `loops` the number of loops around it."""

    index: int
    label: str
    rows: tuple[Row, ...]
    loops: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Blocks in reverse post-order and edges between their indices; an edge to a lower index closes a loop."""

    nodes: tuple[Node, ...]
    edges: tuple[tuple[int, int], ...]


def graph_of(file: PtxFile, function: Function, lines: Collection[int] = ()) -> Graph:
    """The graph of a function. Instructions on `lines` keep a row of their own."""
    cfg = Cfg(function)
    names: dict[int, str] = {}
    for name, at in function.labels.items():
        names.setdefault(at, name)
    depth = [sum(block in loop.blocks for loop in cfg.loops) for block in range(len(cfg.blocks))]
    nodes: list[Node] = []
    for number, block in enumerate(cfg.order):
        bounds = cfg.blocks[block]
        rows = _merged(_rows(file, function.instructions[bounds.start : bounds.end]), set(lines))
        nodes.append(Node(number, names.get(bounds.start, ""), tuple(rows), depth[block]))
    number_of = {block: number for number, block in enumerate(cfg.order)}
    edges = {(number_of[a], number_of[b]) for a in cfg.order for b in cfg.succs[a] if b in number_of}
    return _contracted(nodes, edges)


def _rows(file: PtxFile, instructions: Sequence[Instruction]) -> Iterator[Row]:
    for instruction in instructions:
        effect = lookup(instruction.opcode)
        kind = _kind(effect) if effect.relevant else ""
        if kind:
            line = file.position(instruction.start)[0]
            guard = f"@{'!' if instruction.guard_negated else ''}{instruction.guard} " if instruction.guard else ""
            yield Row(line, line, kind, guard + instruction.opcode)


def _kind(effect: Effect) -> str:
    if effect.fences:
        proxies = {FenceKind.ASYNC, FenceKind.TENSORMAP}
        return "fence" if any(fence.kind in proxies for fence in effect.fences) else "other fence"
    data = [a for a in effect.accesses if a.role is not Role.MBARRIER and a.space not in _PRIVATE]
    for access in data:
        if access.proxy is Proxy.ASYNC:
            writes = any(a.proxy is Proxy.ASYNC and a.mode & Mode.WRITE and a.space is not Space.GLOBAL for a in data)
            return "async write" if writes else "async read"
    if effect.sync:
        return "sync"
    if effect.group:
        return "completion"
    shared = [access for access in data if access.space is not Space.GLOBAL]
    if not shared:
        return ""
    return "generic write" if any(access.mode & Mode.WRITE for access in shared) else "generic read"


def _merged(rows: Iterator[Row], alone: set[int]) -> Iterator[Row]:
    """Runs of like instructions as one row; those that a finding speaks of stand alone."""
    held: Row | None = None
    for row in rows:
        like = held is not None and (held.kind, held.text) == (row.kind, row.text)
        if held is not None and like and row.line not in alone and not alone & {held.line, held.last}:
            held = replace(held, last=row.line, count=held.count + 1)
            continue
        if held is not None:
            yield held
        held = row
    if held is not None:
        yield held


def _contracted(nodes: list[Node], edges: set[tuple[int, int]]) -> Graph:
    """Without the blocks that have nothing to show; what came before them leads to what comes after."""
    kept = {node.index for node in nodes if node.rows}
    if len(kept) > _MANY:
        kept = {n.index for n in nodes if any(not row.kind.startswith("generic") for row in n.rows)}
    follow: dict[int, set[int]] = {node.index: set() for node in nodes}
    for a, b in edges:
        follow[a].add(b)
    result = {(start, end) for start in kept for end in _next_kept(start, follow, kept)}
    return Graph(tuple(node for node in nodes if node.index in kept), tuple(sorted(result)))


def _next_kept(start: int, follow: dict[int, set[int]], kept: set[int]) -> set[int]:
    seen: set[int] = set()
    found: set[int] = set()
    stack = list(follow[start])
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in kept:
            found.add(node)
        else:
            stack.extend(follow[node])
    return found
