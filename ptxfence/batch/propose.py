"""Turns what the analysis says of a missing fence, an instruction and a form, into a line to insert."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from ptxfence.analysis.effects import Flow
from ptxfence.analysis.inline import Inlined
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.report import Edit, Finding
from ptxfence.grammar import Function, Module, PtxFile
from ptxfence.rewrite.edits import insertion_point


def propose(file: PtxFile, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings with the edit that repairs each; `fix` stays None where no fence or no line does."""
    kernels = {f.name: (module, f) for module in file.modules for f in module.functions if f.has_body}
    starts: dict[str, _Origins] = {}
    proposed: list[Finding] = []
    for finding in findings:
        if finding.anchor is None or finding.fence is None or finding.kernel not in kernels:
            proposed.append(finding)
            continue
        if finding.kernel not in starts:
            starts[finding.kernel] = _Origins(*kernels[finding.kernel])
        function, index = starts[finding.kernel].of(finding.anchor)
        line = insertion_point(file, function, index)
        fix = None if line is None else (Edit(line, finding.fence, (finding.rule,)),)
        proposed.append(replace(finding, fix=fix))
    return tuple(proposed)


class _Origins:
    """Where the analysed instructions of a kernel stand in the text; calls are analysed inlined."""

    def __init__(self, module: Module, kernel: Function) -> None:
        self._kernel = kernel
        self._inlined: Inlined | None = None
        if any(lookup(instruction.opcode).flow is Flow.CALL for instruction in kernel.instructions):
            self._inlined = Inlined(module, kernel)
            self._places = sorted(_places(module), key=lambda place: place[0])

    def of(self, index: int) -> tuple[Function, int]:
        """The function and the number in it of analysed instruction `index`."""
        if self._inlined is None:
            return self._kernel, index
        start = self._inlined.instructions[index].start
        _, function, number = self._places[bisect_right(self._places, start, key=lambda place: place[0]) - 1]
        return function, number


def _places(module: Module) -> Iterator[tuple[int, Function, int]]:
    for function in module.functions:
        if function.has_body:
            for instruction in function.instructions:
                yield instruction.start, function, instruction.index
