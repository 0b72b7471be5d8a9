"""From instructions to expressions: `Builder.register` gives the node that a register holds at a place.

Pull-only: an instruction asks for its operands, to a depth; beyond it, and around loops, an explicit stack demands
operands first, so that program length is no limit. Instructions that no rule understands become variables of their
own (`ld@17`), equal only to themselves.
"""

from __future__ import annotations

from functools import cache, cached_property

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import SyncKind
from ptxfence.analysis.inline import Copy, Routine
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.isa_operations import Op, operation
from ptxfence.analysis.values_cycles import COUNTER
from ptxfence.analysis.values_domain import interval
from ptxfence.analysis.values_enumerate import thread_only, uniform_in_warps
from ptxfence.analysis.values_nodes import Node
from ptxfence.analysis.values_ops import HANDLERS, fits
from ptxfence.analysis.values_solve import PhiArgs, Solver
from ptxfence.analysis.values_sources import Sources
from ptxfence.analysis.values_special import SPECIAL, Launch, is_uniform_name, special_register
from ptxfence.analysis.values_ssa import Definition, Definitions
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.model import Address, Immediate, Negated, Operand, Pair, Register, Symbol, Variable, Vector
from ptxfence.grammar.parse import Module

# What a register holds: (defining instruction, register) or (register, block of the phi).
Ref = tuple[int, str] | tuple[str, int]

_CLUSTER = (SyncKind.CLUSTER_ARRIVE, SyncKind.CLUSTER_WAIT)
DEEPEST = 60  # instructions that ask for their operands inside each other, eight Python calls each at most
DYNAMIC_ALIGN = 1024  # compilers place dynamic shared memory so, and swizzled tiles need it


