"""Calls, by substitution: a kernel with the bodies of the functions it calls in place of the calls.

Each call site gets its own copy of the callee with renamed registers and labels, and with the actual parameter
variables in place of the formal ones, so that addresses and fences are judged in the context of the caller.
Copies keep the spans of the callee's text. Recursion, targets that are not known and programs that grow too large
are left as calls; the analysis then cannot prove the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from ptxfence.analysis.effects import Flow
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.isa_calls import BRANCH, call_parts, copy_opcode, parameter_access, returns
from ptxfence.grammar.function import Function
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.model import Address, Negated, Operand, Pair, Register, SourceLocation, Symbol, Variable, Vector
from ptxfence.grammar.module import Module

MAX_INSTRUCTIONS = 400_000


class Copy:
    """An instruction of a callee (or one that passes control or a value) at a call site."""

    __slots__ = (
        "_names",
        "_operands",
        "end",
        "guard",
        "guard_negated",
        "index",
        "opcode",
        "operand_text",
        "origin",
        "scope",
        "start",
    )

    def __init__(
        self,
        origin: Instruction,
        names: Names,
        index: int,
        *,
        opcode: str | None = None,
        operands: tuple[Operand, ...] | None = None,
    ) -> None:
        self.origin = origin
        self.index = index
        self.start = origin.start
        self.end = origin.end
        self.opcode = origin.opcode if opcode is None else opcode
        self.guard = None if origin.guard is None else names.register(origin.guard)
        self.guard_negated = origin.guard_negated
        self._names = names
        self._operands = operands
        renamed = names.site > 0 or operands is not None
        self.operand_text = origin.operand_text
        self.scope = 1 if renamed else origin.scope  # names in the text stand for themselves in scope 0 only

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Operands with the names of this call site."""
        if self._operands is None:
            self._operands = tuple(self._names.operand(operand) for operand in self.origin.operands)
        return self._operands


class Names:
    """Renames what is local to one copy of a function."""

    def __init__(self, site: int, function: Function, symbols: Mapping[str, str]) -> None:
        self.site = site
        self._registers = function.registers
        self._labels = function.labels
        self._lists = function.targets
        self._symbols = symbols
        self._formals = {v.name for v in (*function.params, *function.returns) if v.space == "reg"}

    def register(self, name: str) -> str:
        if self.site and (name in self._registers or name in self._formals):
            return f"{name}@{self.site}"
        return name  # a special register, say

    def symbol(self, name: str) -> str:
        if name in self._symbols:
            return self._symbols[name]
        if self.site and (name in self._labels or name in self._lists):
            return f"{name}@{self.site}"
        return name

    def operand(self, operand: Operand) -> Operand:
        """The operand with renamed registers, labels and parameters."""
        if not self.site:
            return operand
        if isinstance(operand, Register):
            return replace(operand, name=self.register(operand.name))
        if isinstance(operand, Symbol):
            if operand.name in self._formals:
                return Register(self.register(operand.name))
            return replace(operand, name=self.symbol(operand.name))
        if isinstance(operand, Address):
            base = operand.base if operand.base is None else self.operand(operand.base)
            assert base is None or isinstance(base, Register | Symbol)
            coordinates = tuple(self.operand(item) for item in operand.coordinates)
            return replace(operand, base=base, coordinates=coordinates)
        if isinstance(operand, Vector):
            return Vector(tuple(self.operand(item) for item in operand.items))
        if isinstance(operand, Pair):
            return Pair(self.operand(operand.first), self.operand(operand.second))
        if isinstance(operand, Negated):
            return Negated(replace(operand.operand, name=self.register(operand.operand.name)))
        return operand


class _Types(Mapping[str, str]):
    """Register types of all copies: `%r1@3` is `%r1` of the function at site 3."""

    def __init__(self) -> None:
        self.sites: dict[int, Mapping[str, str]] = {}

    def __getitem__(self, name: str) -> str:
        plain, _, site = name.partition("@")
        types = self.sites.get(int(site or 0))
        if types is None:
            raise KeyError(name)
        return types[plain]

    def __iter__(self) -> Iterator[str]:
        for site, types in self.sites.items():
            yield from (f"{name}@{site}" if site else name for name in types)

    def __len__(self) -> int:
        return sum(map(len, self.sites.values()))


