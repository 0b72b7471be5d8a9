"""`ptxfence show --addresses`: which bytes each instruction touches, and who shares them.

`rows` computes the facts of one function, `render` makes text and `as_json` plain data of a file's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.conditions import ThreadSet
from ptxfence.analysis.effects import Access, Mode, Role, Space
from ptxfence.analysis.isa import effect, lookup
from ptxfence.analysis.overlaps import classes
from ptxfence.analysis.region import Region
from ptxfence.analysis.values import Values
from ptxfence.grammar import Function, Module, PtxFile

SHARED = (Space.CTA, Space.CLUSTER)
MODES = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.BOTH: "reads and writes"}
Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Row:
    """One access of one instruction. `reason` says why its bytes are not bounded, empty if they are."""

    index: int
    line: int
    opcode: str
    access: Access
    region: Region
    threads: ThreadSet
    reason: str


def rows(file: PtxFile, module: Module, function: Function) -> list[Row]:
    """Every access of a function to shared memory, in text order."""
    return list(_rows(file, function, Values(function, Cfg(function), module)))


def _rows(file: PtxFile, function: Function, values: Values) -> Iterator[Row]:
    for instruction in function.instructions:
        if not lookup(instruction.opcode).relevant:
            continue
        for access in effect(instruction.opcode, instruction.operands).accesses:
            if access.space not in (*SHARED, Space.ANY):
                continue
            region = values.region(instruction.index, access)
            if region.space not in (*SHARED, Space.ANY):
                continue
            lost = values.unresolved(instruction.index, access)
            reason = f"{lost[1]} (instruction {lost[0]})" if lost else ""
            line = file.position(instruction.start)[0]
            threads = values.threads(instruction.index)
            yield Row(instruction.index, line, instruction.opcode, access, region, threads, reason)


def bytes_text(region: Region) -> str:
    """`smem[1024, 9216)`, with slots as `+k*8192 (2048 each)`; `?` where nothing is known."""
    if region.base is None:
        return "?"
    peer = " of a peer CTA" if region.peer else ""
    if region.lo is None or region.hi is None:
        return f"{region.base.name}[{'?' if region.lo is None else region.lo}, ?){peer}"
    slots = f" in slots of {region.span or region.width} every {region.step}" if region.step else ""
    return f"{region.base.name}[{region.lo}, {region.hi}){slots}{peer}"


def threads_text(threads: ThreadSet) -> str:
    """`tid.x in [0, 32), elect`; `all threads` for an empty set."""
    parts: list[str] = []
    for atom in sorted(threads, key=lambda a: a.key):
        if not atom.varies:
            continue
        if (atom.lo, atom.hi, atom.negated) == (1, 2, False):
            parts.append(atom.key)
        else:
            parts.append(f"{atom.key} {'not in' if atom.negated else 'in'} [{atom.lo}, {atom.hi})")
    return ", ".join(parts) or "all threads"


def _classes(found: list[Row]) -> list[list[Row]]:
    groups = [[found[i] for i in group] for group in classes([row.region for row in found])]
    return sorted(groups, key=lambda g: (g[0].region.base is None, min(r.region.lo or 0 for r in g)))


def _bodies(file: PtxFile) -> Iterator[tuple[Function, list[Row]]]:
    for module in file.modules:
        for function in module.functions:
            if function.has_body:
                yield function, rows(file, module, function)


def render(file: PtxFile) -> str:
    """Every function's accesses as text, then its alias classes."""
    lines: list[str] = []
    for function, found in _bodies(file):
        lines.append(f"{function.name}: {len(found)} accesses to shared memory")
        for row in found:
            use = "" if row.access.role is Role.DATA else f" ({row.access.role.value})"
            what = f"{row.access.proxy.value} {MODES[row.access.mode]}{use}"
            lines.append(f"  {row.line:6d}  {row.opcode}: {what} {bytes_text(row.region)}; {threads_text(row.threads)}")
            if row.reason:
                lines.append(f"          {row.reason}")
        for number, group in enumerate(_classes(found)):
            lines.append(f"  class {number}: {_extent(group)}: {_users(group)}")
    return "\n".join(lines)


def _extent(group: list[Row]) -> str:
    base = group[0].region.base
    if base is None:
        return "?"
    bounds = [(r.region.lo, r.region.hi) for r in group]
    lo = min((b[0] for b in bounds if b[0] is not None), default=0)
    hi = "?" if any(b[1] is None for b in bounds) else max(b[1] for b in bounds if b[1] is not None)
    return f"{base.name}[{lo}, {hi})"


def _users(group: list[Row]) -> str:
    uses: dict[str, list[int]] = {}
    for row in group:
        uses.setdefault(f"{row.access.proxy.value} {MODES[row.access.mode]}", []).append(row.line)
    return "; ".join(f"{use} at lines {', '.join(map(str, dict.fromkeys(at)))}" for use, at in uses.items())


def as_json(file: PtxFile) -> Json:
    """The same as plain data: per function `accesses` and `classes` (positions in `accesses`)."""
    functions: list[Json] = []
    for function, found in _bodies(file):
        accesses = [_row_json(row) for row in found]
        groups = classes([row.region for row in found])
        functions.append({"name": function.name, "accesses": accesses, "classes": groups})
    return {"functions": functions}


def _row_json(row: Row) -> Json:
    region = row.region
    return {
        "index": row.index,
        "line": row.line,
        "opcode": row.opcode,
        "operand": row.access.operand,
        "proxy": row.access.proxy.value,
        "reads": bool(row.access.mode & Mode.READ),
        "writes": bool(row.access.mode & Mode.WRITE),
        "role": row.access.role.value,
        "base": region.base.name if region.base else None,
        "lo": region.lo,
        "hi": region.hi,
        "step": region.step,
        "slot": region.span or region.width if region.step else 0,
        "exact": region.exact,
        "peer": region.peer,
        "bounded_by": region.bounded_by,
        "threads": threads_text(row.threads),
        "reason": row.reason,
    }
