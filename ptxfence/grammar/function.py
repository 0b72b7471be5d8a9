"""A `.entry` or `.func`: header at once, statements when somebody asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from ptxfence.errors import PtxSyntaxError
from ptxfence.grammar.body import Body
from ptxfence.grammar.declarations import variables
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.lexical import GAP, NAME, blank_comments
from ptxfence.grammar.lines import Lines
from ptxfence.grammar.locations import Locations
from ptxfence.grammar.model import FunctionKind, SourceLocation, Variable

_LIST = r"\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)"
HEADER = re.compile(rf"\.(entry|func)\b((?:{GAP}\.(?!param|reg)\w++)*+){GAP}({_LIST})?{GAP}({NAME}){GAP}({_LIST})?")
_DIRECTIVE = re.compile(r"\.(\w+)((?:[\s,]*+\d\w*+)*+)")


class Function:
    """`[start, end)` runs from the first linkage directive through `}` or `;`; `body_start` and `body_end` are
    the offsets of the braces, None for a declaration."""

    def __init__(self, lines: Lines, files: Mapping[int, str], span: tuple[int, int], header: re.Match[str]) -> None:
        self._lines = lines
        self._files = files
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
        return self._list(*self._parts[0])

    @cached_property
    def params(self) -> tuple[Variable, ...]:
        return self._list(*self._parts[1])

    def _list(self, start: int, end: int) -> tuple[Variable, ...]:
        found: list[Variable] = []
        at = start + 1
        for part in self._lines.text[at : max(at, end - 1)].split(","):
            found.extend(variables(self._lines.text, at, at + len(part), self.name))
            at += len(part) + 1
        return tuple(found)

    @cached_property
    def directives(self) -> Mapping[str, tuple[int, ...]]:
        """Performance directives of the header (PTX ISA 11.4): `.reqntid 128, 1, 1` -> "reqntid": (128, 1, 1)."""
        end = self.body_start if self.body_start is not None else self.end
        text = blank_comments(self._lines.text[self._header_end : end])
        return {
            match[1]: tuple(int(number, 0) for number in re.findall(r"\d\w*", match[2]))
            for match in _DIRECTIVE.finditer(re.sub(r'"[^"]*"', "", text))
        }

    @cached_property
    def _body(self) -> Body:
        start, end = (self.body_start, self.body_end) if self.body_start is not None else (self.end, self.end)
        return Body(self._lines, start + 1 if self.has_body else start, end or start, self.name, self.returns + self.params)

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
    def errors(self) -> tuple[PtxSyntaxError, ...]:
        """Syntax errors among the statements; operands are looked at by `validate`."""
        return tuple(self._body.errors)

    @cached_property
    def _locations(self) -> Locations:
        return Locations(self._lines.text, self.body_start or 0, self.body_end or 0, self._files)

    def source_at(self, index: int) -> SourceLocation | None:
        """The `.loc` in force at instruction `index`; None where there is none."""
        return self._locations.at(self.instructions[index].start)

    def inline_chain(self, index: int) -> tuple[SourceLocation, ...]:
        """`source_at(index)` and the calls it was inlined through, innermost first."""
        return self._locations.chain(self.instructions[index].start)
