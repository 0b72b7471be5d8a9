"""Which bytes of two regions can be the same: numerically, and along their linear forms, where large strides (ring
stages, warps) keep small extents apart."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from ptxfence.analysis.region import SHARED, UNBOUNDED, Base, BaseKind, Region


class Overlap(Enum):
    """Whether two accesses can touch a common byte."""

    NO = 0
    MAYBE = 1
    CERTAIN = 2


class Outline(NamedTuple):
    """Where a region's instances start: a constant and terms (coefficient, largest multiple, variable or "") over
    variables that count from 0; and how wide one is."""

    const: int
    terms: tuple[tuple[int, int, str], ...]
    width: int


def unnamed(region: Region) -> object:
    """All that a comparison of any two instances looks at: the names of variables are not, and copies of one
    instruction, as unrolling leaves them, differ in those alone."""
    terms = region.terms and tuple((t.scale, t.lo, t.hi, t.step) for t in region.terms)
    return region._replace(terms=None, lost=None), terms


def overlap(a: Region, b: Region, outlines: tuple[Outline, Outline] | None = None) -> Overlap:
    """Any thread's bytes of `a` with any thread's bytes of `b`, in any iterations. `outlines` of the two, where the
    caller compares them often."""
    return _compare(a, b, False, outlines)


def same_thread_overlap(a: Region, b: Region) -> Overlap:
    """Bytes of one thread in one iteration: equal variables hold equal values and cancel."""
    return _compare(a, b, True)


def covers(a: Region, b: Region) -> bool:
    """Whether one instance of `a` certainly touches every byte that `b` may touch."""
    place = _place(a)
    if place is None or a.base != b.base or not b.bounded:
        return False
    assert b.lo is not None and b.hi is not None
    return place[0] <= b.lo and b.hi <= place[1] and a.peer == b.peer


def _place(a: Region) -> tuple[int, int] | None:
    """The bytes of an exact region that is the same for all threads and iterations."""
    if not a.exact or a.base is None or a.terms is None or a.origin is None:
        return None
    if any(t.hi > t.lo for t in a.terms):
        return None
    start = a.origin + sum(t.scale * t.lo for t in a.terms)
    return start, start + a.width


def apart(a: Region, b: Region) -> bool:
    """Whether two regions have no byte in common by their bases or bounds alone. Quick; says less than `overlap`."""
    if a.base is None or b.base is None:
        return False
    if a.base != b.base:
        return BaseKind.OPAQUE not in (a.base.kind, b.base.kind)
    if a.lo is not None and b.hi is not None and a.lo >= b.hi:
        return True
    return b.lo is not None and a.hi is not None and b.lo >= a.hi


def _compare(a: Region, b: Region, same: bool, outlines: tuple[Outline, Outline] | None = None) -> Overlap:
    if apart(a, b):
        return Overlap.NO
    if a.base is None or a.base != b.base or not (a.bounded and b.bounded):
        return Overlap.MAYBE
    left, right = outlines or (outline(a), outline(b))
    if not _meets(left, right, same):
        return Overlap.NO
    return Overlap.CERTAIN if not (a.peer or b.peer) and (covers(a, b) or covers(b, a)) else Overlap.MAYBE


def outline(region: Region) -> Outline:
    """The outline of a bounded region."""
    assert region.lo is not None and region.hi is not None
    wide = max(1, region.width or region.hi - region.lo)
    if region.terms is None or region.origin is None:
        width = region.width if region.exact or not region.span else region.span
        last = region.hi - region.lo - max(width, 1)
        step = region.step or 1
        return Outline(region.lo, ((step, last // step, ""),) if last > 0 else (), wide)
    const = region.origin
    terms: list[tuple[int, int, str]] = []
    for t in region.terms:
        const += t.scale * t.lo
        if t.hi > t.lo:
            terms.append((t.scale * t.step, (t.hi - t.lo) // t.step, t.variable))
    return Outline(const, tuple(terms), wide)


def _meets(a: Outline, b: Outline, same: bool) -> bool:
    """Whether some instances of the two share a byte, as far as the linear forms tell."""
    apart = (*[(k, n) for k, n, _ in a.terms], *[(-k, n) for k, n, _ in b.terms])
    return _reachable(a.const - b.const, _differences(a, b) if same else apart, 1 - a.width, b.width - 1)


def _differences(a: Outline, b: Outline) -> tuple[tuple[int, int], ...]:
    """Terms of the difference of two starts of one thread in one iteration."""
    terms: list[tuple[int, int]] = []
    others = {name: (k, n) for k, n, name in b.terms if name}
    for k, n, name in a.terms:
        if name in others:
            back, count = others.pop(name)
            if k != back:
                terms.append((k - back, max(n, count)))
        else:
            terms.append((k, n))
    terms += [(-k, n) for k, n in others.values()]
    terms += [(-k, n) for k, n, name in b.terms if not name]
    return tuple(terms)


def _reachable(const: int, terms: tuple[tuple[int, int], ...], lo: int, hi: int) -> bool:
    """Whether `const + sum(k * x)`, `0 <= x <= n`, can lie in `[lo, hi]`: gaps between multiples of large strides."""
    lo, hi = lo - const, hi - const
    low, high, cuts = _cuts(terms)
    if low > hi or high < lo:
        return False
    for stride, big_low, big_high, low, high in cuts:
        first, last = max(lo - high, big_low), min(hi - low, big_high)
        if first > last or -(-first // stride) * stride > last:
            return False
    return True


@lru_cache(maxsize=1 << 12)
def _cuts(terms: tuple[tuple[int, int], ...]) -> tuple[int, int, tuple[tuple[int, int, int, int, int], ...]]:
    """Least and greatest value of `sum(k * x)`; and for each number of largest terms the stride of their sum and its
    bounds, and the bounds of the rest. Kept: accesses that differ in a constant share them."""
    low = sum(k * n for k, n in terms if k < 0)
    high = sum(k * n for k, n in terms if k > 0)
    found: list[tuple[int, int, int, int, int]] = []
    stride = big_low = big_high = 0
    rest_low, rest_high = low, high
    for k, n in sorted(terms, key=lambda t: -abs(t[0])):
        stride = gcd(stride, k)
        move = k * n
        big_low, big_high = big_low + min(0, move), big_high + max(0, move)
        rest_low, rest_high = rest_low - min(0, move), rest_high - max(0, move)
        found.append((stride, big_low, big_high, rest_low, rest_high))
    return low, high, tuple(found)


def classes(regions: Sequence[Region]) -> list[list[int]]:
    """Alias classes: positions in `regions`, grouped so that regions of different groups share no byte.

    A region without a base is in a group of its own: it may be anything.
    """
    parent = list(range(len(regions)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    by_base: dict[tuple[Base, bool], dict[Region, list[int]]] = {}
    for i, region in enumerate(regions):
        if region.base is not None:
            by_base.setdefault((region.base, region.space in SHARED), {}).setdefault(region, []).append(i)
    for groups in by_base.values():
        order = sorted(groups, key=lambda r: r.lo if r.lo is not None else -UNBOUNDED)
        for members in groups.values():
            for other in members[1:]:
                parent[root(other)] = root(members[0])
        active: list[Region] = []
        for region in order:
            start = region.lo if region.lo is not None else -UNBOUNDED
            active = [r for r in active if r.hi is None or r.hi > start]
            for other in active:
                one, two = root(groups[region][0]), root(groups[other][0])
                if one != two and overlap(region, other) is not Overlap.NO:
                    parent[one] = two
            active.append(region)
    found: dict[int, list[int]] = {}
    for i in range(len(regions)):
        found.setdefault(root(i), []).append(i)
    return list(found.values())
