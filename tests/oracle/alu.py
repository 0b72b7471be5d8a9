"""Integer arithmetic, predicates, control flow and calls."""

from __future__ import annotations

from collections.abc import Callable

from ptxfence.grammar.model import Operand, Symbol, Vector
from tests.oracle.compile import Context, Getter, Setter, builds, width
from tests.oracle.machine import Step, Thread
from tests.oracle.program import GENERIC_SHARED, OracleError


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _binary(c: Context, apply: Callable[[int, int], int], bits: int, convert: bool = False) -> Step:
    """d = apply(a, b) modulo 2^bits; `convert` reads a and b as signed."""
    d = c.slot(c.operands[0])
    a, b = c.value(c.operands[1]), c.value(c.operands[2])
    mask = (1 << bits) - 1
    if d is None:
        raise c.fail()
    if convert:

        def step_signed(t: Thread) -> None:
            t.r[d] = apply(signed(a(t), bits), signed(b(t), bits)) & mask

        return step_signed

    def step(t: Thread) -> None:
        t.r[d] = apply(a(t) & mask, b(t) & mask) & mask

    return step


def _divide(a: int, b: int) -> int:
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    return a - b * _divide(a, b) if b else a


_PLAIN: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
    "div": _divide,
    "rem": _remainder,
    "shl": lambda a, b: a << b if b < 64 else 0,
    "shr": lambda a, b: a >> min(b, 64),
}
_SIGN_MATTERS = ("min", "max", "div", "rem")


@builds(*_PLAIN)
def binary(c: Context) -> Step:
    name, kind = c.words[0], c.words[-1]
    if name == "shr" and kind[0] == "s":
        return _shift_signed(c, width(kind))
    return _binary(c, _PLAIN[name], width(kind), convert=kind[0] == "s" and name in _SIGN_MATTERS)


def _shift_signed(c: Context, bits: int) -> Step:
    return _binary(c, lambda a, b: signed(a, bits) >> min(b, bits), bits)


@builds("mul", "mad")
def multiply(c: Context) -> Step:
    kind = c.words[-1]
    bits = width(kind)
    wide = "wide" in c.words
    high = "hi" in c.words
    mask = (1 << (2 * bits if wide else bits)) - 1
    d = c.slot(c.operands[0])
    a, b = c.value(c.operands[1]), c.value(c.operands[2])
    addend: Getter = c.value(c.operands[3]) if c.words[0] == "mad" else lambda t: 0
    read = signed if kind[0] == "s" else unsigned
    if d is None:
        raise c.fail()

    def step(t: Thread) -> None:
        product = read(a(t), bits) * read(b(t), bits)
        t.r[d] = ((product >> bits if high else product) + addend(t)) & mask

    return step


@builds("not", "neg", "abs", "popc", "brev", "clz")
def unary(c: Context) -> Step:
    bits = width(c.words[-1])
    table: dict[str, Callable[[int], int]] = {
        "not": lambda a: ~a,
        "neg": lambda a: -a,
        "abs": lambda a: abs(signed(a, bits)),
        "popc": lambda a: a.bit_count(),
        "brev": lambda a: int(f"{a:0{bits}b}"[::-1], 2),
        "clz": lambda a: bits - a.bit_length(),
    }
    apply = table[c.words[0]]
    d, a = c.slot(c.operands[0]), c.value(c.operands[1])
    mask = (1 << bits) - 1
    if d is None:
        raise c.fail()

    def step(t: Thread) -> None:
        t.r[d] = apply(a(t) & mask) & mask

    return step


@builds("mov")
def move(c: Context) -> Step:
    destination, source = c.operands
    bits = width(c.words[-1])
    if isinstance(source, Vector):
        part = bits // len(source.items)
        gets = [c.value(item) for item in source.items]
        put = setter(c, destination)
        return lambda t: put(t, sum((g(t) & ((1 << part) - 1)) << (part * i) for i, g in enumerate(gets)))
    get = c.value(source)
    if isinstance(destination, Vector):
        part = bits // len(destination.items)
        puts = [setter(c, item) for item in destination.items]

        def unpack(t: Thread) -> None:
            value = get(t)
            for i, put_part in enumerate(puts):
                put_part(t, (value >> (part * i)) & ((1 << part) - 1))

        return unpack
    return _copy(c, destination, get, bits)


def setter(c: Context, operand: Operand) -> Setter:
    slot = c.slot(operand)

    def put(t: Thread, value: int) -> None:
        if slot is not None:
            t.r[slot] = value

    return put


def _copy(c: Context, destination: Operand, get: Getter, bits: int) -> Step:
    d = c.slot(destination)
    mask = (1 << bits) - 1
    if d is None:
        return lambda t: None

    def step(t: Thread) -> None:
        t.r[d] = get(t) & mask

    return step


@builds("cvt")
def convert(c: Context) -> Step:
    source = c.words[-1]
    get, bits = c.value(c.operands[1]), width(source)
    if source[0] == "s":
        return _copy(c, c.operands[0], lambda t: signed(get(t), bits), width(c.words[-2]))
    mask = (1 << bits) - 1
    return _copy(c, c.operands[0], lambda t: get(t) & mask, width(c.words[-2]))


@builds("cvta")
def convert_address(c: Context) -> Step:
    get = c.value(c.operands[1])
    shared = c.space() == "shared"
    if "to" in c.words:
        return _copy(c, c.operands[0], (lambda t: get(t) & ((1 << 40) - 1)) if shared else get, 64)
    return _copy(c, c.operands[0], (lambda t: get(t) | GENERIC_SHARED) if shared else get, 64)


