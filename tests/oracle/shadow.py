"""What threads know about accesses, and the judgement when an asynchronous operation is issued."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

GLOBAL = -1  # a space is a CTA's rank (its shared memory) or GLOBAL

# Positions in a knowledge vector; from FENCED on, one entry per CTA that may have run the fence.
KNOWN, TRIED, MAP_RELEASED, MAP_ACQUIRED, FENCED = range(5)

Knowledge = list[int]
Warp = tuple[int, int]
"""A CTA's rank and the number of a warp in it."""


def join(into: Knowledge, more: Iterable[int]) -> None:
    """Adds what `more` knows to `into`."""
    for index, bits in enumerate(more):
        into[index] |= bits


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two conflicting instructions, by line (from 1).

    `kind`: RAW, WAW, WAR (generic, then async), INFLIGHT (async, then anything), INIT (mbarrier), MAP (tensor map).
    `unsynchronised`: nothing orders the first before the second. `narrow`: a proxy fence lies on the chain, but its
    space does not cover the bytes. `late`: the first is a cp.async or st.async. `stale`: the first was already in
    hazard with an async write between, which replaced its bytes. `lanes`: unsynchronised, but lanes of one warp.
    """

    first: int
    second: int
    kind: str
    space: str = "shared"
    unsynchronised: bool = False
    narrow: bool = False
    late: bool = False
    stale: bool = False
    lanes: bool = False

    @property
    def rule(self) -> str:
        """The rule of ptxfence that names this hazard (contract 2); empty where no rule does."""
        if self.kind in ("INFLIGHT", "INIT", "MAP"):
            return {"INFLIGHT": "PF120", "INIT": "PF121", "MAP": "PF110"}[self.kind] if self.space == "shared" else ""
        if self.space == "global":
            return "PF112" if self.kind == "RAW" else ""
        if self.narrow and not self.unsynchronised:
            return "PF111"
        return "PF104" if self.late else {"RAW": "PF101", "WAW": "PF102", "WAR": "PF103"}[self.kind]


class Access:
    """The latest execution of one generic access by one thread on `[low, high)`."""

    __slots__ = ("bit", "cta", "high", "late", "line", "low", "stale", "warp", "write")

    def __init__(self, low: int, high: int, bit: int, write: bool, warp: Warp, line: int, late: bool) -> None:
        self.low, self.high = low, high
        self.bit = bit
        self.write = write
        self.warp = warp
        self.cta = warp[0]
        self.line = line
        self.late = late
        self.stale = False  # in hazard with an async write that has replaced the bytes


class AsyncAccess:
    """One side of an asynchronous operation: `done` is known where its completion was observed."""

    __slots__ = ("done", "high", "issue", "line", "low", "reduce", "warp", "write")

    def __init__(
        self, low: int, high: int, issue: int, done: int, write: bool, line: int, reduce: bool, warp: Warp
    ) -> None:
        self.low, self.high = low, high
        self.issue, self.done = issue, done
        self.write = write
        self.line = line
        self.reduce = reduce
        self.warp = warp


class Shadow:
    """All accesses of one run. Bits are handed out once per execution."""

    def __init__(self, ctas: int) -> None:
        self.ctas = ctas
        self.next_bit = 1
        self.hazards: set[Hazard] = set()
        self.generic: dict[int, dict[tuple[int, int, int], Access]] = {s: {} for s in range(-1, ctas)}
        self.asynchronous: dict[int, list[AsyncAccess]] = {s: [] for s in range(-1, ctas)}
        self.in_space: dict[int, int] = dict.fromkeys(range(-1, ctas), 0)  # events by the space of their bytes
        self.reads_of: dict[int, int] = {}  # a thread's own generic reads
        self.inits = 0

    def nothing(self) -> Knowledge:
        return [0] * (FENCED + self.ctas)

    def bit(self) -> int:
        bit = self.next_bit
        self.next_bit = bit << 1
        return bit

    def access(
        self, key: tuple[int, int], warp: Warp, known: Knowledge, where: tuple[int, int, int], write: bool, line: int,
        late: bool = False,
    ) -> int:  # fmt: skip
        """A generic access of `where` = (space, low, high) by thread `key[0]`; returns its bit."""
        space, low, high = where
        bit = self.bit()
        for other in self.asynchronous[space]:
            if other.low < high and low < other.high and (write or other.write) and not other.done & known[KNOWN]:
                self._in_flight(other, space, known, line, warp)
        self.generic[space][(*key, low)] = Access(low, high, bit, write, warp, line, late)
        self.in_space[space] |= bit
        if not write:
            self.reads_of[key[0]] = self.reads_of.get(key[0], 0) | bit
        if not late:
            known[KNOWN] |= bit
        return bit

    def issue(
        self, warp: Warp, known: Knowledge, where: tuple[int, int, int], write: bool, line: int, issue: int,
        reduce: bool,
    ) -> int:  # fmt: skip
        """One side of an async operation of a thread in `warp`; returns the bit of its completion."""
        space, low, high = where
        dropped: list[tuple[int, int, int]] = []
        for key, first in self.generic[space].items():
            if first.low >= high or low >= first.high:
                continue
            hazard = (write or first.write) and self._judge(first, space, warp, known, write, line)
            if write and hazard:
                first.stale = True
            elif write:
                dropped.append(key)
        self._drop(space, dropped, low, high)
        done = self.bit()
        for other in self.asynchronous[space]:
            overlap = other.low < high and low < other.high and (write or other.write)
            if overlap and other.issue != issue and not (reduce and other.reduce) and not other.done & known[KNOWN]:
                self._in_flight(other, space, known, line, warp)
        self.asynchronous[space].append(AsyncAccess(low, high, issue, done, write, line, reduce, warp))
        return done

    def _drop(self, space: int, keys: list[tuple[int, int, int]], low: int, high: int) -> None:
        accesses = self.generic[space]
        for key in keys:
            old = accesses.pop(key)
            for start, end in ((old.low, min(old.high, low)), (max(old.low, high), old.high)):
                if start < end:
                    rest = Access(start, end, old.bit, old.write, old.warp, old.line, old.late)
                    accesses[(key[0], key[1], start)] = rest

    def _judge(self, first: Access, space: int, warp: Warp, known: Knowledge, write: bool, line: int) -> bool:
        """Records the hazard between a generic access and the operation now issued; True if there is one."""
        kind = ("WAW" if write else "RAW") if first.write else "WAR"
        name = "global" if space == GLOBAL else "shared"
        race = not first.bit & known[KNOWN]
        if not race and first.bit & (known[FENCED + warp[0]] | known[FENCED + first.cta]):
            return False
        narrow = bool(first.bit & known[TRIED]) and not race
        lanes = race and first.warp == warp
        self.hazards.add(Hazard(first.line, line, kind, name, race, narrow, first.late, first.stale, lanes))
        return True

    def _in_flight(self, first: AsyncAccess, space: int, known: Knowledge, line: int, warp: Warp) -> None:
        name = "global" if space == GLOBAL else "shared"
        race = not first.issue & known[KNOWN]
        lanes = race and first.warp == warp
        self.hazards.add(Hazard(first.line, line, "INFLIGHT", name, unsynchronised=race, lanes=lanes))

    def forget_finished(self, everyone: list[Knowledge]) -> None:
        """Drops async accesses whose completion every thread has observed."""
        common = -1
        for known in everyone:
            common &= known[KNOWN]
        for space, entries in self.asynchronous.items():
            self.asynchronous[space] = [entry for entry in entries if not entry.done & common]
