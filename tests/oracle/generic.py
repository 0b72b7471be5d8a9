"""Generic-proxy accesses (PTX ISA 9.7.9): loads, stores, atomics, matrix loads and stores, cp.async, st.async."""

from __future__ import annotations

from ptxfence.grammar.model import Vector
from tests.oracle.alu import setter
from tests.oracle.compile import Context, Getter, builds, width
from tests.oracle.machine import Flight, Machine, Place, Step, Thread
from tests.oracle.shadow import KNOWN, Knowledge, join
from tests.oracle.sync import CLUSTER, CTA, GPU, Deposit

SCOPES = {"cta": CTA, "cluster": CLUSTER, "gpu": GPU, "sys": GPU}


def scope_of(words: tuple[str, ...], default: int) -> int:
    return next((SCOPES[w] for w in words if w in SCOPES), default)


def read_value(m: Machine, place: Place, size: int) -> int:
    space, at = place
    if size < 4:
        return (m.values.get((space, at & ~3), 0) >> (8 * (at & 3))) & ((1 << (8 * size)) - 1)
    return sum(m.values.get((space, at + 4 * i), 0) << (32 * i) for i in range(size // 4))


def write_value(m: Machine, place: Place, size: int, value: int) -> None:
    space, at = place
    if size < 4:
        shift, mask = 8 * (at & 3), (1 << (8 * size)) - 1
        old = m.values.get((space, at & ~3), 0) & ~(mask << shift)
        m.values[space, at & ~3] = old | (value & mask) << shift
        return
    for i in range(size // 4):
        m.values[space, at + 4 * i] = (value >> (32 * i)) & 0xFFFFFFFF


def record(t: Thread, index: int, place: Place, size: int, write: bool, line: int, late: bool = False) -> int:
    """Enters a generic access of a thread into the shadow; returns its event."""
    key = (t.number, index * 2 + write)
    return t.m.shadow.access(key, t.home, t.known, (place[0], place[1], place[1] + size), write, line, late)


def release(t: Thread, deposit: Deposit, scope: int, relaxed: bool) -> None:
    """Deposits what the thread releases: all it knows, or what its last thread fence froze."""
    if not relaxed:
        deposit.put(t.known, t.cta, scope)
    elif t.frozen is not None:
        deposit.put(t.frozen, t.cta, min(scope, t.frozen_scope))


def acquire(t: Thread, deposit: Deposit, scope: int, relaxed: bool) -> None:
    if not relaxed:
        deposit.take(t.known, t.cta, scope)
        return
    if t.heard is None:
        t.heard = t.m.shadow.nothing()
    deposit.take(t.heard, t.cta, scope)


def _vector(c: Context) -> int:
    return next((int(w[1:]) for w in c.words if w in ("v2", "v4", "v8")), 1)


@builds("ld", "ldu")
def load(c: Context) -> Step:
    space = c.space()
    each = width(c.words[-1]) // 8
    puts = [setter(c, o) for o in (c.operands[0].items if isinstance(c.operands[0], Vector) else c.operands[:1])]
    get = c.address(c.operands[1])
    if space in ("param", "const", "local"):
        return _load_local(c, get, each)
    acquires = "acquire" in c.words
    scope = scope_of(c.words, GPU)
    index, line, mask = c.op.index, c.line, (1 << (8 * each)) - 1

    def step(t: Thread) -> None:
        place = t.m.place(t, get(t), space)
        record(t, index, place, each * len(puts), False, line)
        flag = t.m.flags.get(place)
        if flag is not None:
            acquire(t, flag, scope, not acquires)
        value = read_value(t.m, place, each * len(puts))
        for i, put in enumerate(puts):
            put(t, (value >> (8 * each * i)) & mask)

    return step


def _load_local(c: Context, get: Getter, each: int) -> Step:
    """Parameters are whole scalars here: their slot holds the value."""
    if c.space() != "param":
        raise c.fail()
    put = setter(c, c.operands[0])
    mask = (1 << (8 * each)) - 1
    return lambda t: put(t, get(t) & mask)


@builds("st")
def store(c: Context) -> Step:
    space = c.space()
    each = width(c.words[-1]) // 8
    target, source = c.operands[:2]
    gets = [c.value(o) for o in (source.items if isinstance(source, Vector) else (source,))]
    if space == "param":
        slot = c.frame.slot(getattr(getattr(target, "base", None), "name", ""))
        return lambda t: t.r.__setitem__(slot, gets[0](t))
    if space in ("const", "local"):
        raise c.fail()
    get = c.address(target)
    relaxed = "release" not in c.words
    scope = scope_of(c.words, GPU)
    index, line, mask = c.op.index, c.line, (1 << (8 * each)) - 1

    def step(t: Thread) -> None:
        place = t.m.place(t, get(t), space)
        record(t, index, place, each * len(gets), True, line)
        write_value(t.m, place, each * len(gets), sum((g(t) & mask) << (8 * each * i) for i, g in enumerate(gets)))
        _publish(t, place, scope, relaxed, chain=False)

    return step


def _publish(t: Thread, place: Place, scope: int, relaxed: bool, chain: bool) -> None:
    """A store starts a new release pattern at its address; a read-modify-write continues the one there (8.8)."""
    flags = t.m.flags
    if chain and place in flags:
        release(t, flags[place], scope, relaxed)
    elif not relaxed or t.frozen is not None:
        flags[place] = Deposit(t.m.ctas)
        release(t, flags[place], scope, relaxed)
    else:
        flags.pop(place, None)


@builds("red", "atom")
def atomic(c: Context) -> Step:
    space = c.space()
    returns = c.words[0] == "atom"
    kind = c.words[-1]
    size = width(kind) // 8
    operands = c.operands[1:] if returns else c.operands
    put = setter(c, c.operands[0]) if returns else None
    get, gets = c.address(operands[0]), [c.value(o) for o in operands[1:]]
    name = next(w for w in c.words if w in ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"))
    acquires = bool({"acquire", "acq_rel"} & set(c.words))
    relaxed = not {"release", "acq_rel"} & set(c.words)
    scope = scope_of(c.words, GPU)
    index, line = c.op.index, c.line

    def step(t: Thread) -> None:
        place = t.m.place(t, get(t), space)
        record(t, index, place, size, False, line)
        record(t, index, place, size, True, line)
        old = read_value(t.m, place, size)
        if returns and place in t.m.flags:
            acquire(t, t.m.flags[place], scope, not acquires)
        _publish(t, place, scope, relaxed, chain=True)
        write_value(t.m, place, size, _combine(name, old, [g(t) for g in gets]))
        if put is not None:
            put(t, old)

    return step


def _combine(name: str, old: int, more: list[int]) -> int:
    if name == "cas":
        return more[1] if old == more[0] else old
    one = more[0]
    results = {"add": old + one, "min": min(old, one), "max": max(old, one), "and": old & one, "or": old | one,
               "xor": old ^ one, "exch": one, "inc": 0 if old >= one else old + 1,
               "dec": one if old == 0 or old > one else old - 1}  # fmt: skip
    return results[name]


@builds("ldmatrix", "stmatrix")
def matrix(c: Context) -> Step:
    """One row of 16 bytes by each lane whose address the instruction uses."""
    write = c.words[0] == "stmatrix"
    rows = 8 * next(int(w[1:]) for w in c.words if w in ("x1", "x2", "x4"))
    get = c.address(c.operands[c.first_address()])
    space = c.space()
    index, line = c.op.index, c.line

    def step(t: Thread) -> None:
        if t.lane < rows:
            record(t, index, t.m.place(t, get(t), space), 16, write, line)

    return step


@builds("cp.async")
def copy_async(c: Context) -> Step:
    to, source = c.address(c.operands[0]), c.address(c.operands[1])
    size = c.value(c.operands[2])
    index, line = c.op.index, c.line

    def step(t: Thread) -> None:
        m, count = t.m, size(t)
        place, origin = m.place(t, to(t), "shared"), m.place(t, source(t), "global")
        bits = record(t, index, origin, count, False, line) | record(t, index, place, count, True, line, late=True)
        write_value(m, place, count, read_value(m, origin, count))
        t.cp_async.open.append(Flight(bits, 0, None))

    return step


@builds("cp.async.commit_group")
def copy_commit(c: Context) -> Step:
    return lambda t: t.cp_async.commit()


@builds("cp.async.wait_group", "cp.async.wait_all")
def copy_wait(c: Context) -> Step:
    every = "wait_all" in c.words
    pending: Getter = (lambda t: 0) if every else c.value(c.operands[0])

    def step(t: Thread) -> None:
        if every:
            t.cp_async.commit()
        for flight in t.cp_async.due(pending(t)):
            t.known[KNOWN] |= flight.bits
        t.cp_async.retire(pending(t))

    return step


@builds("cp.async.mbarrier.arrive")
def copy_arrive(c: Context) -> Step:
    """Arrives once the thread's earlier cp.async have landed; deposits them and nothing else."""
    get, line = c.address(c.operands[0]), c.line
    extra = "noinc" not in c.words
    space = c.space()

    def step(t: Thread) -> bool | None:
        m = t.m
        barrier = m.mbarrier(t, m.place(t, get(t), space), line)
        if barrier is None:
            return True
        known = m.shadow.nothing()
        for flight in [*t.cp_async.open, *(f for group in t.cp_async.closed for f in group)]:
            known[KNOWN] |= flight.bits
        barrier.pending += extra

        def land() -> None:
            barrier.completed(known)
            barrier.pending -= 1
            barrier.step()

        m.launch(Flight(0, 0, land))
        return None

    return step


@builds("st.async", "red.async")
def store_async(c: Context) -> Step:
    """A generic write to a peer that completes on an mbarrier beside its destination."""
    count = _vector(c) * width(c.words[-1]) // 8
    to, signal = c.address(c.operands[0]), c.address(c.operands[2])
    index, line = c.op.index, c.line

    def step(t: Thread) -> bool | None:
        m = t.m
        barrier = m.mbarrier(t, m.place(t, signal(t), "shared"), line)
        if barrier is None:
            return True
        known: Knowledge = m.shadow.nothing()
        known[KNOWN] = record(t, index, m.place(t, to(t), "shared"), count, True, line, late=True)

        def land() -> None:
            barrier.completed(known)
            barrier.bytes -= count
            barrier.step()

        m.launch(Flight(0, 0, land))
        return None

    return step


def hear(t: Thread) -> None:
    """An acquiring thread fence: what relaxed reads saw becomes known."""
    if t.heard is not None:
        join(t.known, t.heard)
