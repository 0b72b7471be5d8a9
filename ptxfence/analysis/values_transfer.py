"""Abstract transfer of every operation that is no addition: what `op` makes of the values of its arguments.

Each function is exact on constants and sound on strided intervals modulo the width of the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from ptxfence.analysis.values_domain import (
    NO_BASE,
    SPACE_BITS,
    Span,
    Value,
    bits_value,
    bounds,
    constant,
    interval,
    join,
    plain,
    signed,
    single,
    top,
    unsigned,
    value_bits,
)

Data = tuple[int | str, ...]


def _map(value: Value, function: Callable[[Span], Value]) -> Value:
    result = function(value[0]) if value else value
    for span in value[1:]:
        result = join(result, function(span))
    return result


def shift_right(a: Value, k: int, width: int) -> Value:
    return _map(unsigned(a, width), lambda s: _shift_right(s, k))


def shift_right_signed(a: Value, k: int, width: int) -> Value:
    return _map(signed(a, width), lambda s: _shift_right(s, k))


def _shift_right(s: Span, k: int) -> Value:
    base = tuple((n, c / (1 << k)) for n, c in s.base) if s.base else NO_BASE
    lo, hi = s.lo >> k, s.hi >> k
    even = s.step % (1 << k) == 0
    step = 0 if lo == hi else s.step >> k if even else 1
    mask = s.mask >> k if s.mask >= 0 and not s.base else -1
    return (Span(base, lo, hi, step, mask),)


def shift_left(a: Value, k: int) -> Value:
    return _map(a, lambda s: (_scaled(s, 1 << k),))


def _scaled(s: Span, factor: int) -> Span:
    base = tuple((n, c * factor) for n, c in s.base) if s.base else NO_BASE
    return Span(base, s.lo * factor, s.hi * factor, s.step * factor, s.mask * factor if s.mask >= 0 else -1)


def mask_bits(a: Value, mask: int, width: int) -> Value:
    """`a & mask` for a constant mask."""
    low = (mask & -mask) - 1
    if mask | low == (1 << width) - 1:  # rounds down to a multiple, whatever the representative
        return _map(a, lambda s: (_rounded(s, low),))
    return _map(unsigned(a, width), lambda s: _masked(s, mask, width))


def _rounded(s: Span, low: int) -> Span:
    lo, hi = s.lo & ~low, s.hi & ~low
    step = s.step if s.step % (low + 1) == 0 and not s.lo & low else low + 1
    mask = s.mask & ~low if s.mask >= 0 else -1
    return Span(s.base, lo, hi, step if lo != hi else 0, mask)


def _masked(s: Span, mask: int, width: int) -> Value:
    top_bit = mask.bit_length()
    low = (mask & -mask) - 1
    run = mask | low == (1 << top_bit) - 1  # ones from some bit up
    if s.base:
        return _masked_base(s, mask, run, top_bit, low)
    if s.lo == s.hi:
        return constant(s.lo & mask)
    if s.lo >= 0:
        bits = s.bits & mask
        if run and s.hi >> top_bit == s.lo >> top_bit:
            cut = (s.lo >> top_bit) << top_bit
            lo, hi = (s.lo - cut) & ~low, (s.hi - cut) & ~low
            step = gcd(s.step, 0) if s.step % (low + 1) == 0 and not s.lo & low else low + 1
            return (Span(NO_BASE, lo, hi, step if lo != hi else 0, bits),)
        return bits_value(bits) if bits >= 0 else bits_value(mask)
    return bits_value(mask)


def _masked_base(s: Span, mask: int, run: bool, top_bit: int, low: int) -> Value:
    scale = max(c for _, c in s.base)
    if top_bit >= SPACE_BITS + (scale.as_integer_ratio()[0].bit_length() - scale.as_integer_ratio()[1].bit_length()):
        if run:
            return (Span(s.base, s.lo & ~low, s.hi & ~low, gcd(s.step, low + 1)),)
        holes = ~mask & ((1 << top_bit) - 1)
        return (Span(s.base, s.lo - holes, s.hi, 1),) if holes < 1 << 12 else (Span(s.base, 0, mask, 1),)
    return bits_value(mask)


def both(a: Value, b: Value, width: int) -> Value:
    """`a & b`."""
    for one, other in ((a, b), (b, a)):
        value = single(one)
        if value is not None:
            return mask_bits(other, value & ((1 << width) - 1), width)
        sign = signed(one, width)
        lo, hi = bounds(sign)
        if plain(sign) and lo == -1 and hi <= 0:  # a broadcast sign bit
            kept = unsigned(other, width)
            return join(constant(0), kept)
    left, right = value_bits(unsigned(a, width)), value_bits(unsigned(b, width))
    if left < 0 and right < 0:
        return top(width)
    return bits_value(right if left < 0 else left if right < 0 else left & right)


def either(a: Value, b: Value, width: int) -> Value:
    """`a | b`."""
    left, right = value_bits(a), value_bits(b)
    if left < 0 or right < 0:
        return _loose(a, b, width)
    lo = max(bounds(a)[0], bounds(b)[0])
    bits = left | right
    step = bits & -bits
    return interval(lo, bits, step, bits) if lo < bits and step and lo % step == 0 else bits_value(bits)


def exclusive(a: Value, b: Value, width: int) -> Value:
    """`a ^ b`."""
    left, right = value_bits(a), value_bits(b)
    if left < 0 or right < 0:
        return _loose(a, b, width)
    x, y = single(a), single(b)
    if x is not None and y is not None:
        return constant(x ^ y)
    return bits_value(left | right)


def _loose(a: Value, b: Value, width: int) -> Value:
    """`or`, `xor` with small bits: the other operand moves by less than the bits' power of two."""
    for one, other in ((a, b), (b, a)):
        bits = value_bits(other)
        if 0 <= bits < 1 << 12:
            slack = (1 << bits.bit_length()) - 1
            return tuple(Span(s.base, s.lo - slack, s.hi + slack, 1) for s in one)
    return top(width)


