"""Asynchronous-proxy operations (PTX ISA 9.7.9.25, 9.7.15, 9.7.16) and their completion."""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxfence.grammar.model import Address, Register
from tests.oracle.compile import Context, Getter, builds
from tests.oracle.generic import read_value, record, write_value
from tests.oracle.machine import Flight, Machine, Place, Step, Thread
from tests.oracle.shadow import KNOWN, MAP_ACQUIRED, Hazard
from tests.oracle.sync import Mbarrier


def start(
    t: Thread, line: int, reads: list[tuple[Place, int]], writes: list[tuple[Place, int]], reduce: bool = False,
    action: Callable[[int], None] | None = None,
) -> Flight:  # fmt: skip
    """Issues one operation: judges its accesses and puts it in flight. `action` gets its bits when it completes."""
    shadow = t.m.shadow
    issue = shadow.bit()
    t.known[KNOWN] |= issue
    read_bits = write_bits = 0
    for (space, low), size in reads:
        read_bits |= shadow.issue(t.home, t.known, (space, low, low + size), False, line, issue, reduce)
    for (space, low), size in writes:
        write_bits |= shadow.issue(t.home, t.known, (space, low, low + size), True, line, issue, reduce)
    bits = read_bits | write_bits
    done = None if action is None else (lambda: action(bits))
    return t.m.launch(Flight(bits, read_bits, done))


def complete_tx(m: Machine, barrier: Mbarrier, size: int, bits: int) -> None:
    known = m.shadow.nothing()
    known[KNOWN] = bits
    barrier.completed(known)
    barrier.bytes -= size
    barrier.step()


def _copy(m: Machine, to: Place, source: Place, size: int) -> None:
    for offset in range(0, size, 4):
        write_value(m, (to[0], to[1] + offset), 4, read_value(m, (source[0], source[1] + offset), 4))


@builds("cp.async.bulk", "cp.reduce.async.bulk")
def bulk(c: Context) -> Step:
    spaces = [w for w in c.words if w in ("global", "shared::cta", "shared::cluster")]
    if len(spaces) != 2:
        raise c.fail()
    return _bulk_store(c) if spaces[0] == "global" else _bulk_load(c, spaces[1])


def _bulk_store(c: Context) -> Step:
    to, source, size = c.address(c.operands[0]), c.address(c.operands[1]), c.value(c.operands[2])
    line, reduce = c.line, c.words[1] == "reduce"

    def step(t: Thread) -> None:
        m, count = t.m, size(t)
        origin, place = m.place(t, source(t), "shared"), m.place(t, to(t), "global")
        _copy(m, place, origin, count)
        t.bulk.open.append(start(t, line, [(origin, count)], [(place, count)], reduce))

    return step


def _bulk_load(c: Context, source_space: str) -> Step:
    """Global or own shared memory into shared memory; completes on an mbarrier (of each CTA of the mask)."""
    to, source, size, signal = (c.operands[i] for i in range(4))
    get_to, get_source, get_signal = c.address(to), c.address(source), c.address(signal)
    get_size, line, reduce = c.value(size), c.line, c.words[1] == "reduce"
    space = "global" if source_space == "global" else "shared"
    mask: Getter | None = c.value(c.operands[4]) if "multicast::cluster" in c.words else None

    def step(t: Thread) -> bool | None:
        m, count = t.m, get_size(t)
        place, bar = m.place(t, get_to(t), "shared"), m.place(t, get_signal(t), "shared")
        ranks = [place[0]] if mask is None else [r for r in range(m.ctas) if mask(t) >> r & 1]
        bars = [bar[0]] if mask is None else ranks
        barriers = [m.mbarrier(t, (r, bar[1]), line) for r in bars]
        if not all(barriers):
            return True
        origin = m.place(t, get_source(t), space)
        for rank in ranks:
            _copy(m, (rank, place[1]), origin, count)
        start(t, line, [(origin, count)], [((r, place[1]), count) for r in ranks], reduce,
              lambda bits: _signal(m, barriers, count, bits))  # fmt: skip
        return None

    return step


