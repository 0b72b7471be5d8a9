"""The abstract domain: small sets of strided intervals over linear combinations of base addresses.

A `Value` is a tuple of `Span`s; the concrete value lies in one of them. A span is `base + x` with `x` in
`{lo, lo + step, ..., hi}`, where `base` is a sum of base addresses with power-of-two coefficients (a matrix
descriptor holds an address divided by 16, hence 1/16). Values stand for residues modulo the width of their
operation; `unsigned` and `signed` choose the representative that an operation needs.
"""

from __future__ import annotations

from math import gcd

BaseSum = tuple[tuple[str, float], ...]
NO_BASE: BaseSum = ()
LIMIT = 6  # spans of one value; more are merged
SPACE_BITS = 18  # shared-memory addresses fit (matrix descriptors encode 18 bits, PTX ISA 9.7.15.5.1)


class Span:
    """`base + {lo, lo + step, ..., hi}`; `mask` holds the bits of the offset that can be one, -1 if unknown."""

    __slots__ = ("base", "hi", "lo", "mask", "step")

    def __init__(self, base: BaseSum, lo: int, hi: int, step: int, mask: int = -1) -> None:
        self.base = base
        self.lo = lo
        self.hi = hi
        self.step = step
        self.mask = mask

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Span)
            and self.lo == other.lo
            and self.hi == other.hi
            and self.step == other.step
            and self.base == other.base
            and self.mask == other.mask
        )

    def __hash__(self) -> int:
        return hash((self.base, self.lo, self.hi, self.step))

    def __repr__(self) -> str:
        names = "".join(f"{name}*{scale:g}+" if scale != 1 else f"{name}+" for name, scale in self.base)
        body = f"{self.lo}" if self.lo == self.hi else f"[{self.lo}..{self.hi}]"
        return f"{names}{body}" + (f"/{self.step}" if self.step > 1 else "")

    @property
    def bits(self) -> int:
        """Bits of the offset that can be one; -1 where it can be negative."""
        if self.mask >= 0 or self.lo < 0:
            return self.mask
        return interval_bits(self.lo, self.hi, self.step)


Value = tuple[Span, ...]


def interval_bits(lo: int, hi: int, step: int) -> int:
    """Bits that can be one in `{lo, lo + step, ..., hi}`, all of them >= 0."""
    if lo == hi:
        return lo
    low = (step & -step) - 1 if step else 0
    return ((1 << hi.bit_length()) - 1) & ~low | (lo & low)


def constant(value: int) -> Value:
    return (Span(NO_BASE, value, value, 0),)


def interval(lo: int, hi: int, step: int = 1, mask: int = -1) -> Value:
    if lo == hi:
        step = 0
    return (Span(NO_BASE, lo, hi, step, mask),)


def top(width: int) -> Value:
    return (Span(NO_BASE, 0, (1 << width) - 1, 1),)


def bits_value(mask: int) -> Value:
    """Any combination of the bits of `mask`."""
    if mask == 0:
        return constant(0)
    return (Span(NO_BASE, 0, mask, mask & -mask, mask),)


def base_value(name: str) -> Value:
    return (Span(((name, 1.0),), 0, 0, 0),)


def single(value: Value) -> int | None:
    """The constant that the value is, if it is one."""
    if len(value) == 1:
        span = value[0]
        if span.lo == span.hi and not span.base:
            return span.lo
    return None


def plain(value: Value) -> bool:
    """Whether no span has a base."""
    if len(value) == 1:
        return not value[0].base
    return not any(span.base for span in value)


def bounds(value: Value) -> tuple[int, int]:
    """Lowest and highest offset over all spans, whatever their bases."""
    if len(value) == 1:
        return value[0].lo, value[0].hi
    return min(s.lo for s in value), max(s.hi for s in value)


def value_bits(value: Value) -> int:
    """Bits that can be one in any span of a plain value; -1 if unknown."""
    mask = 0
    for span in value:
        bits = span.bits
        if bits < 0 or span.base:
            return -1
        mask |= bits
    return mask


def within(value: Value, lo: int, hi: int) -> bool:
    """Whether every span is plain and inside `[lo, hi]`."""
    return all(not s.base and s.lo >= lo and s.hi <= hi for s in value)


def merge(a: Span, b: Span) -> Span:
    """The smallest span that holds two spans of one base."""
    lo, hi = min(a.lo, b.lo), max(a.hi, b.hi)
    step = gcd(a.step, b.step, abs(a.lo - b.lo))
    left, right = a.bits, b.bits
    mask = left | right if left >= 0 and right >= 0 else -1
    return Span(a.base, lo, hi, step, mask)


def _count(span: Span) -> int:
    return (span.hi - span.lo) // span.step + 1 if span.step else 1


def _contains(a: Span, b: Span) -> bool:
    if a.lo > b.lo or a.hi < b.hi:
        return False
    if a.step == 0:
        return True
    return b.step % a.step == 0 and (b.lo - a.lo) % a.step == 0


def _merged_exactly(a: Span, b: Span) -> Span | None:
    """Their union, where one of them holds the other or it is a span of its own."""
    if a.base != b.base:
        return None
    if _contains(a, b):
        return a if a.mask == b.mask or a.mask < 0 else Span(a.base, a.lo, a.hi, a.step)
    if _contains(b, a):
        return b if a.mask == b.mask or b.mask < 0 else Span(b.base, b.lo, b.hi, b.step)
    union = merge(a, b)
    return union if union.step and _count(union) == _count(a) + _count(b) else None


