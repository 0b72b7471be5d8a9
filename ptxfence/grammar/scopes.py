"""Names of a function: what a `{ }` scope declares, and which declaration a use means (PTX ISA 5.5, 9.6).

A name of the outermost scope keeps its spelling; one of scope k > 0 becomes `name#k`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ptxfence.grammar.model import Operand, Register, Symbol

# Shared by all scopes that declare nothing (most of them); replaced before the first write.
_NO_NAMES: dict[str, str] = {}
_NO_RANGES: dict[str, tuple[int, str]] = {}
_NO_OFFSETS: dict[str, int] = {}
_NO_OPERANDS: dict[str, Operand] = {}


class Scope:
    """One `{ }` with its names. `ranges` are the parametrised ones: `%r<10>` -> `%r0` to `%r9`."""

    __slots__ = ("depth", "index", "labels", "late", "memo", "parent", "ranges", "registers", "variables")

    def __init__(self, index: int, parent: Scope | None) -> None:
        self.index = index
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent is not None else 0
        self.registers = _NO_NAMES
        self.ranges = _NO_RANGES
        self.variables = _NO_NAMES
        self.labels = _NO_OFFSETS
        self.late = _NO_OFFSETS  # name -> offset of the declaration, where an outer scope has that name too
        self.memo = _NO_OPERANDS

    def add_register(self, name: str, kind: str) -> None:
        if self.registers is _NO_NAMES:
            self.registers = {}
        self.registers[name] = kind

    def add_range(self, stem: str, count: int, kind: str) -> None:
        if self.ranges is _NO_RANGES:
            self.ranges = {}
        self.ranges[stem] = (count, kind)

    def add_variable(self, name: str, unique: str) -> None:
        if self.variables is _NO_NAMES:
            self.variables = {}
        self.variables[name] = unique

    def add_label(self, name: str, offset: int) -> None:
        if self.labels is _NO_OFFSETS:
            self.labels = {}
        self.labels[name] = offset

    def note_late(self, name: str, offset: int) -> None:
        if self.late is _NO_OFFSETS:
            self.late = {}
        self.late[name] = offset

    def remember(self, name: str, operand: Operand) -> None:
        if self.memo is _NO_OPERANDS:
            self.memo = {}
        self.memo[name] = operand

    @property
    def blank(self) -> bool:
        """Whether the scope declares nothing."""
        return not (self.registers or self.ranges or self.variables or self.labels)

    def unique(self, name: str) -> str:
        return f"{name}#{self.index}" if self.index else name

    def type_of(self, name: str) -> str | None:
        """Type of a register that this scope itself declares."""
        kind = self.registers.get(name)
        if kind is not None or not self.ranges:
            return kind
        prefix = name.rstrip("0123456789")
        digits = name[len(prefix) :]
        while digits:
            known = self.ranges.get(prefix)
            if known and int(digits) < known[0] and (digits[0] != "0" or digits == "0"):
                return known[1]
            prefix += digits[0]  # a prefix may end in a digit itself: `%p1<4>`
            digits = digits[1:]
        return None

    def plain(self, name: str) -> Register | None:
        """What `find` gives for the usual name: a register of a range of the outermost scope. Hot."""
        if self.index or self.late:
            return None
        stem = name.rstrip("0123456789")
        known, digits = self.ranges.get(stem), name[len(stem) :]
        if known is None or not digits or digits[0] == "0" or int(digits) >= known[0] or name in self.registers:
            return None
        return Register(name)

    def find(self, name: str, offset: int) -> Operand | None:
        """The operand that `name` means at `offset`; None where nothing in the function declares it."""
        scope: Scope | None = self
        while scope is not None:
            found = None if scope.blank else scope._own(name)
            if found is not None and scope.late.get(name, -1) <= offset:
                return found
            scope = scope.parent
        return None

    def _own(self, name: str) -> Operand | None:
        if self.type_of(name) is not None:
            return Register(self.unique(name))
        if name in self.variables:
            return Symbol(self.variables[name])
        if name in self.labels:
            return Symbol(self.unique(name))
        return None


class RegisterTypes(Mapping[str, str]):
    """Resolved register name -> type, over the scopes of a function; parametrised names are not stored."""

    def __init__(self, scopes: list[Scope]) -> None:
        self._scopes = scopes

    def __getitem__(self, name: str) -> str:
        plain, _, index = name.partition("#")
        if (index and not index.isdigit()) or int(index or 0) >= len(self._scopes):
            raise KeyError(name)
        kind = self._scopes[int(index or 0)].type_of(plain)
        if kind is None:
            raise KeyError(name)
        return kind

    def __iter__(self) -> Iterator[str]:
        for scope in self._scopes:
            yield from map(scope.unique, scope.registers)
            for prefix, (count, _) in scope.ranges.items():
                yield from (scope.unique(f"{prefix}{number}") for number in range(count))

    def __len__(self) -> int:
        return sum(len(scope.registers) + sum(count for count, _ in scope.ranges.values()) for scope in self._scopes)
