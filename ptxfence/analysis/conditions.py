"""Which threads execute an instruction: conjunctions of atoms over thread indices and predicates."""

from __future__ import annotations

from typing import NamedTuple


class Atom(NamedTuple):
    """`lo <= key < hi`, or `key` outside `[lo, hi)` when `negated`.

    `key` is a value number. Predicates are keys with the range [1, 2). Keys of thread identity are spelled
    `tid.x`, `tid.x>>5` (the warp of a one-dimensional CTA), `lane` and `elect`; anything else is opaque.

    `varies`: different threads of one CTA can answer differently. An atom that does not vary is a uniform
    path condition: it never tells who executes, only whether the whole CTA does.
    `defs`: indices of the instructions whose re-execution (a loop) gives the key a new value; empty for keys
    that hold one value per thread through the whole kernel.
    `occupied`: at least one thread of every CTA is known to satisfy it.
    """

    key: str
    lo: int
    hi: int
    negated: bool = False
    varies: bool = True
    defs: frozenset[int] = frozenset()
    occupied: bool = False


ThreadSet = frozenset[Atom]
ALL: ThreadSet = frozenset()


def implies(a: Atom, b: Atom) -> bool:
    """Whether every thread that satisfies `a` satisfies `b`."""
    if a.key != b.key:
        return False
    if not a.negated and not b.negated:
        return b.lo <= a.lo and a.hi <= b.hi
    if a.negated and b.negated:
        return a.lo <= b.lo and b.hi <= a.hi
    if b.negated:
        return a.hi <= b.lo or b.hi <= a.lo
    return False


def contradicts(a: Atom, b: Atom) -> bool:
    """Whether no thread can satisfy both."""
    if a.key != b.key or (a.negated and b.negated):
        return False
    if a.negated:
        return a.lo <= b.lo and b.hi <= a.hi
    if b.negated:
        return b.lo <= a.lo and a.hi <= b.hi
    return a.hi <= b.lo or b.hi <= a.lo


def subset(a: ThreadSet, b: ThreadSet) -> bool:
    """Whether `a` is provably within `b`."""
    return all(any(implies(x, y) for x in a) for y in b)


def disjoint(a: ThreadSet, b: ThreadSet) -> bool:
    """Whether `a` and `b` provably share no thread."""
    return any(contradicts(x, y) for x in a for y in b)
