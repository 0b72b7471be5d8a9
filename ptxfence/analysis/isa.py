"""The instruction table: from opcode text to `Effect`, and to `Op` for the value analysis.

`lookup` answers from the opcode alone and is what a scan over every instruction calls; its operand positions are
those of the form without optional operands. `effect` resolves positions with the operands at hand and is what an
analysis of one instruction calls. Both are memoised and never fail: an opcode that the table does not hold, or one
with a qualifier that its row does not take, is `Knowledge.UNKNOWN`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxfence.analysis import isa_rows_async, isa_rows_generic, isa_rows_sync
from ptxfence.analysis.effects import BytesOf, Effect, Flow, Knowledge, Matrix
from ptxfence.analysis.isa_form import Form, Row
from ptxfence.analysis.isa_operations import Op, operation
from ptxfence.analysis.isa_rows_silent import OUTSIDE, SILENT
from ptxfence.grammar.model import Operand

__all__ = ["OUTSIDE", "ROWS", "SILENT", "Op", "effect", "lookup", "operation"]

Kinds = tuple[type[Operand], ...]

ROWS: tuple[Row, ...] = (*isa_rows_generic.ROWS, *isa_rows_async.ROWS, *isa_rows_sync.ROWS)

_rows = {row.name: row for row in ROWS}
_longest = max(name.count(".") for name in (*_rows, *SILENT)) + 1
_lookups: dict[str, Effect] = {}
_effects: dict[tuple[str, Kinds], Effect] = {}


def lookup(opcode: str) -> Effect:
    """What `opcode` (dotted text without white space or guard) does, operands not looked at."""
    found = _lookups.get(opcode)
    if found is None:
        found = _lookups[opcode] = _build(opcode, None)
    return found


def effect(opcode: str, operands: Sequence[Operand]) -> Effect:
    """What the instruction does, every position resolved for these operands.

    Only the number and the kinds of the operands matter. A memory operand that is missing makes the
    instruction unknown.
    """
    kinds: Kinds = tuple([type(operand) for operand in operands])
    key = (opcode, kinds)
    found = _effects.get(key)
    if found is None:
        found = _effects[key] = _build(opcode, kinds)
    return found


def _build(opcode: str, kinds: Kinds | None) -> Effect:
    parts = opcode.split(".")
    if any(opcode == name or opcode.startswith(f"{name}.") for name in OUTSIDE):
        return _unknown(opcode)
    for length in range(min(_longest, len(parts)), 0, -1):
        name = ".".join(parts[:length])
        if name in SILENT:
            return Effect(opcode, name, Knowledge.IRRELEVANT)
        row = _rows.get(name)
        if row is not None:
            return _apply(row, Form(opcode, name, tuple(parts[length:]), kinds))
    return _unknown(opcode)


def _apply(row: Row, form: Form) -> Effect:
    built = row.build(form) if form.qualifiers <= row.words else None
    if built is None or (form.kinds is not None and _last(built) >= len(form.kinds)):
        return _unknown(form.opcode)
    return built


def _unknown(opcode: str) -> Effect:
    return Effect(opcode, "", Knowledge.UNKNOWN)


def _last(built: Effect) -> int:
    """The largest operand position that the effect names, -1 for none."""
    positions = [-1]
    for access in built.accesses:
        positions += [access.operand, access.mbarrier or 0, access.value or 0]
        if isinstance(access.footprint, BytesOf):
            positions.append(access.footprint.operand)
        elif isinstance(access.footprint, Matrix):
            positions += [access.footprint.idesc or 0, access.footprint.mn_major or 0]
    for fence in built.fences:
        positions.append(-1 if fence.address is None else fence.address)
    sync = built.sync
    if sync is not None:
        named = (sync.address, sync.barrier, sync.count, sync.tx, sync.result, sync.parity)
        positions += [position for position in named if position is not None]
    if built.group is not None and built.group.pending is not None:
        positions.append(built.group.pending)
    if built.flow in (Flow.BRANCH, Flow.INDEXED, Flow.CALL):
        positions.append(0)
    return max(positions)
