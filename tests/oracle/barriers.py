"""Synchronisation and fences (PTX ISA 9.7.13)."""

from __future__ import annotations

from ptxfence.grammar.model import Address
from tests.oracle.alu import setter
from tests.oracle.compile import Context, Getter, builds
from tests.oracle.generic import hear, record, release, scope_of
from tests.oracle.machine import Step, Thread
from tests.oracle.shadow import FENCED, GLOBAL, KNOWN, MAP_ACQUIRED, MAP_RELEASED, TRIED
from tests.oracle.sync import CLUSTER, CTA, GPU, Barrier, Mbarrier


def _meet(t: Thread, key: tuple[int, ...], expected: int, scope: int, wait: bool) -> bool | None:
    """Arrives at a barrier and, with `wait`, stays until it completes. `expected` 0: all live threads."""
    m = t.m
    if t.waiting is not None:
        barrier, generation = t.waiting
        if barrier.generation == generation:
            t.held = t.waiting
            return True
        barrier.done.take(t.known, t.cta, scope)
        t.waiting = None
        return None
    if key not in m.barriers:
        m.barriers[key] = (Barrier(m.ctas), expected)
    barrier = m.barriers[key][0]
    generation = barrier.generation
    if barrier.arrive(t.known, t.cta, scope, expected or m.expected(key)):
        m.wake()
        if wait:
            barrier.done.take(t.known, t.cta, scope)
        return None
    if wait:
        t.waiting = t.held = (barrier, generation)
        return True
    return None


@builds("bar.sync", "barrier.sync", "bar.cta.sync", "barrier.cta.sync")
def bar_sync(c: Context) -> Step:
    number = c.value(c.operands[0])
    count: Getter = c.value(c.operands[1]) if len(c.operands) > 1 else lambda t: 0
    return lambda t: _meet(t, (0, t.cta, number(t)), count(t), CTA, wait=True)


@builds("bar.arrive", "barrier.arrive", "bar.cta.arrive", "barrier.cta.arrive")
def bar_arrive(c: Context) -> Step:
    number, count = c.value(c.operands[0]), c.value(c.operands[1])
    return lambda t: _meet(t, (0, t.cta, number(t)), count(t), CTA, wait=False)


@builds("bar.warp.sync")
def bar_warp(c: Context) -> Step:
    mask = c.value(c.operands[0])

    def step(t: Thread) -> bool | None:
        first = t.warp * t.m.warp
        lanes = min(t.m.warp, t.m.per_cta - first)
        members = mask(t) & ((1 << lanes) - 1)
        return _meet(t, (2, t.cta, t.warp, members), bin(members).count("1"), CTA, wait=True)

    return step


@builds("barrier.cluster.arrive")
def cluster_arrive(c: Context) -> Step:
    relaxed = "relaxed" in c.words

    def step(t: Thread) -> None:
        m = t.m
        key = (1,) if m.cluster > 1 else (3, t.cta)
        if key not in m.barriers:
            m.barriers[key] = (Barrier(m.ctas), 0)
        barrier = m.barriers[key][0]
        t.waiting = (barrier, barrier.generation)
        release(t, barrier.deposit, CLUSTER, relaxed)
        if barrier.arrive(None, t.cta, CLUSTER, m.expected(key)):
            m.wake()

    return step


@builds("barrier.cluster.wait")
def cluster_wait(c: Context) -> Step:
    def step(t: Thread) -> bool | None:
        if t.waiting is None:
            return None
        barrier, generation = t.waiting
        if barrier.generation == generation:
            t.held = t.waiting
            return True
        barrier.done.take(t.known, t.cta, CLUSTER)
        t.waiting = None
        return None

    return step


# --- mbarrier -------------------------------------------------------------------------------------------------------


@builds("mbarrier.init")
def mbarrier_init(c: Context) -> Step:
    get, count, line = c.address(c.operands[0]), c.value(c.operands[1]), c.line
    space = c.space()

    def step(t: Thread) -> None:
        bit = t.m.shadow.bit()
        t.known[KNOWN] |= bit
        t.m.shadow.inits |= bit
        place = t.m.place(t, get(t), space)
        t.m.mbarriers[place] = Mbarrier(count(t), t.m.ctas, bit, line, place[0])
        t.m.wake()

    return step


@builds("mbarrier.inval")
def mbarrier_inval(c: Context) -> Step:
    get, line, index = c.address(c.operands[0]), c.line, c.op.index
    space = c.space()

    def step(t: Thread) -> None:
        place = t.m.place(t, get(t), space)
        t.m.mbarriers.pop(place, None)
        record(t, index, place, 8, True, line)

    return step


def arrive(t: Thread, barrier: Mbarrier, count: int, scope: int, relaxed: bool) -> None:
    release(t, barrier.deposit, scope, relaxed)
    barrier.pending -= count
    if barrier.step():
        t.m.wake()


