"""The lattice of the flow: what a thread at a program point may know of the kernel's accesses.

Facts are integers with one bit per access. Per thread set F of the universe:
  own[F]   the executing thread made the access; nothing published it since; no covering fence since
  warp[F]  a thread of the same warp made it, published by a warp synchronisation, not fenced
  pub[F]   a thread of the CTA made it, published, not fenced
  peer[F]  the same in the peer CTA, published at cluster scope
Single sets:
  known    must: on every path the access was made or received (join is intersection)
  local    made by the executing thread and not yet published to the CTA, fenced or not
  unjoined made by the executing thread and not yet published to the warp, fenced or not
  stale    made under a predicate that a loop has redefined since
  groups[k] cp.async (or other grouped operations) with k commits since, in flight
  carry    facts that a cluster arrive has taken along
  absorbed must: of those, the ones not renewed since
"""

from __future__ import annotations


class State:
    """A mutable lattice element; `None` stands for bottom (unreached) outside of this class."""

    __slots__ = (
        "absorbed",
        "carry",
        "groups",
        "known",
        "local",
        "own",
        "peer",
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
        self.known = 0
        self.local = 0
        self.unjoined = 0
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
        new.known = self.known
        new.local = self.local
        new.unjoined = self.unjoined
        new.stale = self.stale
        new.carry = self.carry
        new.absorbed = self.absorbed
        return new

    def join(self, other: State) -> bool:
        """Merge `other` in; whether that changed anything."""
        changed = False
        for mine, theirs in (
            (self.own, other.own),
            (self.warp, other.warp),
            (self.pub, other.pub),
            (self.peer, other.peer),
            (self.groups, other.groups),
        ):
            if mine != theirs:
                for i, bits in enumerate(theirs):
                    if bits & ~mine[i]:
                        mine[i] |= bits
                        changed = True
        for name in ("local", "unjoined", "stale", "carry"):
            mine_bits: int = getattr(self, name)
            joined = mine_bits | getattr(other, name)
            if joined != mine_bits:
                setattr(self, name, joined)
                changed = True
        for name in ("known", "absorbed"):
            kept = getattr(self, name) & getattr(other, name)
            if kept != getattr(self, name):
                setattr(self, name, kept)
                changed = True
        return changed

    def everything(self) -> int:
        """Every access that may be unfenced for the thread on this path, wherever its fact stands."""
        return self.own[0] | self.warp[0] | self.pub[0] | self.peer[0]