class Inlined:
    """A function after substitution; looks like `Function` to the analyses."""

    def __init__(self, module: Module, root: Function) -> None:
        self.root = root
        self.name = root.name
        self.kind = root.kind
        self.line = root.line
        self.directives = root.directives
        self.params = root.params
        self.has_body = True
        self.remaining_calls: list[int] = []
        self._functions = {f.name: f for f in module.functions if f.has_body}
        self._code: list[Copy] = []
        self._owner: list[tuple[Function, int]] = []
        self._sites = 0
        self._stored: dict[tuple[str, int], Operand] = {}
        self.labels: dict[str, int] = {}
        self.targets: dict[str, tuple[str, ...]] = {}
        self.registers = _Types()
        self.variables: dict[str, Variable] = {}
        self._expand(root, Names(0, root, {}), (root.name,), None)
        self.instructions = tuple(self._code)

    def _expand(self, function: Function, names: Names, chain: tuple[str, ...], after: str | None) -> None:
        self._declare(function, names)
        at: dict[int, list[str]] = {}
        for label, index in function.labels.items():
            at.setdefault(index, []).append(names.symbol(label))
        for instruction in function.instructions:
            self._label(at.get(instruction.index, ()))
            flow = lookup(instruction.opcode).flow
            if flow is Flow.CALL and self._call(function, instruction, names, chain):
                continue
            if flow is Flow.EXIT and after is not None and returns(instruction.opcode):
                self._emit(function, instruction, names, BRANCH, (Symbol(after),))
                continue
            if flow is Flow.CALL:
                self.remaining_calls.append(len(self._code))
            self._emit(function, instruction, names)
        self._label(at.get(len(function.instructions), ()))

    def _declare(self, function: Function, names: Names) -> None:
        self.registers.sites[names.site] = function.registers
        for name, variable in function.variables.items():
            self.variables.setdefault(names.symbol(name), variable)
        for label, items in function.targets.items():
            self.targets[names.symbol(label)] = tuple(names.symbol(item) for item in items)

    def _label(self, labels: Iterable[str]) -> None:
        for label in labels:
            self.labels[label] = len(self._code)

    def _emit(
        self,
        function: Function,
        instruction: Instruction,
        names: Names,
        opcode: str | None = None,
        operands: tuple[Operand, ...] | None = None,
    ) -> Copy:
        copy = Copy(instruction, names, len(self._code), opcode=opcode, operands=operands)
        if opcode is None:
            copy = self._parameter(copy, names)
        self._code.append(copy)
        self._owner.append((function, instruction.index))
        return copy

    def _parameter(self, copy: Copy, names: Names) -> Copy:
        """A load of a call's parameter that one store has filled takes the value straight from there.

        Parameter variables live from the stores before a call to the loads behind it (PTX ISA 7.1), so the text
        between holds nothing that could change what was stored.
        """
        found = parameter_access(copy.opcode, copy.operands)
        if found is None or copy.guard is not None:
            return copy
        place, value, stores = found
        if stores:
            self._stored[place] = value
            return copy
        if place not in self._stored or not isinstance(copy.operands[0], Register):
            return copy
        kind = self.registers.get(copy.operands[0].name, "b64")
        taken = (copy.operands[0], self._stored[place])
        return Copy(copy.origin, names, copy.index, opcode=copy_opcode(kind), operands=taken)

    def _call(self, caller: Function, instruction: Instruction, names: Names, chain: tuple[str, ...]) -> bool:
        """Substitutes a call; False where that is not possible."""
        results, callee, arguments = call_parts(instruction.operands)
        target = self._functions.get(callee or "")
        if target is None or target.name in chain or len(self._code) > MAX_INSTRUCTIONS:
            return False
        formals = (*target.params, *target.returns)
        actuals = [names.operand(item) for item in (*arguments, *results)]
        if len(formals) != len(actuals):
            return False
        self._sites += 1
        inner = Names(self._sites, target, _symbols(target, actuals))
        after = f"$after@{self._sites}"
        if instruction.guard is not None:
            skip = self._emit(caller, instruction, names, BRANCH, (Symbol(after),))
            skip.guard_negated = not skip.guard_negated
        self._pass(caller, instruction, names, arguments, inner, target)
        self._expand(target, inner, (*chain, target.name), after)
        self._label((after,))
        self._pass_back(caller, instruction, names, results, inner, target)
        return True

    def _pass(
        self,
        caller: Function,
        call: Instruction,
        names: Names,
        arguments: tuple[Operand, ...],
        inner: Names,
        target: Function,
    ) -> None:
        """Register parameters are copied; parameters in memory are one variable on both sides."""
        for formal, actual in zip(target.params, arguments, strict=True):
            if not isinstance(actual, Symbol):
                self._copy(caller, call, names, inner.operand(Register(formal.name)), names.operand(actual))

    def _copy(self, caller: Function, call: Instruction, names: Names, into: Operand, value: Operand) -> None:
        kind = self.registers.get(into.name, "b64") if isinstance(into, Register) else "b64"
        self._emit(caller, call, names, copy_opcode(kind), (into, value)).guard = None

    def _pass_back(
        self,
        caller: Function,
        call: Instruction,
        names: Names,
        results: tuple[Operand, ...],
        inner: Names,
        target: Function,
    ) -> None:
        for formal, actual in zip(target.returns, results, strict=True):
            if isinstance(actual, Register):
                self._copy(caller, call, names, names.operand(actual), inner.operand(Register(formal.name)))

    def source_at(self, index: int) -> SourceLocation | None:
        """As `Function.source_at`, of the function the instruction comes from."""
        function, original = self._owner[index]
        return function.source_at(original)

    @cached_property
    def errors(self) -> tuple[()]:
        return ()


def _symbols(target: Function, actuals: list[Operand]) -> dict[str, str]:
    formals = (*target.params, *target.returns)
    return {
        formal.name: actual.name
        for formal, actual in zip(formals, actuals, strict=True)
        if isinstance(actual, Symbol)
    }


Routine = Function | Inlined
"""What the analyses of one kernel run over."""
