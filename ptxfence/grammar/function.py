"""A `.entry` or `.func`: header at once, statements when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ptxfence.errors import PtxSyntaxError
from ptxfence.grammar.body import Body
from ptxfence.grammar.declarations import parameters, variable
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.lexical import GAP, INTEGER, NAME, blank_comments, integer
from ptxfence.grammar.lines import Lines
from ptxfence.grammar.locations import Locations
from ptxfence.grammar.model import FunctionKind, SourceLocation, Variable

if TYPE_CHECKING:
    from ptxfence.grammar.module import Module

_LIST = r"\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)"
_ATTRIBUTE = rf"\.attribute{GAP}{_LIST}{GAP}"
HEADER = re.compile(rf"\.(entry|func)\b{GAP}((?:{_ATTRIBUTE})*+)({_LIST})?{GAP}({NAME}){GAP}({_LIST})?", re.ASCII)
_DIRECTIVE = re.compile(r"\.(\w+)((?:[\s,]*+\d\w*+)*+)", re.ASCII)


class Function:
    """`[start, end)` runs from the first linkage directive through `}` or `;`; `body_start` and `body_end` are
    the offsets of the braces, None for a declaration."""

    def __init__(self, lines: Lines, module: Module, span: tuple[int, int], header: re.Match[str]) -> None:
        self._lines = lines
        self._module = module
        self.start, self.end = span
        self.kind = FunctionKind(header[1])
        self.name: str = header[4]
        self._parts = (header.span(3), header.span(5))
        self._header_end = header.end()
        self.body_start: int | None = None
        self.body_end: int | None = None

    def __repr__(self) -> str:
        return f"<{self.kind.value} {self.name}>"

    @property
    def has_body(self) -> bool:
        return self.body_start is not None

    @cached_property
    def line(self) -> int:
        """Line of the header, from 1."""
        return self._lines.position(self.start)[0]

    @cached_property
    def returns(self) -> tuple[Variable, ...]:
        return tuple(variable(item, self.name) for item in parameters(self._lines.text, *self._parts[0]))

    @cached_property
    def params(self) -> tuple[Variable, ...]:
        return tuple(variable(item, self.name) for item in parameters(self._lines.text, *self._parts[1]))

    @cached_property
    def directives(self) -> Mapping[str, tuple[int, ...]]:
        """Performance directives of the header (PTX ISA 11.4): `.reqntid 128, 1, 1` -> "reqntid": (128, 1, 1)."""
        end = self.body_start if self.body_start is not None else self.end
        text = blank_comments(self._lines.text[self._header_end : end])
        return {
            match[1]: tuple(map(integer, re.findall(INTEGER, match[2], re.ASCII)))
            for match in _DIRECTIVE.finditer(re.sub(r'"[^"]*"', "", text))
        }

    @cached_property
    def _body(self) -> Body:
        start, end = self.end, self.end
        if self.body_start is not None and self.body_end is not None:
            start, end = self.body_start + 1, self.body_end
        outer = tuple(item for part in self._parts for item in parameters(self._lines.text, *part))
        return Body(self._lines, (start, end), self.name, outer, lambda: self._module.repeated)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(self._body.instructions)

    @property
    def labels(self) -> Mapping[str, int]:
        """Resolved label -> index of the instruction that follows (`len(instructions)` at the end)."""
        return self._body.labels

    @property
    def registers(self) -> Mapping[str, str]:
        """Resolved register -> type without its dot (`b32`, `pred`)."""
        return self._body.registers

    @property
    def variables(self) -> Mapping[str, Variable]:
        """Parameters and the variables that the body declares, by resolved name."""
        return self._body.variables

    @property
    def targets(self) -> Mapping[str, tuple[str, ...]]:
        """`.branchtargets` and `.calltargets`: label of the list -> resolved labels or function names."""
        return self._body.targets

    @property
    def prototypes(self) -> Mapping[str, str]:
        """`.callprototype`: label -> its text."""
        return self._body.prototypes

    @property
    def body(self) -> Body:
        """The statements, for `validate`."""
        return self._body

    @property
    def header_span(self) -> tuple[int, int]:
        """From the linkage directive up to `{` or `;`."""
        return self.start, self.end - 1 if self.body_start is None else self.body_start

    @property
    def errors(self) -> tuple[PtxSyntaxError, ...]:
        """Syntax errors among the statements; operands are looked at by `validate`."""
        return tuple(self._body.errors)

    @cached_property
    def _locations(self) -> Locations:
        return Locations(self._lines.text, self.body_start or 0, self.body_end or 0, self._module.files)

    def source_at(self, index: int) -> SourceLocation | None:
        """The `.loc` in force at instruction `index`; None where there is none."""
        return self._locations.at(self.instructions[index].start)

    def inline_chain(self, index: int) -> tuple[SourceLocation, ...]:
        """`source_at(index)` and the calls it was inlined through, innermost first."""
        return self._locations.chain(self.instructions[index].start)
