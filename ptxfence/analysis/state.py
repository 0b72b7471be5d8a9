"""The lattice of the flow: what a thread at a program point may know of the kernel's accesses.

Facts are integers with one bit per access. Per thread set F of the universe:
  own[F]   the executing thread made the access; nothing published it since; no covering fence since
  warp[F]  a thread of the same warp made it, published by a warp synchronisation, not fenced
  pub[F]   a thread of the CTA made it, published, not fenced
  peer[F]  the same in the peer CTA, published at cluster scope
`present` has one bit per F: whether its threads come this way at all; a set that does not says nothing.
Single sets:
  local    made by the executing thread and not yet published to the CTA, fenced or not
  unjoined made by the executing thread and not yet published to the warp, fenced or not
  made     made by the executing thread on its way here
  heard    made by another thread and ordered before this point by some synchronisation; `afar`: by a peer CTA's
  others   made by other threads that took this way too, neither fenced by all who made it nor published
  loose    handed over by a thread that was not the only one to make it, the rest neither fenced nor ordered
  apart    handed over by one thread although whole other warps made it too, which nothing has joined with it
  stale    made under a predicate that a loop has redefined since
  groups[k] cp.async (or other grouped operations) with k commits since, in flight
  carry    facts that a cluster arrive has taken along; `news` is what it tells of at all
  behind   facts that a thread fence of cluster scope or wider has ordered before later relaxed arrivals
  absorbed must: what the last cluster arrive has taken along or found told, and nobody known here has renewed since
"""

from __future__ import annotations


class State:
    """A mutable lattice element; `None` stands for bottom (unreached) outside of this class."""

    __slots__ = (
        "absorbed",
        "afar",
        "apart",
        "behind",
        "carry",
        "groups",
        "heard",
        "local",
        "loose",
        "made",
        "news",
        "others",
        "own",
        "peer",
        "present",
        "pub",
        "stale",
        "unjoined",
        "warp",
    )

    def __init__(self, sets: int, depth: int) -> None:
        self.own = [0] * sets
        self.warp = [0] * sets
        self.pub = [0] * sets
        self.peer = [0] * sets
        self.groups = [0] * depth
        self.present = (1 << sets) - 1
        self.local = 0
        self.unjoined = 0
        self.others = 0
        self.loose = 0
        self.apart = 0
        self.made = 0
        self.heard = 0
        self.afar = 0
        self.news = 0
        self.behind = 0
        self.stale = 0
        self.carry = 0
        self.absorbed = 0

    def copy(self) -> State:
        """An independent copy."""
        new = State.__new__(State)
        new.own = self.own[:]
        new.warp = self.warp[:]
        new.pub = self.pub[:]
        new.peer = self.peer[:]
        new.groups = self.groups[:]
        new.present = self.present
        new.local = self.local
        new.unjoined = self.unjoined
        new.others = self.others
        new.loose = self.loose
        new.apart = self.apart
        new.made = self.made
        new.heard = self.heard
        new.afar = self.afar
        new.news = self.news
        new.behind = self.behind
        new.stale = self.stale
        new.carry = self.carry
        new.absorbed = self.absorbed
        return new

    def join(self, other: State) -> bool:
        """Merge `other` in; whether that changed anything. Hot: written out instead of looped."""
        changed = False
        if self.own != other.own:
            changed |= _union(self.own, other.own)
        if self.warp != other.warp:
            changed |= _union(self.warp, other.warp)
        if self.pub != other.pub:
            changed |= _union(self.pub, other.pub)
        if self.peer != other.peer:
            changed |= _union(self.peer, other.peer)
        if self.groups != other.groups:
            changed |= _union(self.groups, other.groups)
        news = (
            (other.present & ~self.present)
            | (other.local & ~self.local)
            | (other.unjoined & ~self.unjoined)
            | (other.made & ~self.made)
            | (other.heard & ~self.heard)
            | (other.afar & ~self.afar)
            | (other.others & ~self.others)
            | (other.loose & ~self.loose)
            | (other.apart & ~self.apart)
            | (other.stale & ~self.stale)
            | (other.carry & ~self.carry)
            | (other.news & ~self.news)
            | (other.behind & ~self.behind)
            | (self.absorbed & ~other.absorbed)
        )
        if not news:
            return changed
        self.present |= other.present
        self.local |= other.local
        self.unjoined |= other.unjoined
        self.made |= other.made
        self.heard |= other.heard
        self.afar |= other.afar
        self.others |= other.others
        self.loose |= other.loose
        self.apart |= other.apart
        self.stale |= other.stale
        self.carry |= other.carry
        self.news |= other.news
        self.behind |= other.behind
        self.absorbed &= other.absorbed
        return True

    def meet(self, facts: list[int], sets: tuple[int, ...]) -> int:
        """The facts that hold for every thread set of `sets` that comes this way."""
        result = -1
        for i in sets:
            if self.present >> i & 1:
                result &= facts[i]
        return facts[0] if result == -1 else result


def _union(mine: list[int], theirs: list[int]) -> bool:
    merged = [a | b for a, b in zip(mine, theirs, strict=True)]
    if merged == mine:
        return False
    mine[:] = merged
    return True
