"""Which bytes a region covers over all its threads, and over some of them."""

from __future__ import annotations

from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.region import Region, Term
from ptxfence.analysis.universe import MOST_THREADS, TID


def outside(region: Region, span: tuple[int, int], most: int = MOST_THREADS) -> tuple[Region, ...]:
    """What threads outside `span` (of tid.x, below `most`) touch of a region, where its linear form tells; else
    nothing."""
    terms = region.terms
    if terms is None or any(term.varies and term.variable != TID for term in terms):
        return ()
    found: list[Region] = []
    for lo, hi in ((0, span[0] - 1), (span[1], most - 1)):
        inside = [t._replace(lo=max(t.lo, lo), hi=min(t.hi, hi)) if t.variable == TID else t for t in terms]
        if lo <= hi and all(t.lo <= t.hi for t in inside):
            found.append(_bounded(region, tuple(inside)))
    return tuple(found)


def _bounded(region: Region, terms: tuple[Term, ...]) -> Region:
    """The region with fewer threads, and its bounds as far as the linear form gives them."""
    if region.origin is None or not region.bounded or any(t.lo < 0 for t in terms):
        return region._replace(terms=terms)
    lo = region.origin + sum(t.scale * (t.lo if t.scale > 0 else t.hi) for t in terms)
    hi = region.origin + sum(t.scale * (t.hi if t.scale > 0 else t.lo) for t in terms) + region.width
    return region._replace(terms=terms, lo=lo, hi=hi)


def dense(region: Region) -> bool:
    """Whether the threads together touch every byte of the region's bounds, each time it is executed."""
    if not region.exact or region.terms is None or not region.bounded:
        return False
    covered = region.width
    for term in sorted(region.terms, key=lambda t: abs(t.scale * t.step)):
        if term.hi == term.lo:
            continue
        stride = abs(term.scale * term.step)
        swizzle = term.lo < 0  # goes with the other terms, not alone
        if swizzle or term.defs or not term.varies or stride > covered:
            return False
        covered += stride * ((term.hi - term.lo) // term.step)
    assert region.lo is not None
    assert region.hi is not None
    return covered >= region.hi - region.lo


def fixed(region: Region) -> bool:
    """Whether each thread touches one place, whatever the iteration and the way there."""
    if region.terms is None:
        return False
    return not any(term.defs or (term.lo != term.hi and not term.varies) for term in region.terms)


def tiled(region: Region) -> bool:
    """Whether every byte of the bounds is touched in some iteration, by some thread."""
    if not region.exact or region.terms is None or region.lo is None or region.hi is None:
        return False
    covered = region.width
    for term in sorted(region.terms, key=lambda t: abs(t.scale * t.step)):
        stride = abs(term.scale * term.step)
        if term.hi == term.lo:
            continue
        if stride > covered:
            return False
        covered += stride * ((term.hi - term.lo) // term.step)
    return covered >= region.hi - region.lo


def too_many(region: Region, threads: int, read: Region) -> bool:
    """Whether that many threads cannot alone have touched, with one execution each, what lies in `read`."""
    return dense(region) and region.holds(read) and read.width > threads * region.width


def first(region: Region, width: int) -> Region:
    """The `width` bytes at the lower bound; a region that overlaps nothing for certain where a swizzle may keep every
    thread from them."""
    if region.lo is None or any(term.lo < 0 or term.defs for term in region.terms or ()):
        return region._replace(lo=None, hi=None, exact=False, terms=None)
    return region._replace(
        hi=region.lo + width, width=width, exact=True, step=0, span=0, bounded_by="", origin=region.lo, terms=()
    )


def surely(a: Region, b: Region) -> bool:
    """Whether the two overlap for certain."""
    how = overlap(a, b)
    if how is not Overlap.MAYBE:
        return how is Overlap.CERTAIN
    return a.peer == b.peer and a.base is not None and a.base == b.base and dense(a) and dense(b)
