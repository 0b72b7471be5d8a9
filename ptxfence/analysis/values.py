"""What addresses, descriptors, barrier ids and guards of one function can be: `Values`, the value analysis' face.

Everything is computed when asked for and kept. The machinery: `values_ssa` (which definition reaches), `values_build`
(instructions to expressions), `values_graph` (expressions), `values_solve` (their values), `values_env` (path
conditions), `regions` and `descriptors` (from values to bytes), `guards` (thread sets).
"""

from __future__ import annotations

from ptxfence.analysis.boxes import Boxes
from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.conditions import ThreadSet
from ptxfence.analysis.descriptors import matrix_region
from ptxfence.analysis.effects import Access, Box, Bytes, BytesOf, Copy, Flow, Matrix, Space
from ptxfence.analysis.guards import Guards
from ptxfence.analysis.inline import Routine
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.region import Region
from ptxfence.analysis.regions import Place, Shape, region_of
from ptxfence.analysis.values_build import Builder
from ptxfence.analysis.values_domain import Value, bounds, plain, single
from ptxfence.analysis.values_env import EMPTY, Env
from ptxfence.analysis.values_nodes import Node, Terms
from ptxfence.analysis.values_solve import Solver
from ptxfence.grammar.parse import Module

MBARRIER_BYTES = 8
_BARRIER = Shape(Space.CTA, MBARRIER_BYTES, MBARRIER_BYTES, True)