def _signal(m: Machine, barriers: list[Mbarrier | None], count: int, bits: int) -> None:
    for barrier in barriers:
        if barrier is not None:
            complete_tx(m, barrier, count, bits)


@builds("cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor")
def tensor(c: Context) -> Step:
    """A tensor copy; the map is judged, the global side is not. PTX does not tell the box: it is the run's `box`, else
    what the mbarrier still expects."""
    addresses = [o for o in c.operands if isinstance(o, Address)]
    maps = next(o for o in addresses if o.coordinates)
    load = next(w for w in c.words if w in ("global", "shared::cta", "shared::cluster")) != "global"
    shared = c.address(next(o for o in addresses if not o.coordinates))
    signal = c.address(addresses[-1]) if load else None
    map_address, line = c.address(Address(maps.base, maps.offset)), c.line

    def step(t: Thread) -> bool | None:
        m = t.m
        place = m.place(t, shared(t), "shared")
        if signal is None:
            use_map(t, map_address(t), line)
            t.bulk.open.append(start(t, line, [(place, m.box or 1024)], []))
            return None
        barrier = m.mbarrier(t, m.place(t, signal(t), "shared"), line)
        if barrier is None:
            return True
        use_map(t, map_address(t), line)
        size = m.box or max(16, barrier.bytes)
        start(t, line, [], [(place, size)], False, lambda bits: complete_tx(m, barrier, size, bits))
        return None

    return step


def use_map(t: Thread, address: int, line: int) -> None:
    """The tensormap proxy reads 128 bytes at a generic address (9.7.13.4: release and acquire must lie between)."""
    space, low = t.m.place(t, address, "generic")
    for access in t.m.shadow.generic[space].values():
        overlap = access.write and access.low < low + 128 and low < access.high
        if overlap and not access.bit & t.known[MAP_ACQUIRED]:
            race = not access.bit & t.known[KNOWN]
            t.m.shadow.hazards.add(Hazard(access.line, line, "MAP", "shared", unsynchronised=race))


@builds("tensormap.replace")
def replace_map(c: Context) -> Step:
    get, line, index = c.address(c.operands[0]), c.line, c.op.index
    space = c.space()


    def step(t: Thread) -> None:
        record(t, index, t.m.place(t, get(t), space), 128, True, line)

    return step


@builds("cp.async.bulk.commit_group")
def bulk_commit(c: Context) -> Step:
    return lambda t: t.bulk.commit()


@builds("cp.async.bulk.wait_group")
def bulk_wait(c: Context) -> Step:
    pending = c.value(c.operands[0])
    only_reads = "read" in c.words

    def step(t: Thread) -> bool | None:
        due = t.bulk.due(pending(t))
        if not all(flight.done for flight in due):
            return True
        for flight in due:
            t.known[KNOWN] |= flight.read_bits if only_reads else flight.bits
        if not only_reads:
            t.bulk.retire(pending(t))
        return None

    return step


@builds("clusterlaunchcontrol.try_cancel")
def try_cancel(c: Context) -> Step:
    to, signal, line = c.address(c.operands[0]), c.address(c.operands[1]), c.line
    everyone = any("multicast" in w for w in c.words)

    def step(t: Thread) -> bool | None:
        m = t.m
        place, bar = m.place(t, to(t), "shared"), m.place(t, signal(t), "shared")
        ranks = list(range(m.ctas)) if everyone else [place[0]]
        barriers = [m.mbarrier(t, (r, bar[1]), line) for r in ranks]
        if not all(barriers):
            return True
        start(t, line, [], [((r, place[1]), 16) for r in ranks], False,
              lambda bits: _signal(m, barriers, 16, bits))  # fmt: skip
        return None

    return step


# --- matrix operations ----------------------------------------------------------------------------------------------


def _descriptor(t: Thread, get: Getter) -> Place:
    return t.cta, (get(t) & 0x3FFF) << 4


