"""The thread sets that the flow keeps facts apart for, and what a control-flow edge says about them.

Facts about a published access are kept once per distinct thread set F in which a fence or a wait runs: the
bit of access `a` under F is set while some thread of F may not have seen a covering fence for `a`. Index 0
is the set of all threads. A path that threads of F never take says nothing about F, so its bits are dropped
there; a path that only threads of F take may rely on the bits of F.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptxfence.analysis.conditions import ALL, Atom, ThreadSet, contradicts, disjoint, subset

WARP = 32
MOST_THREADS = 1 << 10  # of a CTA
LIMIT = 16
TID = "tid.x"
LANE_KEYS = ("elect", "lane")


@dataclass(frozen=True, slots=True)
class Restriction:
    """What taking an edge does: `unreached` sets get no facts, all of `inside` share the path's facts.

    `own_drop` and `warp_drop` are bits of accesses that the threads of this path (this warp) cannot have made;
    of those, `lasting` by a condition that no loop evaluates anew, `never` by one that the whole CTA shares as well.
    """

    unreached: tuple[int, ...]
    inside: tuple[int, ...]
    own_drop: int
    warp_drop: int
    lasting: int = 0
    never: int = 0

    @property
    def empty(self) -> bool:
        return not self.unreached and len(self.inside) < 2 and not self.own_drop and not self.warp_drop


def uniform_part(threads: ThreadSet) -> ThreadSet:
    return frozenset(atom for atom in threads if not atom.varies)


def by_index(threads: ThreadSet) -> ThreadSet:
    """The conditions on thread indices, which tell threads apart whatever path they take."""
    return frozenset(atom for atom in threads if atom.key in LANE_KEYS or atom.key.startswith("tid."))


def negate(threads: ThreadSet) -> ThreadSet:
    """The complement, where one atom expresses it; otherwise nothing is known."""
    if len(threads) != 1:
        return ALL
    (atom,) = threads
    return frozenset((atom._replace(negated=not atom.negated, occupied=False),))


def occupied(threads: ThreadSet) -> bool:
    """Whether the varying part of the set holds at least one thread of every CTA."""
    varying = [atom for atom in threads if atom.varies]
    lanes = [atom for atom in varying if atom.key in LANE_KEYS]
    ranges = [atom for atom in varying if atom.key == TID and not atom.negated]
    if len(lanes) + len(ranges) < len(varying):
        return False
    if not all(atom.occupied for atom in varying) or len(lanes) > 1:
        return False
    lo = max((atom.lo for atom in ranges), default=0)
    hi = min((atom.hi for atom in ranges), default=1 << 16)
    if not lanes:
        return lo < hi
    first_warp = -(-lo // WARP) * WARP
    return first_warp + WARP <= hi


def in_every_warp(threads: ThreadSet, context: ThreadSet) -> bool:
    """Whether every warp of `context` has a thread in the set."""
    rest = [a for a in threads if a.varies and not subset(context, frozenset((a,)))]
    return len(rest) <= 1 and all(atom.key in LANE_KEYS and atom.occupied for atom in rest)


def one_thread(threads: ThreadSet) -> bool:
    """Whether at most one thread per warp is in the set."""
    return any(
        not atom.negated and (atom.key == "elect" or (atom.key in (TID, "lane") and atom.hi - atom.lo == 1))
        for atom in threads
    )


def warp_range(threads: ThreadSet) -> tuple[int, int] | None:
    """The range of `tid.x`, widened to whole warps, that holds the set; None where nothing is known."""
    ranges = [atom for atom in threads if atom.key == TID and not atom.negated]
    if not ranges:
        return None
    lo = max(atom.lo for atom in ranges)
    hi = min(atom.hi for atom in ranges)
    return lo // WARP * WARP, -(-hi // WARP) * WARP


def issuing_warps(threads: ThreadSet) -> tuple[tuple[int, int], int] | None:
    """Of a set with one thread at most in a warp: the range of `tid.x` of a warp with one, and the `tid.x` below which
    no other warp has one; None where that is not known. `tid.x % 128 == 0` has one in every fourth warp."""
    span = warp_range(threads)
    if one_thread(threads):
        return None if span is None else (span, MOST_THREADS)
    for atom in threads:
        if atom.key.startswith(f"{TID}&") and not atom.negated and atom.hi - atom.lo == 1:
            period = int(atom.key.removeprefix(f"{TID}&")) + 1
            first = atom.lo // WARP * WARP
            return ((first, first + WARP), period) if period > WARP else None
    return None


def _for_good(atom: Atom) -> bool:
    """Whether all threads of a CTA answer alike, and every time."""
    return not atom.varies and not atom.defs


def _warp_aligned(atom: Atom) -> bool:
    return not atom.varies or (atom.key == TID and atom.lo % WARP == 0 and atom.hi % WARP == 0)


class Universe:
    """The thread sets of one kernel. `sets[0]` is everybody."""

    def __init__(self, wanted: Sequence[ThreadSet], operating: Sequence[ThreadSet] = ()) -> None:
        """`wanted`: sets in which fences or waits run; `operating`: those that issue async operations.

        The latter only tell predicated paths apart. What has been reported on the issuer's path counts as fenced
        there, but for nobody else.
        """
        found: dict[ThreadSet, None] = {ALL: None}
        fencing = set[ThreadSet]((ALL,))
        for threads in wanted:
            fencing.add(threads)
        for threads in (*wanted, *operating):
            uniform = uniform_part(threads)
            if len(found) + 2 <= LIMIT:
                found.setdefault(uniform)
                found.setdefault(threads)
        self.sets = tuple(found)
        self.size = len(self.sets)
        index = {threads: i for i, threads in enumerate(self.sets)}
        self.uniform_index = tuple(index[uniform_part(threads)] for threads in self.sets)
        self.resets: dict[int, tuple[int, ...]] = self._resets()
        self._occupied = [threads in fencing and occupied(threads) for threads in self.sets]
        self._fencing = [threads in fencing for threads in self.sets]
        # for each set G the sets that exist wherever G's uniform conditions hold
        uniform = [uniform_part(threads) for threads in self.sets]
        self._present = [[i for i, u in enumerate(uniform) if subset(g, u)] for g in uniform]
        self._helpers: dict[tuple[ThreadSet, bool], tuple[tuple[int, ...], ...]] = {}
        self._members: dict[ThreadSet, tuple[int, ...]] = {}
        self._restrictions: dict[tuple[ThreadSet, ThreadSet, ThreadSet], Restriction | None] = {}

    def _resets(self) -> dict[int, tuple[int, ...]]:
        at: dict[int, list[int]] = {}
        for i, threads in enumerate(self.sets):
            for definition in {d for atom in threads for d in atom.defs}:
                at.setdefault(definition, []).append(i)
        return {definition: tuple(sets) for definition, sets in at.items()}

    def helpers(self, participants: ThreadSet, *, warp: bool) -> tuple[tuple[int, ...], ...]:
        """Per set G the sets whose fences count for G after a synchronisation among `participants`.

        A set F counts for G if it is never empty where G's uniform conditions hold and takes part in the
        synchronisation (`warp`: in that of every warp).
        """
        key = (participants, warp)
        if key not in self._helpers:
            if warp:
                useful = {i for i, f in enumerate(self.sets) if self._fencing[i] and in_every_warp(f, participants)}
            else:
                inside = varying(participants)
                useful = {i for i, f in enumerate(self.sets) if self._occupied[i] and (not f or subset(f, inside))}
            self._helpers[key] = tuple(tuple(i for i in present if i in useful) for present in self._present)
        return self._helpers[key]

    def members(self, threads: ThreadSet) -> tuple[int, ...]:
        """Sets that may share a thread with `threads`."""
        if threads not in self._members:
            self._members[threads] = tuple(i for i, f in enumerate(self.sets) if not disjoint(threads, f))
        return self._members[threads]

    def restriction(
        self, threads: ThreadSet, learned: ThreadSet, refused: ThreadSet, accessors: tuple[tuple[int, ThreadSet], ...]
    ) -> Restriction | None:
        """The effect of an edge on which `threads` run; None for none.

        Taking it teaches `learned`, and that `refused` (the condition of the other way) does not hold.
        `accessors` are (bit mask, thread set) of the accesses.
        """
        if not learned and not refused:
            return None
        key = (threads, learned, refused)
        if key not in self._restrictions:
            self._restrictions[key] = self._restriction(threads, learned, refused, accessors)
        return self._restrictions[key]

    def _restriction(
        self, threads: ThreadSet, learned: ThreadSet, refused: ThreadSet, accessors: tuple[tuple[int, ThreadSet], ...]
    ) -> Restriction | None:
        unreached = tuple(
            i for i, f in enumerate(self.sets) if disjoint(threads, f) or (refused and subset(f, refused))
        )
        inside = tuple(i for i, f in enumerate(self.sets) if subset(threads, f))
        own = warp = lasting = never = 0
        for mask, accessor in accessors:
            if refused and subset(accessor, refused):
                own |= mask
                warp |= mask if all(map(_warp_aligned, refused)) else 0
            for atom in learned:
                against = [other for other in accessor if contradicts(atom, other)]
                if against:
                    own |= mask
                    warp |= mask if _warp_aligned(atom) else 0
                lasting |= mask if not atom.defs and any(not other.defs for other in against) else 0
                never |= mask if _for_good(atom) and any(map(_for_good, against)) else 0
        found = Restriction(unreached, inside, own, warp, lasting, never)
        return None if found.empty else found


def varying(threads: ThreadSet) -> ThreadSet:
    """The conditions that can tell threads of one CTA apart."""
    return frozenset(atom for atom in threads if atom.varies)
