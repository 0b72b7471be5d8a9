"""Synchronisation objects: what a release deposits and an acquire takes, by scope."""

from __future__ import annotations

from tests.oracle.shadow import Knowledge, join

CTA, CLUSTER, GPU = range(3)  # scopes, narrow to wide; wider than gpu makes no difference here


class Deposit:
    """Knowledge released into an object, kept apart by scope and by the releasing CTA."""

    __slots__ = ("narrow", "wide")

    def __init__(self, ctas: int) -> None:
        self.narrow: list[Knowledge | None] = [None] * ctas
        self.wide: list[Knowledge | None] = [None] * ctas

    def put(self, known: Knowledge, cta: int, scope: int) -> None:
        side = self.narrow if scope == CTA else self.wide
        there = side[cta]
        if there is None:
            side[cta] = list(known)
        else:
            join(there, known)

    def take(self, into: Knowledge, cta: int, scope: int) -> None:
        for source in (self.narrow[cta], self.wide[cta]):
            if source is not None:
                join(into, source)
        if scope == CTA:
            return
        for source in self.wide:
            if source is not None:
                join(into, source)


class Barrier:
    """`bar` of one CTA and id, or the cluster barrier: a deposit per generation."""

    __slots__ = ("arrived", "ctas", "deposit", "done", "generation")

    def __init__(self, ctas: int) -> None:
        self.ctas = ctas
        self.generation = 0
        self.arrived = 0
        self.deposit = Deposit(ctas)
        self.done = Deposit(ctas)

    def arrive(self, known: Knowledge | None, cta: int, scope: int, expected: int) -> bool:
        """One thread arrives; True if it was the last one."""
        if known is not None:
            self.deposit.put(known, cta, scope)
        self.arrived += 1
        return self.complete(expected)

    def complete(self, expected: int) -> bool:
        if self.arrived < expected or not self.arrived:
            return False
        self.done, self.deposit = self.deposit, Deposit(self.ctas)
        self.arrived = 0
        self.generation += 1
        return True


class Mbarrier:
    """An mbarrier object (PTX ISA 9.7.13.15): expected arrivals, pending ones, pending bytes, phase."""

    __slots__ = ("bit", "bytes", "count", "cta", "ctas", "deposit", "done", "line", "pending", "phase")

    def __init__(self, count: int, ctas: int, bit: int, line: int, cta: int = 0) -> None:
        self.cta = cta  # whose shared memory it lies in
        self.count = self.pending = count
        self.bytes = 0
        self.phase = 0
        self.ctas = ctas
        self.deposit = Deposit(ctas)
        self.done = Deposit(ctas)
        self.bit = bit
        self.line = line

    def completed(self, known: Knowledge) -> None:
        """An asynchronous completion: whoever waits here, at whatever scope, sees the operation's own accesses."""
        self.deposit.put(known, self.cta, CLUSTER)

    def step(self) -> bool:
        """Completes the phase if nothing is pending."""
        if self.pending > 0 or self.bytes != 0:
            return False
        self.done, self.deposit = self.deposit, Deposit(self.ctas)
        self.pending = self.count
        self.phase += 1
        return True

    def over(self, parity: int) -> bool:
        """Whether the phase of this parity has completed."""
        return self.phase & 1 != parity & 1
