"""One instruction: a span, an opcode, and operands that are parsed when somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxfence.grammar.model import Operand

if TYPE_CHECKING:
    from ptxfence.grammar.body import Body


class Instruction:
    """`@p op operands;`. The span `[start, end)` runs from the guard through the `;`.

    `index` counts from 0 in its function. `opcode` is the dotted text without white space. `guard` is the resolved
    register name. `scope` numbers the `{ }` it stands in, 0 for the function body itself. `operand_start` is the
    offset of `operand_text`.
    """

    __slots__ = (
        "_body",
        "_operands",
        "end",
        "guard",
        "guard_negated",
        "index",
        "opcode",
        "operand_start",
        "scope",
        "start",
    )

    def __init__(
        self,
        index: int,
        start: int,
        end: int,
        opcode: str,
        operand_start: int,
        scope: int,
        guard: str | None,
        negated: bool,
        body: Body,
    ) -> None:
        self.index = index
        self.start = start
        self.end = end
        self.opcode = opcode
        self.guard = guard
        self.guard_negated = negated
        self.scope = scope
        self.operand_start = operand_start
        self._body = body
        self._operands: tuple[Operand, ...] | None = None

    @property
    def operand_text(self) -> str:
        """What stands between opcode and `;`, verbatim."""
        return self._body.text[self.operand_start : self.end - 1]

    @property
    def source(self) -> str:
        """The text of the file, which `start`, `operand_start` and `end` count in."""
        return self._body.text

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Parsed operands, the guard left out. Raises PtxSyntaxError for text that is no operand list."""
        if self._operands is None:
            self._operands = self._body.operands_at(self.operand_start, self.end - 1, self.scope)
        return self._operands

    @property
    def text(self) -> str:
        """The whole instruction, verbatim."""
        return self._body.text[self.start : self.end]

    def __repr__(self) -> str:
        return f"<{self.index}: {self.text}>"
