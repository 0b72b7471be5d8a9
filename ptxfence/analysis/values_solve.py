"""Evaluation of expressions: context-free, under path conditions, and the fixpoints of loops.

Cycles run through phi nodes only. Each strongly connected component of phis is iterated from bottom, edge by edge
under the conditions of that edge; after ROUNDS rounds a bound that still moves jumps to the next threshold (a
constant that the component compares with), then two descending rounds win back what the jump lost.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from ptxfence.analysis import values_transfer as transfer
from ptxfence.analysis.values_cycles import COUNTER, components, landmarks, widened, widest
from ptxfence.analysis.values_domain import (
    Value,
    add,
    base_value,
    bounds,
    clip,
    constant,
    hull,
    join,
    plain,
    scale,
    shift,
    top,
)
from ptxfence.analysis.values_enumerate import enumerate_threads, tangled, thread_only
from ptxfence.analysis.values_env import EMPTY, Constraint, Env, constraints, impossible, share
from ptxfence.analysis.values_graph import Graph
from ptxfence.analysis.values_nodes import Node, unvisited
from ptxfence.analysis.values_operate import operate

ROUNDS = 12
MAX_ROUNDS = 60
NESTED = 2  # selections refined inside each other; more would cost a factor 2 each
MAX_THREADS = 1024
DEEPEST = 24  # operations behind each other that a condition is followed through

PhiArgs = list[tuple[int, Node]]  # (predecessor block, value on that edge)


class Solver:
    """Values of nodes. `phi_args` gives the arguments of a phi, None while it is being built;
    `edge_env` the conditions that hold on a control-flow edge; `leaf` the value of a variable."""

    def __init__(self) -> None:
        self.graph = Graph(self.evaluate)
        self.leaves: dict[str, Value] = {}
        self.phi_args: dict[Node, PhiArgs] = {}
        self.edge_env: Callable[[int, int], Env] = lambda a, b: EMPTY
        self._known: set[Node] = set()  # nodes with a context-free value
        self._pending: set[Node] = set()
        self._guessing = False
        self._depth = 0
        self._by_thread: dict[tuple[Node, int, int], Value] = {}
        self._guesses: dict[Node, Value] = {}
        self._assigned: dict[Node, Value] = {}
        self._ways: dict[Node, list[Node]] = {}
        self._memo: dict[tuple[int, Env], Value] = {}
        self._scratch: dict[tuple[int, Env], Value] = {}
        self._selected: dict[tuple[Env, Node, bool, int], Env] = {}
        self._constraints: dict[tuple[Node, bool], list[Constraint]] = {}

    # --- context-free ----------------------------------------------------------------------------

    def evaluate(self, node: Node) -> Value:
        """All values that the node can have anywhere; a wide guess while a phi it needs is being solved."""
        if node.av is not None:
            return node.av
        for phi in node.phis:
            if phi.av is None and not self._solve(phi):
                return self._guess(node)
        for part in unvisited(node, self._known) if None in [arg.av for arg in node.args] else (node,):
            if part.av is None:
                part.av = self._compute(part, EMPTY) or top(part.width or 64)
            self._known.add(part)
        return node.av or top(node.width or 64)

    def _guess(self, node: Node) -> Value:
        """A value that holds whatever the unsolved phis turn out to be."""
        found = node.av or self._guesses.get(node)
        if found is None:
            saved, self._guessing = self._guessing, True
            try:
                for part in unvisited(node, self._guesses):
                    if part.av is None:
                        self._guesses[part] = self._compute(part, EMPTY) or top(part.width or 64)
            finally:
                self._guessing = saved
            found = self._guesses.get(node) or top(node.width or 64)
        return found

    def under(self, node: Node, env: Env) -> Value:
        """Values of the node where `env` holds. Never empty."""
        if env.empty or not env.concerns(node):
            return self.evaluate(node)
        for phi in node.phis:
            if phi.av is None and not self._solve(phi):
                return self._guess(node)
        try:
            return self._value(node, env) or self.evaluate(node)
        except RecursionError:  # thousands of nested conditions: do without them
            return self.evaluate(node)

    # --- one evaluation --------------------------------------------------------------------------

    def _value(self, node: Node, env: Env) -> Value:
        if self._guessing:
            return self._guess(node)
        assigned = self._assigned
        loose = bool(assigned) and not node.phis.isdisjoint(assigned)
        if not loose and (env.empty or not env.concerns(node)):
            return self.evaluate(node)
        memo = self._scratch if loose else self._memo
        key = (node.id, env)
        found = memo.get(key)
        if found is None:
            if self._depth >= DEEPEST:
                return self._guess(node) if loose else self.evaluate(node)
            self._depth += 1
            try:
                found = memo[key] = self._compute(node, env)
            finally:
                self._depth -= 1
        return found

    def _compute(self, node: Node, env: Env) -> Value:
        op = node.op
        if op == "lin":
            return self._linear(node, env)
        if op == "phi":
            value = self._phi(node, env)
        elif op == "var":
            value = self.leaves.get(str(node.data[0])) or top(node.width)
        elif op == "sym":
            value = transfer.shift_right(base_value(str(node.data[0])), int(node.data[1]), 64)
        elif op == "selp":
            value = self._select(node, env) if env.depth < NESTED else self._value(node, env.outer)
        elif op == "shfl":  # another lane's value: what holds here need not hold there
            value = self._value(node.args[0], env.of_warp())
        else:
            args: list[Value] = []
            for arg in node.args:
                value = self._value(arg, env)
                if not value:
                    return ()
                args.append(value)
            value = operate(node, args)
        if node in env.table:
            value = env.apply(node, value)
        return self._by_forms(node, value, env) if node in env.forms else value

    def _by_forms(self, node: Node, value: Value, env: Env) -> Value:
        """Cut an atom's value by the constrained linear forms that it is a term of."""
        for form, lo, hi, width in env.forms[node]:
            if not value or not plain(value):
                return value
            k = 1
            rest_lo = rest_hi = 0
            for atom, factor in form.terms:
                if atom is node:
                    k = factor
                    continue
                other = self._value(atom, EMPTY)
                if not other or not plain(other):
                    break
                low, high = bounds(other)
                rest_lo += min(low * factor, high * factor)
                rest_hi += max(low * factor, high * factor)
            else:
                low, high = bounds(value)
                total = rest_lo + min(low * k, high * k), rest_hi + max(low * k, high * k)
                if self._assigned and impossible(total, (lo, hi, width)):
                    return ()  # not yet: a loop is being solved from nothing upwards
                found = share(total, (rest_lo, rest_hi), k, (lo, hi, width))
                value = (found and clip(value, *found, 64)) or value
        return value

    def _phi(self, node: Node, env: Env) -> Value:
        value = None if self._guessing else self._assigned.get(node)
        if value is not None:
            return value
        if node.alias is not None:
            return self._value(node.alias, env)
        return widest(node) if self._guessing else self.evaluate(node)

    def _linear(self, node: Node, env: Env) -> Value:
        total: Value = ()
        for atom, k in node.terms:
            part = self._value(atom, env)
            if not part:
                return ()
            part = scale(part, k)
            total = add(total, part) if total else part
        if not node.terms:
            return constant(node.const)
        if env.forms and len(node.terms) > 1:
            total = self._bounded_sum(node, env) or total
        if not self._guessing and len(node.terms) > 1 and tangled(node, total):
            total = self._enumerated(node, env) or total
        return shift(total, node.const)

    def _bounded_sum(self, node: Node, env: Env) -> Value:
        """The sum where a condition bounds its terms together, or a fraction of them; empty without one."""
        terms = {atom: k for atom, k in node.terms if atom.op != "sym"}
        factor = gcd(*terms.values()) if terms else 0
        if len(terms) < 2:
            return ()
        shape = self.graph.linear(0, {atom: k // factor for atom, k in terms.items()}, 64)
        if shape not in env.table:
            return ()
        total = constant(0)
        for atom, k in terms.items():
            part = self._value(atom, env)
            if not part:
                return ()
            total = add(total, scale(part, k // factor))
        total = scale(env.apply(shape, total), factor)
        for atom, k in node.terms:
            if atom.op == "sym":
                total = add(total, scale(self._value(atom, env), k))
        return total

    def _enumerated(self, node: Node, env: Env) -> Value:
        """The sum, its thread-dependent terms evaluated together for every thread; empty if there are too few."""
        group = {atom: k for atom, k in node.terms if thread_only(atom)}
        if len(group) < 2:
            return ()
        tid = self.graph.var("tid.x")
        threads = self._value(tid, env)
        if len(threads) != 1 or threads[0].hi - threads[0].lo > MAX_THREADS:
            return ()
        key = (self.graph.linear(0, group, 64), threads[0].lo, threads[0].hi)
        found = self._by_thread.get(key)
        if found is None:
            found = self._by_thread[key] = enumerate_threads(key[0], tid, threads[0].lo, threads[0].hi)
        for atom, k in node.terms:
            if atom not in group and found:
                part = self._value(atom, env)
                found = add(found, scale(part, k)) if part else ()
        return found

    def _select(self, node: Node, env: Env) -> Value:
        predicate, a, b = node.args
        truth = self._value(predicate, env)
        result: Value = ()
        for branch, taken in ((a, True), (b, False)):
            if len(truth) == 1 and truth[0].lo == truth[0].hi == int(not taken):
                continue
            value = self._value(branch, self.assume(env, predicate, taken, 1))
            if value:
                result = join(result, value) if result else value
        return result

    def assume(self, env: Env, predicate: Node, truth: bool, deeper: int = 0) -> Env:
        """`env` and `predicate == truth`; `deeper` counts the selections that are refined inside each other."""
        key = (env, predicate, truth, deeper)
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = env.extended(self.conditions(predicate, truth), deeper)
        return found

    def conditions(self, predicate: Node, truth: bool) -> list[Constraint]:
        key = (predicate, truth)
        found = self._constraints.get(key)
        if found is None:
            found = self._constraints[key] = constraints(self.graph, predicate, truth)
        return found

    # --- fixpoints -------------------------------------------------------------------------------

    def _solve(self, phi: Node) -> bool:
        """Solve the component of `phi` and all it needs; False where a phi in work stands in the way."""
        order = components(phi, self._needs)
        if order is None:
            return False
        for component in order:
            if component[0].av is None:
                self._prepare(component)
        return True

    def _needs(self, phi: Node) -> list[Node] | None:
        if phi in self._pending:
            return None
        found: set[Node] = set()
        if phi.alias is not None:
            found.update(phi.alias.phis)
        elif phi in self.phi_args:
            for _, arg in self.phi_args[phi]:
                found |= arg.phis
        else:
            return None
        return sorted((n for n in found if n.av is None), key=lambda n: n.id)

    def _prepare(self, component: list[Node]) -> None:
        """Build every edge condition first: that may solve other phis, and needs these marked as in work."""
        pending = self._pending
        pending.update(component)
        saved, saved_scratch = self._assigned, self._scratch
        values: dict[Node, Value] = {}
        try:
            edges = [(phi, self._edges(phi)) for phi in component]
            self._assigned, self._scratch = dict.fromkeys(component, ()), {}
            values = self._iterate(edges)
        except RecursionError:  # too deep to follow: anything
            values = {phi: widest(phi) for phi in component}
        finally:
            self._assigned, self._scratch = saved, saved_scratch
            pending.difference_update(component)
        for phi, value in values.items():
            phi.av = value or widest(phi)

    def _edges(self, phi: Node) -> list[tuple[Node, Env]]:
        if phi.alias is not None:
            return [(phi.alias, EMPTY)]
        block = int(phi.data[1])
        return [(arg, self.edge_env(pred, block)) for pred, arg in self.phi_args[phi]]

    def _iterate(self, edges: list[tuple[Node, list[tuple[Node, Env]]]]) -> dict[Node, Value]:
        assigned = self._assigned
        cyclic = len(edges) > 1 or any(edges[0][0] in arg.phis for arg, _ in edges[0][1])
        if not cyclic:
            phi, incoming = edges[0]
            return {phi: self._joined(incoming)}
        thresholds: list[int] | None = None
        patience = 2 if all(phi.data[0] == COUNTER for phi, _ in edges) else ROUNDS  # a counter is no ring
        for round_number in range(MAX_ROUNDS):
            changed = False
            for phi, incoming in edges:
                old = assigned[phi]
                new = hull(join(old, joined) if old else joined) if (joined := hull(self._joined(incoming))) else old
                if new != old and round_number >= patience and old:
                    thresholds = thresholds or self._thresholds(edges)
                    new = widened(old, new, thresholds if round_number < MAX_ROUNDS - 5 else [], phi)
                if new == old:
                    continue
                changed = True
                assigned[phi] = new
                self._scratch.clear()
            if not changed:
                break
        else:
            return {phi: widest(phi) for phi, _ in edges}
        for _ in range(2):
            for phi, incoming in edges:
                new, old = hull(self._joined(incoming)), assigned[phi]
                if new and new != old and hull(join(old, new)) == old:
                    assigned[phi] = new
                    self._scratch.clear()
        return dict(assigned)

    def _joined(self, incoming: list[tuple[Node, Env]]) -> Value:
        result: Value = ()
        for arg, env in incoming:
            for part in self._long_way(arg):
                self._value(part, env)
            value = self._value(arg, env)
            if value:
                result = join(result, value) if result else value
        return result

    def _long_way(self, arg: Node) -> list[Node]:
        """What is between a phi and its argument, in order, where that is more than recursion should follow: a counter
        that an unrolled loop steps many times."""
        found = self._ways.get(arg)
        if found is None:
            order = unvisited(arg, self._known)
            found = self._ways[arg] = order if len(order) > DEEPEST else []
        return found

    def _thresholds(self, edges: list[tuple[Node, list[tuple[Node, Env]]]]) -> list[int]:
        found: set[int] = {0}
        seen: set[Node] = set()
        members = {phi for phi, _ in edges}
        work: list[Node] = []
        for _, incoming in edges:
            for arg, env in incoming:
                work.append(arg)
                for node, rows in env.table.items():
                    if not members.isdisjoint(node.phis):
                        for lo, hi, _ in rows:
                            found.update(landmarks(node, lo, hi, members, self._anywhere))
        while work:
            node = work.pop()
            if node in seen or members.isdisjoint(node.phis):
                continue
            seen.add(node)
            work.extend(node.args)
            if node.op == "selp":
                for truth in (True, False):
                    for form, lo, hi, _ in self.conditions(node.args[0], truth):
                        found.update(landmarks(form, lo, hi, members, self._anywhere))
        return sorted(found)

    def _anywhere(self, node: Node) -> Value:
        return self._value(node, EMPTY) or constant(0)
