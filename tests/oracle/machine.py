"""Threads, memory values and the scheduler."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Protocol

from tests.oracle.program import CTA_SHIFT, GENERIC_SHARED, OracleError, Program
from tests.oracle.shadow import GLOBAL, KNOWN, Hazard, Knowledge, Shadow
from tests.oracle.sync import CLUSTER, Barrier, Deposit, Mbarrier

Place = tuple[int, int]  # (space, offset)


class Flight:
    """An asynchronous operation, or an arrival that waits for some. `when` names the flights it waits for."""

    __slots__ = ("action", "bits", "done", "read_bits", "when")

    def __init__(
        self, bits: int, read_bits: int, action: Callable[[], None] | None, when: Sequence[Flight] = ()
    ) -> None:
        self.bits = bits
        self.read_bits = read_bits
        self.action = action
        self.when = when
        self.done = False

    @property
    def ready(self) -> bool:
        return all(flight.done for flight in self.when)


class Groups:
    """Commit groups of one thread and kind (bulk, cp.async, wgmma)."""

    __slots__ = ("closed", "open")

    def __init__(self) -> None:
        self.open: list[Flight] = []
        self.closed: list[list[Flight]] = []

    def commit(self) -> None:
        self.closed.append(self.open)
        self.open = []

    def due(self, pending: int) -> list[Flight]:
        """Flights of all but the `pending` most recent groups."""
        count = max(0, len(self.closed) - pending)
        return [flight for group in self.closed[:count] for flight in group]

    def retire(self, pending: int) -> None:
        del self.closed[: max(0, len(self.closed) - pending)]


class Thread:
    """One thread: registers, knowledge, pending asynchronous work."""

    __slots__ = ("bulk", "cp_async", "cta", "exited", "frozen", "frozen_scope", "heard", "held", "home", "known",
                 "lane", "m", "number", "pc", "r", "rank", "stack", "tcgen05", "tid", "waiting", "warp",
                 "wgmma")  # fmt: skip

    def __init__(self, machine: Machine, number: int, tid: int, cta: int, warp_size: int) -> None:
        self.m = machine
        self.number = number
        self.tid = tid
        self.cta = cta
        self.warp, self.lane = divmod(tid, warp_size)
        self.home = cta, self.warp
        self.pc = machine.program.entry.start
        self.r = [0] * len(machine.program.entry.slots)
        self.stack: list[tuple[int, list[int], list[tuple[int, int]]]] = []
        self.known: Knowledge = machine.shadow.nothing()
        self.frozen: Knowledge | None = None  # what a thread fence released, for relaxed operations to publish
        self.frozen_scope = CLUSTER
        self.heard: Knowledge | None = None  # what relaxed reads saw, for a thread fence to acquire
        self.waiting: tuple[Barrier, int] | None = None
        self.held: tuple[Barrier, int] | None = None  # what a parked thread waits for, where it is a barrier
        self.bulk, self.cp_async, self.wgmma = Groups(), Groups(), Groups()
        self.tcgen05: list[Flight] = []
        self.exited = False
        self.rank = -1.0  # priority in a schedule by priorities; below 0: not drawn yet


Step = Callable[[Thread], bool | None]  # true: cannot proceed yet, run again later


class Chooser(Protocol):
    """Picks one of the threads that can run or, behind them, of the flights that can complete."""

    def __call__(self, ready: Sequence[Thread], flights: int) -> int: ...


class Stuck(Exception):
    """No thread can proceed, or none ends within the step limit."""


class Machine:
    """One run. `steps[pc]` is (step, guard slot or -1, negated, visible)."""

    def __init__(
        self, program: Program, steps: list[tuple[Step, int, bool, bool]], threads: int, ctas: int, warp: int,
        params: dict[str, int], box: int,
    ) -> None:  # fmt: skip
        self.program = program
        self.steps = steps
        self.ctas = ctas
        self.warp = warp
        self.per_cta = threads
        self.params = params
        self.box = box
        cluster = program.directives.get("reqnctapercluster", (1,))[0]
        self.cluster = cluster if ctas > 1 and cluster > 1 else 1
        self.shadow = Shadow(ctas)
        self.values: dict[Place, int] = {}
        self.flags: dict[Place, Deposit] = {}
        self.mbarriers: dict[Place, Mbarrier] = {}
        self.barriers: dict[tuple[int, ...], tuple[Barrier, int]] = {}
        self.flights: list[Flight] = []
        self.threads = [Thread(self, c * threads + i, i, c, warp) for c in range(ctas) for i in range(threads)]
        self.ready: list[Thread] = list(self.threads)
        self.parked: list[Thread] = []
        self.executed: set[int] = set()
        self.live = [threads] * ctas

    # --- addresses -------------------------------------------------------------------------------------------------

    def place(self, thread: Thread, address: int, space: str) -> Place:
        """Where an address of a state space lies: (CTA rank, offset) or (GLOBAL, address)."""
        if space == "generic":
            if address >> 40 != GENERIC_SHARED >> 40:
                return GLOBAL, address
            address &= (1 << 40) - 1
        elif space == "global":
            return GLOBAL, address
        rank = address >> CTA_SHIFT
        if not rank:
            return thread.cta, address
        if rank > self.ctas:
            raise OracleError(f"shared address {address:#x} of no CTA")
        return rank - 1, address & ((1 << CTA_SHIFT) - 1)

    def mbarrier(self, thread: Thread, place: Place, line: int) -> Mbarrier | None:
        """The object, judged for publication of its init; None before it is initialised."""
        found = self.mbarriers.get(place)
        if found is not None and not found.bit & thread.known[KNOWN]:
            self.shadow.hazards.add(Hazard(found.line, line, "INIT", unsynchronised=True))
        return found

    # --- progress --------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Something has happened: parked threads look again, but for those whose barrier has not completed."""
        still: list[Thread] = []
        for thread in self.parked:
            held = thread.held
            if held is not None and held[0].generation == held[1]:
                still.append(thread)
            else:
                thread.held = None
                self.ready.append(thread)
        self.parked = still

    def launch(self, flight: Flight) -> Flight:
        self.flights.append(flight)
        return flight

    def complete(self, flight: Flight) -> None:
        self.flights.remove(flight)
        flight.done = True
        if flight.action is not None:
            flight.action()
        self.wake()

    def run(self, choose: Chooser, limit: int) -> None:
        """Runs to the end. Raises Stuck on a deadlock or after `limit` visible steps."""
        for _ in range(limit):
            flights = [f for f in self.flights if f.ready] if self.flights else []
            count = len(self.ready) + len(flights)
            if count == 0:
                if self.parked:
                    lines = sorted({self.program.ops[t.pc].line for t in self.parked})
                    raise Stuck(f"waiting for ever at lines {lines}")
                return
            pick = choose(self.ready, len(flights)) if count > 1 else 0
            if pick < len(self.ready):
                self._advance(self.ready[pick])
            else:
                self.complete(flights[pick - len(self.ready)])
            if len(self.shadow.asynchronous[0]) > 64:
                self.shadow.forget_finished([t.known for t in self.threads if not t.exited])
        raise Stuck(f"no end within {limit} steps")

    def _advance(self, thread: Thread) -> None:
        """Up to and including the next visible instruction."""
        steps = self.steps
        while True:
            pc = thread.pc
            step, guard, negated, visible = steps[pc]
            thread.pc = pc + 1
            if guard >= 0 and bool(thread.r[guard]) == negated:
                continue
            if visible:
                self.executed.add(pc)
            if step(thread):
                thread.pc = pc
                self.ready.remove(thread)
                self.parked.append(thread)
                return
            if thread.exited:
                self.ready.remove(thread)
                self.leave(thread)
                return
            if visible:
                return

    def approach(self, thread: Thread) -> None:
        """Runs a thread up to its first visible instruction, exit or call."""
        while True:
            step, guard, negated, visible = self.steps[thread.pc]
            if visible or self.program.ops[thread.pc].words[0] in ("call", "ret", "exit", "trap"):
                return
            thread.pc += 1
            if guard < 0 or bool(thread.r[guard]) != negated:
                step(thread)

    def leave(self, thread: Thread) -> None:
        """A thread that ends counts as arrived at the barriers of the whole CTA or cluster."""
        self.live[thread.cta] -= 1
        for key, (barrier, expected) in list(self.barriers.items()):
            if expected == 0 and self.members(key, thread) and barrier.complete(self.expected(key)):
                self.wake()

    def members(self, key: tuple[int, ...], thread: Thread) -> bool:
        return key[0] == 1 or (key[0] == 0 and key[1] == thread.cta)

    def expected(self, key: tuple[int, ...]) -> int:
        """Live threads of a CTA (0, cta, id) or of the cluster (1,)."""
        return sum(self.live) if key[0] == 1 else self.live[key[1]]