@builds("mapa")
def map_address(c: Context) -> Step:
    get, rank = c.value(c.operands[1]), c.value(c.operands[2])
    generic = c.space() == "generic"
    base = GENERIC_SHARED if generic else 0
    return _copy(c, c.operands[0], lambda t: base | (get(t) & 0xFFFFFF) | (rank(t) + 1) << 24, 64)


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}


@builds("setp")
def set_predicate(c: Context) -> Step:
    kind = c.words[-1]
    bits = width(kind)
    compare = _COMPARE[c.words[1]]
    p, q = c.pair(c.operands[0])
    a, b = c.value(c.operands[1]), c.value(c.operands[2])
    read = signed if kind[0] == "s" else unsigned
    combine = next((w for w in c.words[2:-1] if w in ("and", "or", "xor")), "")
    third: Getter = c.value(c.operands[3]) if combine else lambda t: 0

    def step(t: Thread) -> None:
        result = int(compare(read(a(t), bits), read(b(t), bits)))
        other = 1 - result
        if combine:
            result, other = (_PLAIN[combine](x, third(t)) for x in (result, other))
        if p is not None:
            t.r[p] = result
        if q is not None:
            t.r[q] = other

    return step


@builds("selp")
def select(c: Context) -> Step:
    a, b, p = (c.value(o) for o in c.operands[1:])
    return _copy(c, c.operands[0], lambda t: a(t) if p(t) else b(t), width(c.words[-1]))


@builds("bfe")
def extract(c: Context) -> Step:
    a, low, length = (c.value(o) for o in c.operands[1:])
    return _copy(c, c.operands[0], lambda t: (a(t) >> low(t)) & ((1 << length(t)) - 1), width(c.words[-1]))


@builds("bfi")
def insert(c: Context) -> Step:
    a, b, low, length = (c.value(o) for o in c.operands[1:])

    def get(t: Thread) -> int:
        mask = ((1 << length(t)) - 1) << low(t)
        return (b(t) & ~mask) | ((a(t) << low(t)) & mask)

    return _copy(c, c.operands[0], get, width(c.words[-1]))


@builds("elect.sync")
def elect(c: Context) -> Step:
    """The lowest lane of the mask that exists."""
    d, p = c.pair(c.operands[0])
    mask = c.value(c.operands[1])

    def step(t: Thread) -> None:
        lanes = mask(t) & ((1 << t.m.warp) - 1)
        leader = (lanes & -lanes).bit_length() - 1
        if d is not None:
            t.r[d] = leader
        if p is not None:
            t.r[p] = int(t.lane == leader)

    return step


@builds("bra")
def branch(c: Context) -> Step:
    target = c.operands[0]
    if not isinstance(target, Symbol):
        raise c.fail()
    pc = c.frame.labels[target.name]

    def step(t: Thread) -> None:
        t.pc = pc

    return step


@builds("brx.idx")
def branch_indexed(c: Context) -> Step:
    index, table = c.value(c.operands[0]), c.operands[1]
    if not isinstance(table, Symbol):
        raise c.fail()
    pcs = [c.frame.labels[name] for name in c.frame.targets[table.name]]

    def step(t: Thread) -> None:
        t.pc = pcs[index(t)]

    return step


@builds("ret", "exit")
def leave(c: Context) -> Step:
    whole = c.words[0] == "exit"
    name = c.frame.name

    def step(t: Thread) -> None:
        if whole or not t.stack:
            t.exited = True
            return
        returned = [t.r[t.m.program.functions[name].slots[r]] for r in t.m.program.functions[name].returns]
        t.pc, t.r, targets = t.stack.pop()
        for (_, slot), value in zip(targets, returned, strict=True):
            t.r[slot] = value

    return step


@builds("call")
def call(c: Context) -> Step:
    lists = [o.items if isinstance(o, Vector) else None for o in c.operands]
    position = next(i for i, o in enumerate(c.operands) if isinstance(o, Symbol))
    name = c.operands[position]
    assert isinstance(name, Symbol)
    callee = c.program.functions.get(name.name)
    if callee is None:
        raise OracleError(f"line {c.line}: {name.name} has no body")
    gets = [c.value(o) for o in (lists[position + 1] or ())] if position + 1 < len(lists) else []
    results: list[tuple[int, int]] = []
    for i, o in enumerate(lists[0] or () if position else ()):
        results.append((i, c.frame.slot(o.name if isinstance(o, Symbol) else getattr(o, "name", ""))))

    def step(t: Thread) -> None:
        registers = [0] * len(callee.slots)
        for param, get in zip(callee.params, gets, strict=True):
            registers[callee.slots[param]] = get(t)
        t.stack.append((t.pc, t.r, results))
        t.r = registers
        t.pc = callee.start

    return step


@builds("nanosleep", "setmaxnreg", "griddepcontrol", "prefetch", "prefetchu", "activemask", "createpolicy", "discard",
        "pmevent", "tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync", "tcgen05.dealloc",
        "tcgen05.relinquish_alloc_permit", "tcgen05.wait", "tcgen05.ld", "tcgen05.st", "wgmma.fence",
        "cp.async.bulk.prefetch")  # fmt: skip
def nothing(c: Context) -> Step:
    return lambda t: None
