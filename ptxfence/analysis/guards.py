"""Who executes an instruction: thread sets from guards and dominating branches.

Predicates become atoms over keys: `tid.x` in a range, `lane`, `elect`, or the value number of an expression. Ranges
of `tid.x >> k` are ranges of `tid.x`, so that `tid == 0` comes out as part of warp 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxfence.analysis.conditions import ALL, Atom, ThreadSet
from ptxfence.analysis.values_env import facts
from ptxfence.analysis.values_nodes import Node, describe, unvisited
from ptxfence.analysis.values_special import is_uniform_name

if TYPE_CHECKING:
    from ptxfence.analysis.values import Values


class Guards:
    """Thread sets of one function."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._varies: dict[Node, bool] = {}
        self._defs: dict[Node, frozenset[int]] = {}
        self._sets: dict[tuple[int, Node | None, bool], ThreadSet] = {}
        self._satisfying: dict[tuple[Node, bool], ThreadSet] = {}
        self._identities: dict[Node, tuple[str, bool, frozenset[int]]] = {}
        self._blocks: dict[int, ThreadSet] = {}

    # --- identities ------------------------------------------------------------------------------

    def identity(self, node: Node) -> tuple[str, bool, frozenset[int]]:
        """Value number, whether threads of a CTA differ in it, and the loop instructions that renew it."""
        found = self._identities.get(node)
        if found is None:
            name = describe(node) if node.op in ("var", "phi") else f"#{node.id}"
            found = self._identities[node] = name, self.varies(node), self.defs(node)
        return found

    def varies(self, node: Node) -> bool:
        """Whether two threads of one CTA can hold different values."""
        for part in unvisited(node, self._varies):
            if part not in self._varies:
                self._varies[part] = False  # a cycle adds nothing of its own
                self._varies[part] = self._compute_varies(part)
        return self._varies[node]

    def _compute_varies(self, node: Node) -> bool:
        if node.op == "var":
            return not is_uniform_name(str(node.data[0]))
        if node.op != "phi":
            return any(self.varies(arg) for arg in node.args)
        if node.alias is not None:
            return self.varies(node.alias)
        args = self._values.solver.phi_args.get(node, ())
        return any(self.varies(arg) for _, arg in args) or self._divergent_join(int(node.data[1]))

    def _divergent_join(self, block: int) -> bool:
        cfg = self._values.cfg
        sources = {cfg.idom.get(block, block)}
        if any(cfg.dominates(block, pred) for pred in cfg.preds[block]):
            return False
        for source in sources:
            for target in cfg.succs[source]:
                found = self._values.edge_predicate(source, target)
                if found is not None and self.varies(found[0]):
                    return True
        return False

    def defs(self, node: Node) -> frozenset[int]:
        """Instructions inside loops whose re-execution gives the expression a new value."""
        for part in unvisited(node, self._defs):
            found = self._own_defs(part)
            for arg in part.args:
                if not self._defs[arg] <= found:
                    found |= self._defs[arg]
            self._defs[part] = found
        return self._defs[node]

    def _own_defs(self, node: Node) -> frozenset[int]:
        cfg = self._values.cfg
        if node.op == "phi":
            block = int(node.data[1])
            return frozenset((cfg.blocks[block].start,)) if cfg.loops_of.get(block) else frozenset()
        index = -1
        if node.op == "shfl":
            index = int(node.data[0])
        elif node.op == "var" and "@" in (name := str(node.data[0])):
            index = int(name.split("@")[1].split(".")[0])
        return frozenset((index,)) if index >= 0 and cfg.loops_of.get(cfg.block_of(index)) else frozenset()

    # --- thread sets -----------------------------------------------------------------------------

    def guard(self, index: int) -> ThreadSet:
        instruction = self._values.cfg.instructions[index]
        if instruction.guard is None:
            return ALL
        predicate = self._values.builder.register(instruction.guard, index)
        return self.satisfying(predicate, not instruction.guard_negated)

    def edge(self, source: int, target: int) -> ThreadSet:
        found = self._values.edge_predicate(source, target)
        if found is None:
            return ALL
        atoms = self.satisfying(*found)
        left = self._left(source, target)
        if not left:
            return atoms
        home = self._values.cfg.home
        return frozenset(a for a in atoms if not a.defs or any(home[d] not in left for d in a.defs))

    def _left(self, source: int, target: int) -> set[int]:
        """Blocks of the loops that an edge leaves. Every thread of such a loop leaves it some time: its last condition
        tells when, not who."""
        cfg = self._values.cfg
        loops = set(cfg.loops_of.get(source, ())) - set(cfg.loops_of.get(target, ()))
        return {block for number in loops for block in cfg.loops[number].blocks}

    def threads(self, index: int) -> ThreadSet:
        cfg = self._values.cfg
        instruction = cfg.instructions[index]
        guard = instruction.guard
        predicate = None if guard is None else self._values.builder.register(guard, index)
        key = (cfg.block_of(index), predicate, instruction.guard_negated)
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = unmasked(simplified(self.block(key[0]) | self.guard(index)))
        return found

    def block(self, block: int) -> ThreadSet:
        """Threads that come to a block, by the branches that dominate it."""
        chain: list[int] = []
        idom = self._values.cfg.idom
        while block not in self._blocks:
            chain.append(block)
            parent = idom.get(block, block)
            if parent == block:
                self._blocks[block] = ALL
                chain.pop()
                break
            block = parent
        for block in reversed(chain):
            parent = idom[block]
            atoms = self._blocks[parent]
            cfg = self._values.cfg
            preds = [p for p in cfg.preds[block] if p in cfg.rank and not cfg.dominates(block, p)]
            if preds == [parent]:
                atoms = simplified(atoms | self.edge(parent, block))
            self._blocks[block] = atoms
        return self._blocks[chain[0]] if chain else self._blocks[block]

    def satisfying(self, predicate: Node, truth: bool) -> ThreadSet:
        """Threads for which `predicate` is `truth`."""
        if predicate.op == "lin":
            return ALL
        key = (predicate, truth)
        found = self._satisfying.get(key)
        if found is None:
            atoms: set[Atom] = set()
            self._collect(predicate, truth, atoms)
            found = self._satisfying[key] = simplified(frozenset(atoms))
        return found

    def _collect(self, predicate: Node, truth: bool, atoms: set[Atom]) -> None:
        if predicate.op == "pnot":
            self._collect(predicate.args[0], not truth, atoms)
            return
        if predicate.op in ("and2", "or") and (predicate.op == "and2") == truth:
            for part in predicate.args:
                self._collect(part, truth, atoms)
            return
        if predicate.op == "cmp" and (atom := self._compared(predicate, truth)) is not None:
            atoms.add(atom)
            return
        name, varies, defs = self.identity(predicate)
        occupied = truth and name.startswith("elect")
        atoms.add(Atom(name, int(truth), int(truth) + 1, False, varies, defs, occupied))

    def _compared(self, predicate: Node, truth: bool) -> Atom | None:
        """A comparison with a constant as a range of its key."""
        values = self._values
        graph = values.builder.graph
        found = next(iter(facts(graph, predicate, truth)), None)
        if found is None or not graph.is_const(found[2]):
            return None
        for node, lo, hi, width in values.solver.conditions(predicate, truth):
            key = self._key(node)
            if key is not None:
                return self._ranged(node, key, lo, hi, width)
        rows = [row for row in values.solver.conditions(predicate, truth) if row[0] is not predicate]
        if not rows:
            return None
        node, lo, hi, width = next((row for row in reversed(rows) if row[0].op in ("var", "phi")), rows[0])
        return self._ranged(node, self.identity(node)[0], lo, hi, width)

    def _key(self, node: Node) -> str | None:
        if node.op == "var" and str(node.data[0]) in ("tid.x", "tid.y", "tid.z"):
            return str(node.data[0])
        if node.op == "var" and node.data[0] == "laneid":
            return "lane"
        if node.op == "and" and self._key(node.args[0]) == "tid.x":
            mask = int(node.data[0])
            return "lane" if mask == 31 else f"tid.x&{mask}" if mask & (mask + 1) == 0 else None
        return None

    def _ranged(self, node: Node, key: str, lo: int, hi: int, width: int) -> Atom:
        _, varies, defs = self.identity(node)
        limit = 1 << width
        value = self._values.solver.evaluate(node)
        least, most = min(s.lo for s in value), max(s.hi for s in value)
        negated = hi >= limit and hi + 1 - limit < lo  # the range wraps around and leaves a gap
        if negated:
            lo, hi = hi + 1 - limit, lo - 1
        elif hi >= limit:  # the range wraps around and meets itself: anything
            lo, hi = least, most
        occupied = False
        if key in ("tid.x", "lane") and not negated:
            count = self._values.builder.launch.threads if key == "tid.x" else 1
            occupied = lo <= 0 <= hi or (count is not None and key == "tid.x" and lo < count and hi >= lo)
        if negated and lo <= least:  # the excluded range is at an edge: an ordinary range
            occupied = occupied or (key == "tid.x" and self._occupied(hi + 1))
            return Atom(key, hi + 1, most + 1, False, varies, defs, occupied)
        if negated and hi >= most:
            return Atom(key, least, lo, False, varies, defs, least == 0 and key in ("tid.x", "lane"))
        if not negated:
            lo, hi = max(lo, least), min(hi, most)
        return Atom(key, lo, hi + 1, negated, varies, defs, occupied)

    def _occupied(self, lo: int) -> bool:
        count = self._values.builder.launch.threads
        return count is not None and lo < count