class Values:
    """Values of one function body; `index` is always an instruction's position in `function.instructions`."""

    def __init__(self, function: Routine, cfg: Cfg, module: Module) -> None:
        self.function = function
        self.cfg = cfg
        self.module = module
        self.solver = Solver()
        self.solver.edge_env = self.edge_env
        self.builder = Builder(function, cfg, module, self.solver)
        self.guards = Guards(self)
        self.boxes = Boxes(self)
        self._envs: dict[int, Env] = {}
        self._edge_envs: dict[tuple[int, int], Env] = {}
        self._regions: dict[int, list[tuple[Access, Region]]] = {}
        self._barriers: dict[tuple[int, int], Region] = {}
        self._threads: dict[int, ThreadSet] = {}
        self.places: dict[tuple[Env, Terms, Space], Place] = {}

    # --- conditions ------------------------------------------------------------------------------

    def block_env(self, block: int) -> Env:
        """What the edges that dominate a block say."""
        chain: list[int] = []
        idom = self.cfg.idom
        while block not in self._envs:
            chain.append(block)
            parent = idom.get(block, block)
            if parent == block:
                self._envs[block] = EMPTY
                break
            block = parent
        for block in reversed(chain):
            parent = idom.get(block, block)
            if parent == block:
                continue
            self._envs[block] = self._envs[parent]  # stands while its own condition is built
            preds = [p for p in self.cfg.preds[block] if p in self.cfg.rank and not self.cfg.dominates(block, p)]
            if preds == [parent]:
                self._envs[block] = self._taken(self._envs[parent], parent, block)
        return self._envs[chain[0]] if chain else self._envs[block]

    def edge_env(self, source: int, target: int) -> Env:
        """What holds on a control-flow edge."""
        key = (source, target)
        found = self._edge_envs.get(key)
        if found is None:
            self._edge_envs[key] = self.block_env(source)
            found = self._edge_envs[key] = self._taken(self.block_env(source), source, target)
        return found

    def edge_predicate(self, source: int, target: int) -> tuple[Node, bool] | None:
        """The predicate, and its value, with which a block's last branch goes to `target`; None without one."""
        last = self.cfg.instructions[self.cfg.blocks[source].end - 1]
        if last.guard is None:
            return None
        flow = lookup(last.opcode).flow
        if flow is Flow.EXIT:
            return self.builder.register(last.guard, last.index), last.guard_negated
        if flow is not Flow.BRANCH or len(self.cfg.succs[source]) != 2:
            return None
        taken = target != source + 1
        return self.builder.register(last.guard, last.index), taken != last.guard_negated

    def _taken(self, env: Env, source: int, target: int) -> Env:
        found = self.edge_predicate(source, target)
        if found is None or self._spent(found[0], source, target):
            return env
        return self.solver.assume(env, found[0], found[1])

    def _spent(self, predicate: Node, source: int, target: int) -> bool:
        """Whether an edge leaves the loop that asks for an unknown answer, such as a wait: no value depends on it, and
        a kernel has as many as it has waits."""
        while predicate.op == "pnot":
            predicate = predicate.args[0]
        if predicate.op != "var" or "@" not in (name := str(predicate.data[0])):
            return False
        home = self.cfg.block_of(int(name.split("@")[1].split(".")[0]))
        left = set(self.cfg.loops_of.get(source, ())) - set(self.cfg.loops_of.get(target, ()))
        return any(home in self.cfg.loops[number].blocks for number in left)

    def env_at(self, index: int) -> Env:
        """What holds where instruction `index` takes effect, its own guard included."""
        env = self.block_env(self.cfg.block_of(index))
        instruction = self.cfg.instructions[index]
        if instruction.guard is None:
            return env
        predicate = self.builder.register(instruction.guard, index)
        return self.solver.assume(env, predicate, not instruction.guard_negated)

    # --- values ----------------------------------------------------------------------------------

    def node(self, index: int, operand: int) -> Node:
        """The expression of an operand; of the address for `[...]`."""
        return self.builder.operand(self.cfg.instructions[index].operands[operand], index)

    def value(self, index: int, operand: int) -> Value:
        """What an operand can be at this instruction."""
        return self.solver.under(self.node(index, operand), self.env_at(index))

    def constant(self, index: int, operand: int) -> int | None:
        """The operand as an integer if it is one and the same for all threads and iterations."""
        node = self.node(index, operand)
        if self.builder.graph.is_const(node):
            return node.const
        return single(self.value(index, operand))

    def range(self, index: int, operand: int) -> tuple[int, int] | None:
        """Smallest and largest value of an operand that is no address; None if it has a base."""
        value = self.value(index, operand)
        return bounds(value) if plain(value) else None

    # --- regions ---------------------------------------------------------------------------------

    def region(self, index: int, access: Access) -> Region:
        """The bytes of one access of an instruction, over all threads and iterations."""
        known = self._regions.setdefault(index, [])
        for other, found in known:
            if other is access or other == access:
                return found
        found = self._region(index, access)
        known.append((access, found))
        return found

    def _region(self, index: int, access: Access) -> Region:
        footprint = access.footprint
        if isinstance(footprint, Matrix | Copy):
            return matrix_region(self, index, access)
        if isinstance(footprint, Box) and access.space in (Space.CTA, Space.CLUSTER):
            return self.boxes.region(index, access)
        shape = Shape(access.space)
        if isinstance(footprint, Bytes):
            shape = Shape(access.space, footprint.count, footprint.count, True)
        elif isinstance(footprint, BytesOf):
            size = self.range(index, footprint.operand)
            if size is not None:
                shape = Shape(access.space, size[1], size[0], size[0] == size[1])
        return region_of(self, index, self.node(index, access.operand), shape)

    def mbarrier_region(self, index: int, operand: int) -> Region:
        """The bytes of the mbarrier that an operand names."""
        key = (index, operand)
        found = self._barriers.get(key)
        if found is None:
            found = self._barriers[key] = region_of(self, index, self.node(index, operand), _BARRIER)
        return found

    def unresolved(self, index: int, access: Access) -> tuple[int, str] | None:
        """Where the bytes of an access were lost: an instruction and what it is; None if they are bounded."""
        region = self.region(index, access)
        if region.bounded:
            return None
        lost = region.lost if region.lost is not None else index
        return lost, f"{self.cfg.instructions[lost].opcode} gives an address that cannot be followed"

    # --- threads ---------------------------------------------------------------------------------

    def guard(self, index: int) -> ThreadSet:
        """Threads that satisfy the instruction's own guard."""
        return self.guards.guard(index)

    def edge(self, source: int, target: int) -> ThreadSet:
        """Threads that take a control-flow edge once they are at its source."""
        return self.guards.edge(source, target)

    def arriving(self, block: int) -> ThreadSet:
        """Threads that come to a block: dominating branches."""
        return self.guards.block(block)

    def threads(self, index: int) -> ThreadSet:
        """Threads that execute the instruction: dominating branches and its own guard."""
        found = self._threads.get(index)
        if found is None:
            found = self._threads[index] = self.guards.threads(index)
        return found
