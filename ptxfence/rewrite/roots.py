"""The routines of a file that are analysed, and so patched, for themselves."""

from __future__ import annotations

from collections.abc import Iterator

from ptxfence.analysis.effects import Flow
from ptxfence.analysis.inline import Inlined, Routine
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.isa_calls import call_parts
from ptxfence.grammar import Function, Module, PtxFile
from ptxfence.grammar.model import FunctionKind


def roots(file: PtxFile) -> Iterator[tuple[Module, Function]]:
    """Kernels, and device functions that nothing in the file calls, in text order."""
    for module in file.modules:
        bodies = [function for function in module.functions if function.has_body]
        called = {call_parts(i.operands)[1] for f in bodies for i in f.instructions if _calls(i.opcode)}
        for function in bodies:
            if function.kind is FunctionKind.ENTRY or function.name not in called:
                yield module, function


def routine(module: Module, function: Function) -> Routine:
    """The function with the bodies of what it calls in place of the calls."""
    if any(_calls(instruction.opcode) for instruction in function.instructions):
        return Inlined(module, function)
    return function


def _calls(opcode: str) -> bool:
    return lookup(opcode).flow is Flow.CALL
