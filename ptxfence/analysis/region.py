"""A set of bytes, as the value analysis knows it and the flow compares it.

Named tuples instead of dataclasses: made, hashed and compared by the thousand, which costs a fifth so.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ptxfence.analysis.effects import Space

UNBOUNDED = 1 << 18  # no offset in shared memory is larger
SHARED = (Space.CTA, Space.CLUSTER)


class BaseKind(Enum):
    __hash__ = object.__hash__  # of a singleton; Enum's own hashes the name, in Python

    SYMBOL = "symbol"  # a declared variable
    OPAQUE = "opaque"  # a parameter, an unknown load, a call result: equal only to itself


class Base(NamedTuple):
    """What an address is relative to. Two opaque bases with one name hold one value."""

    kind: BaseKind
    name: str


class Term(NamedTuple):
    """`scale * variable` of the linear form of an address; `variable` is a value number such as `tid.x` or `i@12`.

    `varies` tells whether different threads of one CTA can hold different values of the variable.
    """

    variable: str
    scale: int
    lo: int
    hi: int
    varies: bool
    step: int = 1  # the variable takes values `lo + k * step`
    defs: frozenset[int] = frozenset()  # instructions whose re-execution (a loop) gives it a new value


class Region(NamedTuple):
    """Bytes that one access may touch, over all threads that execute it and all iterations.

    The bytes lie in `[lo, hi)` relative to `base` (None bounds: unbounded). With `step` > 0 they lie in
    slots `[lo + k * step, lo + k * step + width)`. `exact`: every byte of one instance is known to be
    touched and an instance covers `width` bytes at a single place (`origin + sum(terms)`).
    `terms` is the linear form where it is known; `origin` is its constant part (all variables zero).
    """

    space: Space
    base: Base | None
    lo: int | None = None
    hi: int | None = None
    step: int = 0
    width: int = 0
    exact: bool = False
    origin: int | None = None
    terms: tuple[Term, ...] | None = None
    peer: bool = False  # may lie in another CTA of the cluster
    lost: int | None = None  # index of the instruction where the bound (or the base) was lost
    bounded_by: str = ""  # what bounded it where the text alone does not: "symbol", "neighbour", "expect_tx"
    span: int = 0  # with `step`: bytes from a slot's start to its end, over all threads

    @property
    def bounded(self) -> bool:
        return self.base is not None and self.lo is not None and self.hi is not None

    def holds(self, other: Region) -> bool:
        """Whether both are bounded and relative to one base, and this range includes the other."""
        if self.base is None or self.base != other.base:
            return False
        if self.lo is None or self.hi is None or other.lo is None or other.hi is None:
            return False
        return self.lo <= other.lo and other.hi <= self.hi
