"""Syntax errors that show only when operands are parsed and names are looked up."""

from __future__ import annotations

from ptxfence.errors import PtxSyntaxError
from ptxfence.grammar.function import Function
from ptxfence.grammar.module import MAX_ERRORS, PtxFile
from ptxfence.grammar.shapes import refusal


def validate(file: PtxFile) -> tuple[PtxSyntaxError, ...]:
    """`file.errors` and those in operands, in text order, at most 20.

    Every distinct shape goes through the grammar once for the life of the process; no operands are built.
    """
    found = list(file.errors)
    for module in file.modules:
        for function in module.functions:
            _operands(file, function, found)
            if len(found) >= MAX_ERRORS:
                break
    return tuple(sorted(found, key=lambda error: (error.line, error.column))[:MAX_ERRORS])


def _operands(file: PtxFile, function: Function, found: list[PtxSyntaxError]) -> None:
    for instruction in function.instructions:
        error = refusal(instruction.operand_text)
        if error is not None:
            found.append(file.lines.error(error.message, instruction.operand_start + error.offset))
            if len(found) >= MAX_ERRORS:
                return
