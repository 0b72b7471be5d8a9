"""Syntax errors that show only when operands, declarations and headers go through the grammar, and unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxfence.errors import PtxSyntaxError
from ptxfence.grammar.function import Function
from ptxfence.grammar.lexical import INTEGER, NAME
from ptxfence.grammar.module import MAX_ERRORS, Module, PtxFile
from ptxfence.grammar.names import outer_names, unknown_names
from ptxfence.grammar.sections import section_end
from ptxfence.grammar.shapes import refusal

# The operand lists that make up nearly all of a file: a subset of the grammar that needs no shape.
_PLAIN = rf"(?:{NAME}(?:\.[xyzw]\b)?|-?{INTEGER}(?![\w.]))"
_PLACE = rf"\[\s*+{NAME}\s*+(?:\+\s*+-?{INTEGER}\s*+)?\]"
_COMMON = rf"(?:{_PLAIN}|{_PLACE}|\{{\s?{_PLAIN}(?:, ?{_PLAIN})*+\s?\}}|!{NAME})"
FAST = re.compile(rf"\s*+(?:{_COMMON}(?:,\s*+{_COMMON})*+\s*+)?;", re.ASCII)


def validate(file: PtxFile) -> tuple[PtxSyntaxError, ...]:
    """`file.errors`, those in operands, declarations and headers, and uses of undeclared names; at most 20.

    In text order. Every distinct shape goes through the grammar once for the life of the process; no operands
    are built.
    """
    found = list(file.errors)
    if found:  # what follows a structural error would be reported many times over
        return tuple(found)
    for module in file.modules:
        for message, offset in _module(file, module):
            found.append(file.lines.error(message, offset))
            if len(found) >= MAX_ERRORS:
                return tuple(found)
    return tuple(sorted(found, key=lambda error: (error.line, error.column)))


def _module(file: PtxFile, module: Module) -> Iterator[tuple[str, int]]:
    for start, end in module.declarations:
        yield from _refused(file.text, start, end, "declaration")
    for start, end in module.sections:
        stop = section_end(file.text, start, end)
        if stop < end:
            yield "this is no data of a section", stop
    outer = outer_names(module)
    for function in module.functions:
        yield from _refused(file.text, *function.header_span, "header")
        refused = list(_operands(file, function))
        yield from refused
        if function.has_body and not refused:
            yield from unknown_names(outer, function.body)


def _operands(file: PtxFile, function: Function) -> Iterator[tuple[str, int]]:
    text = file.text
    fast = FAST.match
    for start, end, rule in function.body.checks:
        yield from _refused(text, start, end, rule)
    for instruction in function.instructions:
        start = instruction.operand_start
        if fast(text, start, instruction.end) is None:
            yield from _refused(text, start, instruction.end - 1, "operands")


def _refused(text: str, start: int, end: int, rule: str) -> Iterator[tuple[str, int]]:
    error = refusal(text[start:end], rule)
    if error is not None:
        yield error.message, start + error.offset