def random_chooser(rng: random.Random) -> Chooser:
    """A schedule: uniform, in bursts, or by fixed random priorities with a few changes."""
    style = rng.randrange(3)
    if style == 0:
        return lambda ready, flights: int(rng.random() * (len(ready) + flights))
    last: list[Thread | None] = [None]
    if style == 1:

        def burst(ready: Sequence[Thread], flights: int) -> int:
            if rng.random() < 0.9 and last[0] in ready:
                return ready.index(last[0])
            pick = rng.randrange(len(ready) + flights)
            last[0] = ready[pick] if pick < len(ready) else None
            return pick

        return burst
    late = rng.random()  # how likely a flight is to complete when it could

    def priority(ready: Sequence[Thread], flights: int) -> int:
        if flights and (not ready or rng.random() < late):
            return len(ready) + rng.randrange(flights)
        if rng.random() < 0.01:
            ready[rng.randrange(len(ready))].rank = rng.random()
        if last[0] is not None and not last[0].exited and rng.random() < 0.5 and last[0] in ready:
            return ready.index(last[0])
        best = max(ready, key=_rank_of)
        if best.rank < 0:
            for thread in ready:
                thread.rank = rng.random()
            best = max(ready, key=_rank_of)
        last[0] = best
        return ready.index(best)

    return priority


def _rank_of(thread: Thread) -> float:
    return thread.rank