@builds("mbarrier.arrive", "mbarrier.arrive_drop", "mbarrier.expect_tx", "mbarrier.complete_tx")
def mbarrier_arrive(c: Context) -> Step:
    at = c.first_address()
    get, line = c.address(c.operands[at]), c.line
    put = setter(c, c.operands[0]) if at else None
    number: Getter = c.value(c.operands[at + 1]) if len(c.operands) > at + 1 else lambda t: 1
    words = c.words
    drop = "arrive_drop" in words
    arrives = drop or "arrive" in words
    expects = "expect_tx" in words
    completes = "complete_tx" in words
    relaxed, scope, space = "relaxed" in words, scope_of(words, CTA), c.space()

    def step(t: Thread) -> bool | None:
        m = t.m
        barrier = m.mbarrier(t, m.place(t, get(t), space), line)
        if barrier is None:
            return True
        if put is not None:
            put(t, barrier.phase)
        if expects or completes:
            barrier.bytes += number(t) if expects else -number(t)
        barrier.count -= drop
        if arrives:
            arrive(t, barrier, 1 if expects else number(t), scope, relaxed)
        elif barrier.step():
            m.wake()
        return None

    return step


@builds("mbarrier.try_wait", "mbarrier.test_wait")
def mbarrier_wait(c: Context) -> Step:
    at = next(i for i, o in enumerate(c.operands) if isinstance(o, Address))
    put = setter(c, c.operands[0])
    get, phase, line = c.address(c.operands[at]), c.value(c.operands[at + 1]), c.line
    parity = "parity" in c.words
    waits = "try_wait" in c.words
    relaxed, scope, space = "relaxed" in c.words, scope_of(c.words, CTA), c.space()

    def step(t: Thread) -> bool | None:
        m = t.m
        barrier = m.mbarrier(t, m.place(t, get(t), space), line)
        if barrier is None:
            return True
        over = barrier.over(phase(t)) if parity else barrier.phase != phase(t)
        if not over and waits:
            return True
        put(t, int(over))
        if over and relaxed:
            if t.heard is None:
                t.heard = m.shadow.nothing()
            barrier.done.take(t.heard, t.cta, scope)
        elif over:
            barrier.done.take(t.known, t.cta, scope)
        return None

    return step


# --- fences ---------------------------------------------------------------------------------------------------------


@builds("fence", "membar")
def thread_fence(c: Context) -> Step:
    """Orders generic accesses only; relaxed operations after it publish what it froze."""
    acquires, releases = "release" not in c.words, "acquire" not in c.words
    scope = scope_of(c.words, GPU)

    def step(t: Thread) -> None:
        if acquires:
            hear(t)
        if releases:
            t.frozen, t.frozen_scope = list(t.known), scope

    return step


@builds("fence.mbarrier_init")
def init_fence(c: Context) -> Step:
    def step(t: Thread) -> None:
        frozen = t.m.shadow.nothing()
        frozen[KNOWN] = t.known[KNOWN] & t.m.shadow.inits
        t.frozen, t.frozen_scope = frozen, CLUSTER

    return step


@builds("fence.proxy.async", "membar.proxy.async")
def async_fence(c: Context) -> Step:
    words = set(c.words)

    def step(t: Thread) -> None:
        spaces = t.m.shadow.in_space
        own, all_shared = spaces[t.cta], 0
        for space, bits in spaces.items():
            all_shared |= bits if space != GLOBAL else 0
        if "global" in words:
            covered = spaces[GLOBAL]
        elif "shared::cta" in words:
            covered = own
        else:
            covered = all_shared if "shared::cluster" in words else all_shared | spaces[GLOBAL]
        t.known[FENCED + t.cta] |= t.known[KNOWN] & covered
        t.known[TRIED] |= t.known[KNOWN]

    return step


@builds("fence.proxy.async::generic")
def one_way_fence(c: Context) -> Step:
    reads = any("read" in w and "restrict" in w for w in c.words)

    def step(t: Thread) -> None:
        shadow = t.m.shadow
        covered = shadow.reads_of.get(t.number, 0) if reads else shadow.in_space[t.cta]
        t.known[FENCED + t.cta] |= t.known[KNOWN] & covered
        if not reads:
            t.known[TRIED] |= t.known[KNOWN]

    return step if "release" in c.words else (lambda t: None)


@builds("fence.proxy.alias", "membar.proxy.alias")
def alias_fence(c: Context) -> Step:
    return lambda t: None


@builds("fence.proxy.tensormap::generic")
def map_fence(c: Context) -> Step:
    """Release: of all the thread knows. Acquire: of the 128 bytes named, as far as released."""
    if "release" in c.words:
        return lambda t: t.known.__setitem__(MAP_RELEASED, t.known[MAP_RELEASED] | t.known[KNOWN])
    get = c.address(c.operands[0])

    def step(t: Thread) -> None:
        space, low = t.m.place(t, get(t), "generic")
        for access in t.m.shadow.generic[space].values():
            if access.write and access.low < low + 128 and low < access.high:
                t.known[MAP_ACQUIRED] |= access.bit & t.known[MAP_RELEASED]

    return step
