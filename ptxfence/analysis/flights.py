"""Operations in flight and reuses of their bytes: which pairs PF120 speaks of, and how sure they are."""

from __future__ import annotations

from dataclasses import replace

from ptxfence.analysis import extent
from ptxfence.analysis.conditions import subset
from ptxfence.analysis.effects import Access, Box, Completion, Copy, Matrix, Mode, Proxy
from ptxfence.analysis.events import Touch
from ptxfence.analysis.extent import dense, first, outside, surely
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.region import Region
from ptxfence.analysis.universe import MOST_THREADS, WARP, one_thread, warp_range

WARPGROUP = 128
LEAST = 16
GROUPS = (Completion.BULK_GROUP, Completion.WGMMA)


def one_issuer(touch: Touch) -> bool:
    span = warp_range(touch.threads)
    return one_thread(touch.threads) and span is not None and span[1] - span[0] == WARP


def least(touch: Touch) -> Touch:
    """The touch with the bytes that it certainly has: of a tensor box the first sixteen."""
    region = touch.region
    if not isinstance(touch.access.footprint, Box) or region.lo is None:
        return touch
    exact = not any(term.lo != term.hi for term in region.terms or ())
    least = region._replace(hi=region.lo + LEAST, width=LEAST, exact=exact, bounded_by="", step=0, span=0)
    return replace(touch, region=least)


def fixed(touch: Touch) -> bool:
    """Whether the touch has one place for each thread, whatever the iteration and the way there."""
    region = touch.region
    if not region.bounded or region.bounded_by:
        return False
    return (region.exact or isinstance(touch.access.footprint, Matrix | Copy)) and extent.fixed(region)


def clash(flying: Access, reuse: Access) -> bool:
    """Two reads never clash, and two writes of one pipeline are its own order."""
    if not (flying.mode | reuse.mode) & Mode.WRITE:
        return False
    if reuse.proxy is Proxy.GENERIC:
        return True
    return bool(flying.mode & Mode.WRITE) != bool(reuse.mode & Mode.WRITE)


def provable(flying: Region, reuse: Region) -> bool:
    """Whether the reuse certainly touches bytes of the operation. What only may meet stays silent: bounds of swizzled
    addresses reach into neighbouring buffers, and a pipeline's phases are not followed here."""
    if surely(flying, reuse):
        return True
    if dense(reuse):
        return reuse.holds(flying) or flying.holds(reuse)
    if dense(flying):
        return flying.holds(reuse) or flying.holds(first(reuse, reuse.width))
    return overlap(first(flying, LEAST), first(reuse, reuse.width)) is Overlap.CERTAIN


def by_others(flying: Touch, reuse: Touch) -> bool:
    """Whether threads other than those that wait for the operation touch its bytes for certain."""
    span = warp_range(flying.threads)
    if flying.access.completion is Completion.WGMMA:
        users = warp_range(reuse.threads) or (0, MOST_THREADS)
        many = span is None or span[1] - span[0] > WARPGROUP
        shared = not any(term.varies for term in flying.region.terms or ())
        touched = dense(reuse.region) and (flying.region.holds(reuse.region) or reuse.region.holds(flying.region))
        return many and shared and users[1] - users[0] > WARPGROUP and touched
    if not one_issuer(flying) or span is None or subset(reuse.threads, flying.threads):
        return False
    return any(surely(flying.region, part) for part in outside(reuse.region, span))