def simplified(atoms: ThreadSet) -> ThreadSet:
    """Ranges of one key intersected."""
    ranges: dict[str, Atom] = {}
    rest: set[Atom] = set()
    for atom in atoms:
        if atom.negated:
            rest.add(atom)
            continue
        old = ranges.get(atom.key)
        if old is None:
            ranges[atom.key] = atom
            continue
        lo, hi = max(old.lo, atom.lo), min(old.hi, atom.hi)
        narrow = atom if (lo, hi) == (atom.lo, atom.hi) else old
        occupied = narrow.occupied if (lo, hi) == (narrow.lo, narrow.hi) else False
        ranges[atom.key] = Atom(atom.key, lo, hi, False, atom.varies, old.defs | atom.defs, occupied)
    return frozenset(rest | set(ranges.values()))


def unmasked(atoms: ThreadSet) -> ThreadSet:
    """`tid.x & m` and the lane as ranges of `tid.x`, where `tid.x` is known to be in one block of `m + 1` threads."""
    whole = next((atom for atom in atoms if atom.key == "tid.x" and not atom.negated), None)
    if whole is None:
        return atoms
    result: set[Atom] = set()
    for atom in atoms:
        mask = 31 if atom.key == "lane" else int(atom.key[6:]) if atom.key.startswith("tid.x&") else 0
        block = whole.lo & ~mask
        if not mask or whole.hi - 1 > block | mask:
            result.add(atom)
            continue
        occupied = atom.occupied or (whole.occupied and not atom.negated and whole.lo == block and atom.lo == 0)
        result.add(Atom("tid.x", block + atom.lo, block + atom.hi, atom.negated, True, atom.defs, occupied))
    return simplified(frozenset(result))