def join(a: Value, b: Value) -> Value:
    """Union, exact while it takes at most LIMIT spans."""
    if a == b:
        return a
    spans = list(a)
    for new in b:
        for i, old in enumerate(spans):
            union = _merged_exactly(old, new)
            if union is not None:
                spans[i] = union
                break
        else:
            spans.append(new)
    return tuple(spans) if len(spans) <= LIMIT else hull(tuple(spans))


def hull(value: Value) -> Value:
    """One span a base; anything where there are too many bases."""
    if len(value) == 1:
        return value
    spans: dict[BaseSum, Span] = {}
    for span in value:
        old = spans.get(span.base)
        spans[span.base] = merge(old, span) if old else span
    return tuple(spans.values()) if len(spans) <= LIMIT else top(64)


def _capped(spans: list[Span]) -> Value:
    if len(spans) <= LIMIT:
        return tuple(dict.fromkeys(spans)) if len(spans) > 1 else tuple(spans)
    return hull(tuple(spans))


def _base_sum(a: BaseSum, b: BaseSum, factor: float = 1.0) -> BaseSum:
    if not b:
        return a
    total = dict(a)
    for name, scale in b:
        total[name] = total.get(name, 0.0) + scale * factor
    return tuple(sorted((n, s) for n, s in total.items() if s))


def add(a: Value, b: Value) -> Value:
    return _capped([_add(x, y) for x in a for y in b])


def _add(x: Span, y: Span) -> Span:
    mask = -1
    if x.mask >= 0 or y.mask >= 0:
        left, right = x.bits, y.bits
        mask = left | right if left >= 0 and right >= 0 and not left & right else -1
    return Span(_base_sum(x.base, y.base), x.lo + y.lo, x.hi + y.hi, gcd(x.step, y.step), mask)


def shift(a: Value, offset: int) -> Value:
    """`a + offset`."""
    if offset == 0:
        return a
    return tuple(_add(s, Span(NO_BASE, offset, offset, 0)) for s in a)


def scale(a: Value, factor: int) -> Value:
    if factor == 1:
        return a
    if factor == 0:
        return constant(0)
    return tuple(_scaled(s, factor) for s in a)


def _scaled(span: Span, factor: int) -> Span:
    base = tuple((n, s * factor) for n, s in span.base) if span.base else NO_BASE
    mask = span.mask * factor if span.mask >= 0 and factor > 0 and factor & (factor - 1) == 0 else -1
    if factor > 0:
        return Span(base, span.lo * factor, span.hi * factor, span.step * factor, mask)
    return Span(base, span.hi * factor, span.lo * factor, -span.step * factor, mask)


def unsigned(value: Value, width: int) -> Value:
    """Representatives in `[0, 2**width)`. Bases are taken to keep their sums in range."""
    limit = (1 << width) - 1
    if len(value) == 1:
        span = value[0]
        if (span.lo >= 0 and span.hi <= limit) or span.base:
            return value
    return _unique([_normal(s, width, 0) for s in value])


def signed(value: Value, width: int) -> Value:
    """Representatives in `[-2**(width-1), 2**(width-1))`."""
    half = 1 << (width - 1)
    if len(value) == 1:
        span = value[0]
        if (span.lo >= -half and span.hi < half) or span.base:
            return value
    return _unique([_normal(s, width, half) for s in value])


def _unique(spans: list[Span]) -> Value:
    return tuple(dict.fromkeys(spans))


def _normal(span: Span, width: int, bias: int) -> Span:
    if span.base:
        return span
    low, high = (span.lo + bias) >> width, (span.hi + bias) >> width
    if low == high:
        return span if low == 0 else Span(NO_BASE, span.lo - (low << width), span.hi - (low << width), span.step)
    step = gcd(span.step, 1 << width)
    residue = (span.lo + bias) % step
    last = residue + ((1 << width) - 1 - residue) // step * step
    return Span(NO_BASE, residue - bias, last - bias, step)


def clip(value: Value, lo: int, hi: int, width: int) -> Value:
    """The part of `value` inside the circular interval `[lo, hi]` modulo `2**width`; empty if there is none.

    Spans with a base are kept: a bound on an absolute address says nothing of the offset.
    """
    result: list[Span] = []
    for span in value:
        if span.base:
            result.append(span)
        elif (piece := _clipped(span, lo, hi, width)) is not None:
            result.append(piece)
    return tuple(result)


def _clipped(span: Span, lo: int, hi: int, width: int) -> Span | None:
    modulus = 1 << width
    first, last = (span.lo - hi + modulus - 1) // modulus, (span.hi - lo) // modulus
    if last < first:
        return None
    new_lo, new_hi = max(span.lo, lo + first * modulus), min(span.hi, hi + last * modulus)
    if span.step > 1:
        new_lo += (span.lo - new_lo) % span.step
        new_hi -= (new_hi - span.lo) % span.step
    if new_lo > new_hi:
        return None
    if new_lo == span.lo and new_hi == span.hi:
        return span
    step = span.step if new_lo != new_hi else 0
    mask = span.mask & ((1 << new_hi.bit_length()) - 1) if span.mask >= 0 and step else -1
    return Span(NO_BASE, new_lo, new_hi, step, mask)