class Builder:
    """Expressions of one function body."""

    def __init__(self, function: Routine, cfg: Cfg, module: Module, solver: Solver) -> None:
        self.function = function
        self.cfg = cfg
        self.solver = solver
        self.graph = solver.graph
        self.definitions = Definitions(cfg)
        self.launch = Launch(function.directives)
        self.symbols: dict[str, Variable] = {**module.variables, **function.variables}
        self._dynamics = {n for n, v in self.symbols.items() if v.space == "shared" and v.size is None}
        self._dynamic = min(self._dynamics, default="")
        self._memo: dict[Ref, Node] = {}
        self._open_phis: dict[Ref, Node] = {}
        self._built_in_cycle: list[Ref] = []
        self._dropped = 0
        self._depth = 0
        self._uniform: dict[Node, bool] = {}
        self.relies_on_alone = False  # whether some address is another CTA's in a larger cluster only

    @cached_property
    def alone(self) -> bool:
        """Whether clusters have one CTA: nothing asks for more, and no CTA waits for the others of its cluster, without
        which shared memory of another CTA cannot be used (it may not have begun or may have ended)."""
        if any(name in self.function.directives for name in ("reqnctapercluster", "explicitcluster")):
            return False
        effects = [lookup(instruction.opcode) for instruction in self.cfg.instructions]
        if any(e.sync is not None and e.sync.kind in _CLUSTER for e in effects):
            return False
        return not any(a.both_ctas or a.multicast for e in effects for a in e.accesses)

    # --- operands --------------------------------------------------------------------------------

    def register(self, name: str, index: int, component: str = "") -> Node:
        """The value of a register as instruction `index` reads it."""
        if name in SPECIAL and (special := special_register(self, name, component)) is not None:
            return special
        definition = self.definitions.reaching(name, index)
        if definition is None:
            return self._undefined(name)
        ref = (definition, name) if isinstance(definition, int) else definition
        return self._memo.get(ref) or self._demand(ref)

    def leaving(self, name: str, block: int) -> Node:
        """The value of a register at the end of a block."""
        ref = self._ref(name, self.definitions.leaving(name, block))
        return self._undefined(name) if ref is None else self._demand(ref)

    def operand(self, operand: Operand, index: int) -> Node:
        """The value of a source operand of instruction `index`; of the address for `[...]`."""
        if isinstance(operand, Register):
            return self.register(operand.name, index, operand.component)
        if isinstance(operand, Address):
            if operand.base is None:
                return self.graph.const(operand.offset)
            base = self.operand(operand.base, index)
            return self.graph.add(base, self.graph.const(operand.offset), 64) if operand.offset else base
        if isinstance(operand, Negated):
            return self.negation(self.register(operand.operand.name, index))
        return self._literal(operand, index)

    def negation(self, predicate: Node) -> Node:
        if predicate.op == "pnot":
            return predicate.args[0]
        if self.graph.is_const(predicate):
            return self.graph.const(1 - (predicate.const & 1))
        return self.graph.atom("pnot", (predicate,), (), 1)

    def _literal(self, operand: Operand, index: int) -> Node:
        if isinstance(operand, Immediate) and isinstance(operand.value, int):
            return self.graph.const(operand.value)
        if isinstance(operand, Symbol):
            return self.symbol(operand)
        return self.graph.var(f"?{index}", 64)

    def symbol(self, symbol: Symbol) -> Node:
        """The address of a variable, in its own state space."""
        variable = self.symbols.get(symbol.name)
        align = 16
        if variable is not None:
            align = max(1, variable.align)
            if variable.space == "shared" and variable.size is None:
                align = max(align, DYNAMIC_ALIGN)
        return self.graph.add(self.graph.symbol(symbol.name, align), self.graph.const(symbol.offset), 64)

    def canonical(self, name: str) -> str:
        """One name for all dynamic shared symbols: they start at one place (PTX ISA 5.1.6)."""
        return self._dynamic if name in self._dynamics else name

    def _undefined(self, name: str) -> Node:
        kind = self.function.registers.get(name, "b64")
        width = _width(kind)
        return self.graph.var(f"undef {name}", width)

    # --- demand ----------------------------------------------------------------------------------

    def _ref(self, name: str, definition: Definition | None) -> Ref | None:
        if definition is None:
            return None
        return (definition, name) if isinstance(definition, int) else definition

    def _demand(self, ref: Ref) -> Node:
        found = self._memo.get(ref) or self._open_phis.get(ref)
        if found is not None:
            return found
        if not isinstance(ref[0], str) and not self._open_phis and self._depth < DEEPEST:
            self._depth += 1
            try:
                found = self._memo[ref] = self._make(ref[0], str(ref[1]))
            finally:
                self._depth -= 1
            return found
        return self._by_stack(ref)

    def _by_stack(self, ref: Ref) -> Node:
        """As `_demand`, to any depth and through loops."""
        stack: list[Ref] = [ref]
        opened: dict[Ref, int] = {}
        visited: dict[Ref, int] = {}  # operands were demanded when so many nodes had been dropped
        while stack:
            top = stack[-1]
            if top in self._memo:
                stack.pop()
                continue
            if isinstance(top[0], str):
                if top not in opened:
                    opened[top] = len(self._built_in_cycle)
                    self._open(top)
                if missing := self._missing(self._phi_refs(top)):
                    stack.extend(missing)
                    continue
                self._close(top, opened[top])
            else:
                if visited.get(top) != self._dropped:
                    visited[top] = self._dropped
                    if missing := self._missing(self._needs(int(top[0]), str(top[1]))):
                        stack.extend(missing)
                        continue
                self._memo[top] = self._make(int(top[0]), str(top[1]))
                if self._open_phis:
                    self._built_in_cycle.append(top)
            stack.pop()
        if not self._open_phis:
            self._built_in_cycle.clear()
        return self._memo[ref]

    def _missing(self, refs: list[Ref]) -> list[Ref]:
        return [r for r in refs if r not in self._memo and r not in self._open_phis]

    def _needs(self, index: int, register: str) -> list[Ref]:
        instruction = self.cfg.instructions[index]
        found: list[Ref] = []
        op = operation(instruction.opcode)
        names = list(_read(instruction.operands[1:])) if op.name in HANDLERS else []
        if instruction.guard is not None:
            names += [instruction.guard, register]
        for name in names:
            ref = self._ref(name, self.definitions.reaching(name, index))
            if ref is not None and ref != (index, register):
                found.append(ref)
        return found

    def _make(self, index: int, register: str) -> Node:
        instruction = self.cfg.instructions[index]
        op = operation(instruction.opcode)
        handler = HANDLERS.get(op.name)
        position = _position(instruction.operands[0], register)
        node = None
        if handler is not None and fits(op, instruction.operands):
            node = handler(Sources(self, instruction, op, position))
        if node is None:
            node = self.unknown(instruction, op, position)
        if instruction.guard is None:
            return node
        before = self._ref(register, self.definitions.reaching(register, index))
        if before is None or before == (index, register):
            return node
        predicate = self.register(instruction.guard, index)
        old = self._demand(before)
        return self.select(predicate, old, node) if instruction.guard_negated else self.select(predicate, node, old)

    def unknown(self, instruction: Instruction | Copy, op: Op, position: int) -> Node:
        """A value of its own, as wide as the opcode says."""
        suffix = f".{position}" if position else ""
        name = f"{op.name}@{instruction.index}{suffix}"
        width = 1 if op.compare and position == 0 else op.width or 64
        if op.name in ("ld", "ldu", "atom") and op.width < 32:
            reach = 1 << op.width
            self.solver.leaves[name] = interval(-reach // 2, reach // 2 - 1) if op.signed else interval(0, reach - 1)
        return self.graph.var(name, max(width, 32) if width > 1 else 1)

    def select(self, predicate: Node, a: Node, b: Node) -> Node:
        if a is b:
            return a
        if self.graph.is_const(predicate):
            return a if predicate.const & 1 else b
        if predicate.op == "pnot":
            predicate, a, b = predicate.args[0], b, a
        return self.graph.atom("selp", (predicate, a, b), (), max(a.width, b.width, 1))

    def warp_uniform(self, node: Node) -> bool:
        """Whether all lanes of a warp hold the same value: by form, or by trying every thread."""
        found = self._uniform.get(node)
        if found is None:
            found = self._uniform_form(node)
            if not found and self.launch.flat and thread_only(node):
                found = uniform_in_warps(node, self.graph.var("tid.x"), self.launch.limit[0])
            self._uniform[node] = found
        return found

    def _uniform_form(self, node: Node, depth: int = 8) -> bool:
        if node.op == "lin":
            return all(self._uniform_form(atom, depth - 1) for atom, _ in node.terms)
        if node.op == "sym":
            return True
        if node.op == "var":
            return is_uniform_name(str(node.data[0]))
        if node.op == "phi" or depth <= 0:
            return False
        if (
            self.launch.flat
            and node.op in ("shr", "and")
            and node.args[0].op == "var"
            and node.args[0].data[0] == "tid.x"
        ):
            amount = int(node.data[0])
            return amount >= 5 if node.op == "shr" else amount & 31 == 0
        return bool(node.args) and all(self._uniform_form(arg, depth - 1) for arg in node.args)

    # --- phis ------------------------------------------------------------------------------------

    def _phi_refs(self, ref: Ref) -> list[Ref]:
        return [r for _, r in self._incoming(str(ref[0]), int(ref[1]))]

    def _incoming(self, register: str, block: int) -> list[tuple[int, Ref]]:
        found: list[tuple[int, Ref]] = []
        for pred in self.cfg.preds[block]:
            if pred not in self.cfg.rank:
                continue
            ref = self._ref(register, self.definitions.leaving(register, pred))
            if ref is not None:
                found.append((pred, ref))
        return found

    def _open(self, ref: Ref) -> None:
        register, block = str(ref[0]), int(ref[1])
        kind = self.function.registers.get(register, "b64")
        width = _width(kind)
        self._open_phis[ref] = self.graph.phi(register, block, width)

    def _close(self, ref: Ref, since: int) -> None:
        """All arguments are there: drop a phi that merges nothing, express a linear one by its loop's counter."""
        phi = self._open_phis[ref]
        args: PhiArgs = []
        for pred, source in self._incoming(str(ref[0]), int(ref[1])):
            args.append((pred, self._memo.get(source) or self._open_phis[source]))
        del self._open_phis[ref]
        self.solver.phi_args[phi] = args
        replacement = self._simplified(phi, int(ref[1]), args)
        self._memo[ref] = replacement or phi
        if replacement is None:
            return
        phi.alias = replacement
        for built in self._built_in_cycle[since:]:
            node = self._memo.get(built)
            if node is not None and phi in node.phis:
                del self._memo[built]
                self._dropped += 1

    def _simplified(self, phi: Node, block: int, args: PhiArgs) -> Node | None:
        others = {arg for _, arg in args if arg is not phi}
        if len(others) == 1:
            (only,) = others
            return None if phi in only.phis else only
        if phi.width < 32:
            return None
        start: Node | None = None
        step: int | None = None
        entries: list[int] = []
        latches: list[int] = []
        for pred, arg in args:
            if self.cfg.dominates(block, pred):
                const, terms = self.graph.parts(arg)
                if terms != ((phi, 1),) or const == 0 or step not in (None, const):
                    return None
                step = const
                latches.append(pred)
            elif start not in (None, arg) or phi in arg.phis:
                return None
            else:
                start = arg
                entries.append(pred)
        if start is None or step is None or not latches:
            return None
        counter = self._counter(block, entries, latches)
        return self.graph.add(start, self.graph.scale(counter, step, phi.width), phi.width)

    def _counter(self, block: int, entries: list[int], latches: list[int]) -> Node:
        """The number of completed iterations of the loop with this header, from its last entry."""
        counter = self.graph.phi(COUNTER, block, 64)
        if counter not in self.solver.phi_args:
            following = self.graph.add(counter, self.graph.const(1), 64)
            args = [(pred, self.graph.const(0)) for pred in entries] + [(pred, following) for pred in latches]
            self.solver.phi_args[counter] = args
        return counter


def _read(operands: tuple[Operand, ...]) -> list[str]:
    names: list[str] = []
    for operand in operands:
        if isinstance(operand, Register):
            names.append(operand.name)
        elif isinstance(operand, Address):
            if isinstance(operand.base, Register):
                names.append(operand.base.name)
        elif isinstance(operand, Vector):
            names += _read(operand.items)
        elif isinstance(operand, Negated):
            names.append(operand.operand.name)
    return names


@cache
def _width(kind: str) -> int:
    """Bits of a register type."""
    return 1 if kind == "pred" else int("".join(c for c in kind if c.isdigit()) or 64)


def _position(operand: Operand, register: str) -> int:
    match operand:
        case Vector(items):
            return next((i for i, x in enumerate(items) if isinstance(x, Register) and x.name == register), 0)
        case Pair(_, Register(name)):
            return int(name == register)
        case _:
            return 0
