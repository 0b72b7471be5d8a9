"""The statements of one function body: instructions, labels, scopes, declarations."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from ptxfence.errors import PtxSyntaxError
from ptxfence.grammar import statements as kinds
from ptxfence.grammar.declarations import Declared, declared, variable
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.lexical import NAME, blank_comments
from ptxfence.grammar.lines import Lines
from ptxfence.grammar.model import Operand, Register, Symbol, Variable
from ptxfence.grammar.quick import quick
from ptxfence.grammar.scopes import RegisterTypes, Scope
from ptxfence.grammar.shapes import ShapeError, operands_of

_MAX_ERRORS = 20
_DEEPEST = 3_000  # ptxas 13.0 runs out of parser stack between 1,000 and 3,000
_NAMES = re.compile(NAME, re.ASCII)
_DECLARING = frozenset(
    (".reg", ".sreg", ".shared", ".global", ".const", ".local", ".param", ".tex", ".align", ".attribute")
)
_LISTS = frozenset((".branchtargets", ".calltargets", ".callprototype"))


class Body:
    """Statements of the inside of a function's braces, `span`.

    `repeated` gives the names of variables that other functions of the module declare too.

    `params` are the parameters of the header, the outermost names. `labels` maps a resolved label to the index
    of the instruction that follows it. `checks` are (start, end, grammar rule) of the parts that `validate` reads.
    """

    def __init__(
        self,
        lines: Lines,
        span: tuple[int, int],
        function: str,
        params: tuple[Declared, ...],
        repeated: Callable[[], frozenset[str]],
    ) -> None:
        self.lines = lines
        self.text = lines.text
        self.start, self.end = span
        self.repeated = repeated
        self.function = function
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.scopes: list[Scope] = [Scope(0, None)]
        self.declared: dict[str, Variable] = {}
        self.prototypes: dict[str, str] = {}
        self.errors: list[PtxSyntaxError] = []
        self.checks: list[tuple[int, int, str]] = []
        self._lists: dict[str, tuple[str, int, int]] = {}
        self._last_label = ""
        for param in params:
            if param.space == "reg":
                self.scopes[0].add_register(param.name, param.type)
                continue
            self.scopes[0].add_variable(param.name, param.name)
            self.declared[param.name] = variable(param, function)
        collecting = gc.isenabled()
        gc.disable()  # a million small live objects: collections in between find nothing and cost a third of the time
        try:
            self._split()
        finally:
            if collecting:
                gc.enable()

    def _split(self) -> None:
        """Hot loop: about 1.5 us a statement."""
        text = self.text
        instructions = self.instructions
        append = instructions.append
        opcodes = kinds.opcodes
        plain = kinds.INSTRUCTION
        scope = self.scopes[0]
        number = 0
        count = 0
        for match in kinds.STATEMENT.finditer(text, self.start, self.end):
            kind = match.lastindex
            if kind == plain:
                guard, raw = match.group(1, 2)
                start, rest = match.span(2)
                opcode = opcodes.get(raw) or kinds.opcode_of(raw)
                if guard is None:
                    append(Instruction(count, start, match.end(), opcode, rest, number, None, False, self))
                else:
                    start = match.start(1)
                    name, negated = self._guard(guard, scope, start)
                    append(Instruction(count, start, match.end(), opcode, rest, number, name, negated, self))
                count += 1
            elif kind is None:
                break
            elif kind == kinds.OPEN:
                scope = Scope(len(self.scopes), scope)
                if scope.depth > _DEEPEST:
                    return self._error("scopes are nested too deeply", match.start(kind))
                self.scopes.append(scope)
                number = scope.index
            elif kind == kinds.CLOSE:
                if scope.parent is None:
                    self._error("unexpected '}'", match.start(kind))
                else:
                    scope = scope.parent
                    number = scope.index
            elif kind == kinds.LABEL:
                self._label(match[5], match.start(5), scope)
            else:
                self._other(match, scope)
        return None

    def _guard(self, text: str, scope: Scope, offset: int) -> tuple[str, bool]:
        plain = blank_comments(text)[1:].strip()
        if plain[0] != "!" and scope.parent is None:
            return plain, False
        negated = plain[0] == "!"
        name = plain[1:].strip() if negated else plain
        if scope.parent is None:
            return name, negated
        found = scope.find(name, offset)
        return (found.name if isinstance(found, Register) else name), negated

    def _label(self, name: str, offset: int, scope: Scope) -> None:
        if name in scope.labels:
            self._error(f"label {name!r} is defined twice in this scope", offset)
        self._last_label = name
        scope.add_label(name, len(self.instructions))
        self.labels[scope.unique(name)] = len(self.instructions)

    def _other(self, match: re.Match[str], scope: Scope) -> None:
        kind = match.lastindex
        if kind == kinds.UNENDED_INSTRUCTION:
            return self._error("expected ';' after this instruction", self._last(match.start(2), match.end(3)))
        if kind == kinds.BAD:
            return self._error(f"unexpected {match[11][0]!r}", match.start(11))
        word = match[8]
        if kind == kinds.UNENDED_DIRECTIVE:
            return self._error(f"expected ';' after {word}", self._last(match.start(8), match.end(9)))
        if word in _LISTS:
            return self._list(word, match, scope)
        if word in _DECLARING:
            return self._declare(match.start(8), match.end(9), scope)
        if word != ".pragma":
            return self._error(f"unexpected {word}", match.start(8))
        self.checks.append((*match.span(9), "strings"))
        return None

    def _list(self, word: str, match: re.Match[str], scope: Scope) -> None:
        label = scope.unique(self._last_label)
        if self.labels.pop(label, None) is None:
            return self._error(f"{word} needs a label", match.start(8))
        self.checks.append((*match.span(9), "prototype" if word == ".callprototype" else "names"))
        if word == ".callprototype":
            self.prototypes[label] = match[9].strip()
        else:
            self._lists[label] = (match[9], scope.index, match.start(9))
        return None

    def _declare(self, start: int, end: int, scope: Scope) -> None:
        try:
            found = declared(self.text, start, end)
        except ShapeError as error:
            return self._error(error.message, start + error.offset)
        if self.text.find("=", start, end) >= 0:
            self.checks.append((start, end, "declaration"))
        for item in found:
            if scope.parent is not None and scope.parent.find(item.name, item.start) is not None:
                scope.note_late(item.name, item.start)
            if item.space == "reg" and item.count is None:
                scope.add_register(item.name, item.type)
            elif item.space == "reg" and item.count is not None:
                scope.add_range(item.name, item.count, item.type)
            else:
                unique = scope.unique(item.name)
                scope.add_variable(item.name, unique)
                self.declared[unique] = variable(item, self.function, unique)
        return None

    def _last(self, start: int, end: int) -> int:
        """Where the text of `[start, end)` ends, without white space and comments behind it."""
        return start + len(blank_comments(self.text[start:end]).rstrip())

    def _error(self, message: str, offset: int) -> None:
        if len(self.errors) < _MAX_ERRORS:
            self.errors.append(self.lines.error(message, offset))

    def list_offset(self, label: str) -> int:
        """Where the names of a `.branchtargets` or `.calltargets` list stand."""
        return self._lists[label][2]

    @cached_property
    def statics(self) -> frozenset[str]:
        """Names of the variables that are not parameters."""
        return frozenset(name for name, item in self.declared.items() if item.space != "param")

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """Parameters and variables by the name that operands use."""
        shared = self.statics & self.repeated() if self.statics else frozenset[str]()
        found = {name: item for name, item in self.declared.items() if name not in shared}
        for name in sorted(shared):
            unique = f"{name}@{self.function}"
            found[unique] = replace(self.declared[name], name=unique)
        return found

    @cached_property
    def registers(self) -> RegisterTypes:
        return RegisterTypes(self.scopes)

    @cached_property
    def targets(self) -> dict[str, tuple[str, ...]]:
        """`.branchtargets` and `.calltargets`: label of the list -> resolved labels or function names."""
        found: dict[str, tuple[str, ...]] = {}
        for label, (text, scope, offset) in self._lists.items():
            names = _NAMES.findall(blank_comments(text))
            found[label] = tuple(self._shown(self.resolve(name, scope, offset)) for name in names)
        return found

    @staticmethod
    def _shown(operand: Operand) -> str:
        return operand.name if isinstance(operand, (Register, Symbol)) else ""

    @cached_property
    def _settled(self) -> bool:
        """Whether a name means the same thing everywhere in its scope."""
        return not any(scope.late for scope in self.scopes)

    def resolve(self, name: str, scope: int, offset: int) -> Operand:
        """The register, variable or label that `name` means; undeclared `%` names are special registers."""
        where = self.scopes[scope]
        known = where.memo.get(name)
        if known is not None:
            return known
        found = where.plain(name) or where.find(name, offset)
        if isinstance(found, Symbol) and found.name in self.statics and found.name in self.repeated():
            found = Symbol(f"{found.name}@{self.function}")
        elif found is None:
            found = Register(name) if name[0] == "%" else Symbol(name)
        if self._settled:
            where.remember(name, found)
        return found

    def operands_at(self, start: int, end: int, scope: int) -> tuple[Operand, ...]:
        """Operands in `text[start:end]`. Raises PtxSyntaxError."""
        text = self.text[start:end]
        if (found := quick(text, lambda name: self.resolve(name, scope, start), self.scopes[scope].memo)) is not None:
            return found
        try:
            return operands_of(text, lambda name: self.resolve(name, scope, start))
        except ShapeError as error:
            raise self.lines.error(error.message, start + error.offset) from None