def or_constant(a: Value, mask: int, width: int) -> Value:
    return either(a, constant(mask), width)


def xor_constant(a: Value, mask: int, width: int) -> Value:
    return exclusive(a, constant(mask), width)


def multiply(a: Value, b: Value, width: int) -> Value:
    if not (plain(a) and plain(b)):
        return top(width)
    corners = [x * y for s in a for t in b for x in (s.lo, s.hi) for y in (t.lo, t.hi)]
    lo, hi = min(corners), max(corners)
    step = 0
    for s in a:
        for t in b:
            step = gcd(step, s.step * t.lo, t.step * s.lo, s.step * t.step, s.lo * t.lo - lo)
    return interval(lo, hi, step or 1)


def multiply_high(a: Value, b: Value, width: int, is_signed: bool) -> Value:
    fix = signed if is_signed else unsigned
    a, b = fix(a, width), fix(b, width)
    if not (plain(a) and plain(b)):
        return top(width)
    (al, ah), (bl, bh) = bounds(a), bounds(b)
    corners = [(x * y) >> width for x in (al, ah) for y in (bl, bh)]
    return interval(min(corners), max(corners))


def divide(a: Value, n: int, width: int, is_signed: bool) -> Value:
    a = (signed if is_signed else unsigned)(a, width)
    if n <= 0 or not plain(a):
        return top(width)
    lo, hi = bounds(a)
    return interval(_quotient(lo, n), _quotient(hi, n))


def _quotient(x: int, n: int) -> int:
    return x // n if x >= 0 else -(-x // n)


def remainder(a: Value, n: int, width: int, is_signed: bool) -> Value:
    a = (signed if is_signed else unsigned)(a, width)
    if n <= 0 or not plain(a):
        return top(width)
    lo, hi = bounds(a)
    if lo >= 0 and lo // n == hi // n:
        return _map(a, lambda s: (Span(NO_BASE, s.lo % n, s.hi % n, s.step),))
    step = n
    for s in a:
        step = gcd(step, s.step, s.lo)
    return interval(-(n - 1) // step * step if lo < 0 else 0, (n - 1) // step * step, step)


def zero_extend(a: Value, source: int) -> Value:
    return unsigned(a, source)


def sign_extend(a: Value, source: int) -> Value:
    return signed(a, source)


def lesser(a: Value, b: Value, width: int, is_signed: bool) -> Value:
    fix = signed if is_signed else unsigned
    a, b = fix(a, width), fix(b, width)
    if not (plain(a) and plain(b)):
        return join(a, b)
    (al, ah), (bl, bh) = bounds(a), bounds(b)
    return interval(min(al, bl), min(ah, bh))


def greater(a: Value, b: Value, width: int, is_signed: bool) -> Value:
    fix = signed if is_signed else unsigned
    a, b = fix(a, width), fix(b, width)
    if not (plain(a) and plain(b)):
        return join(a, b)
    (al, ah), (bl, bh) = bounds(a), bounds(b)
    return interval(max(al, bl), max(ah, bh))


def permute(a: Value, b: Value, selector: int) -> Value:
    """`prmt` with a constant selector: bits that can be one, byte by byte."""
    left, right = value_bits(unsigned(a, 32)), value_bits(unsigned(b, 32))
    source = (left if left >= 0 else 0xFFFFFFFF) | (right if right >= 0 else 0xFFFFFFFF) << 32
    bits = 0
    for i in range(4):
        nibble = selector >> (4 * i) & 15
        byte = source >> (8 * (nibble & 7)) & 0xFF
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        bits |= byte << (8 * i)
    known = single(a), single(b)
    if known[0] is not None and known[1] is not None and not selector & 0x8888:
        return constant(bits)
    return bits_value(bits)


def logic3(a: Value, b: Value, c: Value, table: int) -> Value:
    """`lop3.b32` with look-up table `table`: bits that can be one."""
    full = 0xFFFFFFFF
    masks: list[tuple[int, int]] = []  # bits that can be one, bits that can be zero
    for value in (a, b, c):
        value = unsigned(value, 32)
        known, bits = single(value), value_bits(value)
        masks.append((known & full, ~known & full) if known is not None else (bits if bits >= 0 else full, full))
    out = 0
    for index in range(8):
        if table >> index & 1:
            x = masks[0][0 if index & 4 else 1]
            y = masks[1][0 if index & 2 else 1]
            z = masks[2][0 if index & 1 else 1]
            out |= x & y & z
    return bits_value(out)


def absolute(a: Value, width: int) -> Value:
    a = signed(a, width)
    if not plain(a):
        return top(width)
    lo, hi = bounds(a)
    return interval(0 if lo <= 0 <= hi else min(abs(lo), abs(hi)), max(abs(lo), abs(hi)))
