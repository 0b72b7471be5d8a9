"""What `parse` returns: a file of one or more modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ptxfence.errors import PtxSyntaxError
from ptxfence.grammar.function import Function
from ptxfence.grammar.lines import Lines
from ptxfence.grammar.model import Variable

MAX_ERRORS = 20


class Module:
    """One `.version` header and what follows it, `[start, end)`.

    `version` is `8.7`, `target` is `sm_90a`, `targets` are all options of `.target`. `files` is the `.file` table.
    `globals` are the variables declared outside functions, `declarations` and `sections`
    the spans of those declarations and of the data in `.section`.
    """

    def __init__(self, version: str, start: int) -> None:
        self.version = version
        self.start = start
        self.end = start
        self.targets: tuple[str, ...] = ()
        self.address_size = 64
        self.functions: tuple[Function, ...] = ()
        self.globals: dict[str, Variable] = {}
        self.declarations: list[tuple[int, int]] = []
        self.sections: list[tuple[int, int]] = []
        self.files: dict[int, str] = {}

    @property
    def target(self) -> str:
        return self.targets[0] if self.targets else ""

    @cached_property
    def repeated(self) -> frozenset[str]:
        """Names of variables that more than one function declares, or a function and the module."""
        count = Counter(self.globals.keys())
        count.update(name for function in self.functions if function.has_body for name in function.body.statics)
        return frozenset(name for name, number in count.items() if number > 1)

    @cached_property
    def variables(self) -> Mapping[str, Variable]:
        """Variables of the module and those that function bodies declare, by unique name."""
        found = dict(self.globals)
        for function in self.functions:
            for name, variable in function.variables.items():
                found.setdefault(name, variable)
        return found


@dataclass(eq=False)
class PtxFile:
    """A file as it was read; `text` is the input itself."""

    text: str
    filename: str
    modules: tuple[Module, ...]
    lines: Lines
    structure_errors: tuple[PtxSyntaxError, ...] = ()

    @cached_property
    def errors(self) -> tuple[PtxSyntaxError, ...]:
        """Syntax errors in text order, at most 20. Splits every body; operands are left to `validate`."""
        found = list(self.structure_errors)
        for module in self.modules:
            for function in module.functions:
                found.extend(function.errors)
        return tuple(sorted(found, key=lambda error: (error.line, error.column))[:MAX_ERRORS])

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (from 1) of a character of `text`."""
        return self.lines.position(offset)

    def line_text(self, line: int) -> str:
        """A line (from 1) without its line end."""
        return self.lines.line_text(line)
