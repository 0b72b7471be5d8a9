"""What each operation computes, as expressions: the table from `Op.name` to a constructor.

A handler returns None where it has nothing to say; the result is then a variable of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxfence.analysis.isa_operations import Op
from ptxfence.analysis.values_fold import magic
from ptxfence.analysis.values_nodes import Node
from ptxfence.analysis.values_sources import Sources, compare, packed, part_of, predicate
from ptxfence.grammar.model import Address, Operand, Symbol, Vector

WINDOW = "@shared"  # generic address of the shared window minus zero
PEER = "@peer"
_AMOUNT = 0xFFFFFFFF  # shift amounts are 32-bit unsigned (PTX ISA 9.7.8)


def _add(s: Sources) -> Node | None:
    return None if s.op.floating or s.op.saturate else s.graph.add(s.get(1), s.get(2), s.op.width)


def _sub(s: Sources) -> Node | None:
    return None if s.op.floating or s.op.saturate else s.graph.add(s.get(1), s.get(2), s.op.width, -1)


def _product(s: Sources) -> Node | None:
    op, graph = s.op, s.graph
    if op.floating:
        return None
    if op.mode == "wide":
        return graph.mul(s.true_value(1), s.true_value(2), 2 * op.width)
    if op.mode == "hi":
        return _high(s)
    if op.name in ("mul24", "mad24"):
        return None
    return graph.mul(s.get(1), s.get(2), op.width)


def _high(s: Sources) -> Node:
    """The upper half of a product."""
    a, b, width, signed, graph = s.true_value(1), s.true_value(2), s.op.width, s.op.signed, s.graph
    if graph.is_const(a):
        a, b = b, a
    if graph.is_const(b) and (not signed or (graph.fits(a, width - 1) and b.const > 0)):
        found = magic(graph, a, b.const & ((1 << width) - 1), width)
        if found is not None:
            return found
        signed = False
    return graph.atom("mulhis" if signed else "mulhi", (a, b), (), width)


def _mul(s: Sources) -> Node | None:
    return _product(s)


def _mad(s: Sources) -> Node | None:
    product = _product(s)
    if product is None:
        return None
    return s.graph.add(product, s.get(3), s.op.width * 2 if s.op.mode == "wide" else s.op.width)


def _neg(s: Sources) -> Node | None:
    return None if s.op.floating else s.graph.scale(s.get(1), -1, s.op.width)


def _shl(s: Sources) -> Node | None:
    by = s.get(2)
    if not s.graph.is_const(by):
        return None
    return s.graph.shl(s.get(1), by.const & _AMOUNT, s.op.width)


def _shr(s: Sources) -> Node | None:
    by = s.get(2)
    if not s.graph.is_const(by):
        return None
    a, width = s.get(1), s.op.width
    k = min(by.const & _AMOUNT, width - 1) if s.op.signed else by.const & _AMOUNT
    if k >= width:
        return s.graph.const(0)
    return divided(s, a, k)


def divided(s: Sources, a: Node, k: int) -> Node:
    """`a >> k`, seen as a division where `a` is the high half of a product with a magic number."""
    width = s.op.width
    if a.op == "mulhi" and s.graph.is_const(a.args[1]):
        x, magic = a.args[0], a.args[1].const & ((1 << a.width) - 1)
        n = ((1 << (a.width + k)) + magic - 1) // magic if magic else 0
        if n > 1 and 0 <= magic * n - (1 << (a.width + k)) <= 1 << k:
            return s.graph.divide(x, n, a.width)
    return s.graph.shr(a, k, width, s.op.signed)


def _bitwise(s: Sources) -> Node | None:
    if s.op.width == 1:
        return _predicates(s)
    return s.graph.bitwise(s.op.name, s.get(1), s.get(2), s.op.width)


def _predicates(s: Sources) -> Node:
    return predicate(s, s.op.name, s.get(1), s.get(2))


def _not(s: Sources) -> Node | None:
    if s.op.width == 1:
        return s.builder.negation(s.get(1))
    return s.graph.bitwise("xor", s.get(1), s.graph.const(-1), s.op.width)


def _lop3(s: Sources) -> Node | None:
    table = s.get(4)
    if not s.graph.is_const(table) or s.position:
        return None
    a, b, c = s.get(1), s.get(2), s.get(3)
    bit, width = s.graph.bitwise, s.op.width
    match table.const & 0xFF:
        case 0xC0:
            return bit("and", a, b, width)
        case 0xFC:
            return bit("or", a, b, width)
        case 0x3C:
            return bit("xor", a, b, width)
        case 0x80:
            return bit("and", bit("and", a, b, width), c, width)
        case 0xFE:
            return bit("or", bit("or", a, b, width), c, width)
        case 0x96:
            return bit("xor", bit("xor", a, b, width), c, width)
        case 0xF8:
            return bit("or", a, bit("and", b, c, width), width)
        case 0xEA:
            return bit("or", bit("and", a, b, width), c, width)
        case 0x78:
            return bit("xor", a, bit("and", b, c, width), width)
        case 0x6A:
            return bit("xor", bit("and", a, b, width), c, width)
        case 0xEC:
            return bit("or", bit("and", a, c, width), b, width)
        case 0x6C:
            return bit("xor", bit("and", a, c, width), b, width)
        case 0x48:
            return bit("and", bit("xor", a, c, width), b, width)
        case 0x28:
            return bit("and", bit("xor", a, b, width), c, width)
        case 0xA8:
            return bit("and", bit("or", a, b, width), c, width)
        case 0xC8:
            return bit("and", bit("or", a, c, width), b, width)
        case 0xE0:
            return bit("and", bit("or", b, c, width), a, width)
        case other:
            return s.graph.atom("lop3", (a, b, c), (other,), width)


def _bfe(s: Sources) -> Node | None:
    at, count, graph = s.get(2), s.get(3), s.graph
    if not (graph.is_const(at) and graph.is_const(count)):
        return None
    low, n, width = at.const & 0xFF, count.const & 0xFF, s.op.width
    if n == 0 or low >= width:
        return graph.const(0) if n == 0 else None
    n = min(n, width - low)
    if not s.op.signed:
        return graph.and_const(graph.shr(s.get(1), low, width, False), (1 << n) - 1, width)
    field = graph.and_const(graph.shr(s.get(1), low, width, False), (1 << n) - 1, width)
    return graph.atom("sext", (field,), (n,), width)


def _bfi(s: Sources) -> Node | None:
    at, count, graph, width = s.get(3), s.get(4), s.graph, s.op.width
    if not (graph.is_const(at) and graph.is_const(count)):
        return None
    low, n = at.const & 0xFF, count.const & 0xFF
    n = min(n, width - low) if low < width else 0
    if n == 0:
        return s.get(2)
    mask = (1 << n) - 1
    piece = graph.shl(graph.and_const(s.get(1), mask, width), low, width)
    kept = graph.and_const(s.get(2), ~(mask << low), width)
    return graph.bitwise("or", piece, kept, width)


def _prmt(s: Sources) -> Node | None:
    selector, graph = s.get(3), s.graph
    if s.op.mode or not graph.is_const(selector):
        return None
    a, b, pick = s.get(1), s.get(2), selector.const & 0xFFFF
    if pick == 0x3210:
        return a
    if pick == 0x5410:  # {low half of a, low half of b}
        low = graph.and_const(a, 0xFFFF, 32)
        return graph.bitwise("or", low, graph.shl(b, 16, 32), 32)
    if pick == 0x7632:
        high = graph.and_const(b, 0xFFFF0000, 32)
        return graph.bitwise("or", graph.shr(a, 16, 32, False), high, 32)
    return graph.atom("prmt", (a, b), (pick,), 32)


def _shf(s: Sources) -> Node | None:
    by, graph = s.get(3), s.graph
    if not graph.is_const(by):
        return None
    k = min(by.const & _AMOUNT, 32) if s.op.clamp == "clamp" else by.const & 31
    low, high = s.get(1), s.get(2)
    if k & 31 == 0:
        return high if (s.op.direction == "l") == (k == 0) else low
    if s.op.direction == "l":
        return graph.bitwise("or", graph.shl(high, k, 32), graph.shr(low, 32 - k, 32, False), 32)
    return graph.bitwise("or", graph.shr(low, k, 32, False), graph.shl(high, 32 - k, 32), 32)


def _minmax(s: Sources) -> Node | None:
    if s.op.floating or s.op.width not in (16, 32, 64):
        return None
    a, b = s.true_value(1), s.true_value(2)
    if a is b:
        return a
    return s.graph.atom(s.op.name + ("s" if s.op.signed else ""), (a, b) if a.id <= b.id else (b, a), (), s.op.width)


def _divrem(s: Sources) -> Node | None:
    n = s.get(2)
    if s.op.floating or not s.graph.is_const(n) or n.const <= 0:
        return None
    a = s.true_value(1)
    signed = s.op.signed and not s.graph.fits(a, s.op.width - 1)
    if not signed:
        make = s.graph.divide if s.op.name == "div" else s.graph.remainder
        return make(a, n.const, s.op.width)
    return s.graph.atom(s.op.name + "s", (a,), (n.const,), s.op.width)


def _abs(s: Sources) -> Node | None:
    return None if s.op.floating else s.graph.atom("abs", (s.true_value(1),), (), s.op.width)


def _cvt(s: Sources) -> Node | None:
    op = s.op
    if op.floating or op.saturate or not op.source_width or op.source.startswith(("f", "b", "t", "e")):
        return None
    a = s.get(1)
    if op.width <= op.source_width:
        low = s.graph.trunc(a, op.width)
        # A register is wider than its type: the value is extended in it (PTX ISA 9.4.1).
        return s.graph.extend(low, op.width, op.signed) if op.width < 32 else low
    return s.graph.extend(a, op.source_width, op.source_signed)


def _mov(s: Sources) -> Node | None:
    target, source = s.operands[0], s.operands[1]
    if isinstance(target, Vector):
        if isinstance(source, Vector):
            fit = len(source.items) == len(target.items)
            return s.builder.operand(source.items[s.position], s.index) if fit else None
        count = len(target.items)
        part = s.op.width // count
        return part_of(s, s.get(1), s.position * part, part)
    if isinstance(source, Vector):
        part = s.op.width // max(1, len(source.items))
        return packed(s, [s.builder.operand(x, s.index) for x in source.items], part)
    return s.get(1)


def _selp(s: Sources) -> Node | None:
    if s.op.floating:
        return None
    condition = s.get(3)
    a, b = s.get(1), s.get(2)
    if s.graph.is_const(a) and s.graph.is_const(b) and (a.const, b.const) in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        yes, factor = (condition, a.const) if b.const == 0 else (s.builder.negation(condition), b.const)
        return s.graph.scale(s.graph.atom("bool", (yes,), (), 32), factor, s.op.width)
    return s.builder.select(condition, a, b)


def _setp(s: Sources) -> Node | None:
    op = s.op
    if op.floating:
        return None
    result = compare(s, s.get(1), s.get(2))
    if result is None:
        return None
    if op.combine:
        if len(s.operands) < 4:
            return None
        other = s.get(3)
        first = result if s.position == 0 else s.builder.negation(result)
        return predicate(s, op.combine, first, other)
    return result if s.position == 0 else s.builder.negation(result)


def _shfl(s: Sources) -> Node | None:
    if s.position:
        return None
    a, graph = s.get(1), s.graph
    if s.builder.warp_uniform(a):
        return a
    const, terms = graph.parts(a)
    total: dict[Node, int] = {}
    for atom, k in terms:  # one lane is read: the shuffle of a sum is the sum of shuffles
        read = atom if s.builder.warp_uniform(atom) else _read_elsewhere(s, atom)
        total[read] = total.get(read, 0) + k
    return graph.linear(const, total, 32)


def _read_elsewhere(s: Sources, atom: Node) -> Node:
    args = (atom, s.get(2)) if s.op.shuffle == "idx" else (atom,)
    return s.graph.atom("shfl", args, (s.index,), 32)


def _cvta(s: Sources) -> Node | None:
    if not s.op.space.startswith("shared"):
        return s.get(1)
    window = s.graph.symbol(WINDOW, 1 << 24)
    return s.graph.add(s.get(1), window, 64, -1 if s.op.to else 1)


def _mapa(s: Sources) -> Node | None:
    if s.builder.alone:
        s.builder.relies_on_alone = True
        return s.get(1)
    peer = s.graph.symbol(PEER, 1 << 24)
    return s.graph.add(s.get(1), peer, 64)


def _elect(s: Sources) -> Node | None:
    mask = s.get(1)
    name = "elect" if s.graph.is_const(mask) and mask.const & 0xFFFFFFFF == 0xFFFFFFFF else f"elect#{mask.id}"
    return s.graph.var(name, 1) if s.position else s.graph.var(name + ".lane", 32)


def _popc(s: Sources) -> Node | None:
    return s.graph.atom("popc", (s.get(1),), (s.op.width,), 32)


def _ld(s: Sources) -> Node | None:
    source = s.operands[1]
    if s.op.space.startswith("param") and isinstance(source, Address) and isinstance(source.base, Symbol):
        at = source.base.offset + source.offset + s.position * max(1, s.op.width // 8)
        name = f"param {source.base.name}+{at}" if at else f"param {source.base.name}"
        return s.graph.var(name, max(32, s.op.width)) if s.op.width >= 32 else None
    return None


HANDLERS: dict[str, Callable[[Sources], Node | None]] = {
    "abs": _abs,
    "add": _add,
    "and": _bitwise,
    "bfe": _bfe,
    "bfi": _bfi,
    "cvt": _cvt,
    "cvta": _cvta,
    "div": _divrem,
    "elect": _elect,
    "ld": _ld,
    "lop3": _lop3,
    "mad": _mad,
    "mapa": _mapa,
    "max": _minmax,
    "min": _minmax,
    "mov": _mov,
    "mul": _mul,
    "neg": _neg,
    "not": _not,
    "or": _bitwise,
    "popc": _popc,
    "prmt": _prmt,
    "rem": _divrem,
    "selp": _selp,
    "setp": _setp,
    "shf": _shf,
    "shfl": _shfl,
    "shl": _shl,
    "shr": _shr,
    "sub": _sub,
    "xor": _bitwise,
}

_UNTYPED = frozenset(("elect",))
# Operands of each operation, destination included.
_OPERANDS = {
    **dict.fromkeys(("abs", "cvt", "cvta", "elect", "ld", "mov", "neg", "not", "popc"), 2),
    **dict.fromkeys(("bfe", "mad", "prmt", "selp", "shf", "shfl"), 4),
    **dict.fromkeys(("bfi", "lop3"), 5),
}


def fits(op: Op, operands: tuple[Operand, ...]) -> bool:
    """Whether an instruction has the operands and the type that its handler reads."""
    return len(operands) >= _OPERANDS.get(op.name, 3) and (op.width > 0 or op.name in _UNTYPED)