def _is_descriptor(c: Context, position: int) -> bool:
    operand = c.operands[position]
    return isinstance(operand, Register)


@builds("wgmma.mma_async")
def wgmma(c: Context) -> Step:
    """Reads A (64 rows, unless in registers) and B (N rows) of 32 bytes; issued by every thread of the warps."""
    columns = int(next(re.findall(r"n(\d+)k", w)[0] for w in c.words if re.fullmatch(r"m64n\d+k\d+", w)))
    sides: list[tuple[Getter, int]] = []
    if _is_descriptor(c, 1):
        sides.append((c.value(c.operands[1]), 2048))
    sides.append((c.value(c.operands[2]), columns * 32))
    line = c.line

    def step(t: Thread) -> None:
        t.wgmma.open.append(start(t, line, [(_descriptor(t, get), size) for get, size in sides], []))

    return step


@builds("wgmma.commit_group")
def wgmma_commit(c: Context) -> Step:
    return lambda t: t.wgmma.commit()


@builds("wgmma.wait_group")
def wgmma_wait(c: Context) -> Step:
    pending = c.value(c.operands[0])

    def step(t: Thread) -> bool | None:
        due = t.wgmma.due(pending(t))
        if not all(flight.done for flight in due):
            return True
        for flight in due:
            t.known[KNOWN] |= flight.bits
        t.wgmma.retire(pending(t))
        return None

    return step


@builds("tcgen05.mma")
def tcgen05_mma(c: Context) -> Step:
    """D, A (descriptor or `[tensor memory]`), B, instruction descriptor. cta_group::2 reads both CTAs of the pair."""
    sides: list[tuple[Getter, int]] = [(c.value(c.operands[2]), 17)]
    if _is_descriptor(c, 1):
        sides.append((c.value(c.operands[1]), 24))
    shape, line = c.value(c.operands[3]), c.line
    both = "cta_group::2" in c.words

    def step(t: Thread) -> None:
        reads: list[tuple[Place, int]] = []
        for get, shift in sides:
            rows = (shape(t) >> 24 & 0x1F) * 16 if shift == 24 else (shape(t) >> 17 & 0x3F) * 8
            _, low = _descriptor(t, get)
            ranks = range(t.m.ctas) if both else (t.cta,)
            reads += [((r, low), rows * 32 // (2 if both else 1)) for r in ranks]
        t.tcgen05.append(start(t, line, reads, []))

    return step


_COPY_BYTES = {"128x256b": 4096, "4x256b": 128, "128x128b": 2048, "64x128b": 1024, "32x128b": 512}


@builds("tcgen05.cp")
def tcgen05_cp(c: Context) -> Step:
    size = next(_COPY_BYTES[w] for w in c.words if w in _COPY_BYTES)
    get, line = c.value(c.operands[1]), c.line
    return lambda t: t.tcgen05.append(start(t, line, [(_descriptor(t, get), size)], []))


@builds("tcgen05.commit")
def tcgen05_commit(c: Context) -> Step:
    """Arrives when the thread's earlier tcgen05 operations are done; deposits those."""
    get, line = c.address(c.operands[0]), c.line
    space = c.space()

    def step(t: Thread) -> bool | None:
        m = t.m
        barrier = m.mbarrier(t, m.place(t, get(t), space), line)
        if barrier is None:
            return True
        flights, t.tcgen05 = t.tcgen05, []
        known = m.shadow.nothing()
        for flight in flights:
            known[KNOWN] |= flight.bits

        def land() -> None:
            barrier.completed(known)
            barrier.pending -= 1
            barrier.step()

        m.launch(Flight(0, 0, land, flights))
        return None

    return step


@builds("tcgen05.alloc")
def tcgen05_alloc(c: Context) -> Step:
    get, line, index = c.address(c.operands[0]), c.line, c.op.index
    space = c.space()


    def step(t: Thread) -> None:
        record(t, index, t.m.place(t, get(t), space), 4, True, line)

    return step
