"""Shared-memory matrix descriptors: which bytes an instruction reads behind one.

Encoding and spans: PTX ISA 9.7.15.5.1 (wgmma) and 9.7.16.4 (tcgen05); an address or offset field holds bytes / 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxfence.analysis.effects import Access, Copy, Matrix
from ptxfence.analysis.region import Region
from ptxfence.analysis.regions import Shape, region_of
from ptxfence.analysis.values_domain import SPACE_BITS, Span, Value

if TYPE_CHECKING:
    from ptxfence.analysis.values import Values

FIELD = 0x3FFF
ADDRESS_BITS = 14
LARGEST = 232_448  # bytes of shared memory that one CTA can have (227 KB)
WGMMA_SWIZZLE = {0: 0, 1: 128, 2: 64, 3: 32}
TCGEN05_SWIZZLE = {0: 0, 1: 128, 2: 128, 4: 64, 6: 32}


@dataclass(frozen=True, slots=True)
class Layout:
    """Byte distances of a descriptor's upper fields; `swizzle` is the row width in bytes, 0 for none.

    `shifted`: the pattern does not begin at a multiple of its size (base offset field, bits 49 to 51)."""

    leading: int
    stride: int
    swizzle: int
    shifted: bool = False


def matrix_region(values: Values, index: int, access: Access) -> Region:
    """The bytes that one instruction reads behind its descriptor operand."""
    node = values.node(index, access.operand)
    value = values.solver.under(node, values.env_at(index))
    graph = values.builder.graph
    address = graph.shl(graph.and_const(node, FIELD, 64), 4, 64)
    if graph.parts(address)[0] >= LARGEST:  # a negative offset, modulo the field
        address = graph.add(address, graph.const(-(1 << SPACE_BITS)), 32)
    layout = _layout(value, access.footprint)
    if layout is None:
        return region_of(values, index, address, Shape(access.space))
    size = _extent(values, index, access.footprint, layout)
    dense = isinstance(access.footprint, Copy) and size == access.footprint.count and not layout.swizzle
    if layout.swizzle:  # a K step moves the start inside the rows, and the swizzle moves chunks inside aligned rows
        atom = 8 * layout.swizzle
        size += atom if layout.shifted else 0
        address = graph.and_const(address, ~((atom if layout.shifted else layout.swizzle) - 1), 32)
    return region_of(values, index, address, Shape(access.space, size, size, dense))


def _layout(value: Value, footprint: object) -> Layout | None:
    """The upper fields, where every value agrees on them."""
    upper = {_upper(span) for span in value}
    if len(upper) != 1:
        return None
    (bits,) = upper
    if bits is None:
        return None
    family = footprint.family if isinstance(footprint, Matrix) else "tcgen05"
    wgmma = family == "wgmma"
    swizzle = WGMMA_SWIZZLE[bits >> 62 & 3] if wgmma else TCGEN05_SWIZZLE.get(bits >> 61 & 7, -1)
    if swizzle < 0 or bits >> 52 & 1:
        return None
    return Layout((bits >> 16 & FIELD) * 16, (bits >> 32 & FIELD) * 16, swizzle, bool(bits >> 49 & 7))


def _upper(span: Span) -> int | None:
    low, high = span.lo >> ADDRESS_BITS, span.hi >> ADDRESS_BITS
    if low != high:
        return None
    if low & 3 == 3:  # a borrow from a negative offset: bits 14 and 15 are unused
        low += 1
    elif low & 3 == 1:  # a carry: the offset is negative and was masked to the field
        low -= 1
    return (low << ADDRESS_BITS) & ((1 << 64) - 1)


def _extent(values: Values, index: int, footprint: object, layout: Layout) -> int:
    """Bytes from the (aligned) start to the end of the tile."""
    if isinstance(footprint, Copy):
        groups, columns = max(1, footprint.rows // 8), max(1, footprint.row_bytes // 16)
        return max(footprint.count, (groups - 1) * layout.stride + (columns - 1) * layout.leading + 128)
    assert isinstance(footprint, Matrix)
    rows, mn_major = _tile(values, index, footprint)
    atom = 8 * layout.swizzle
    if not mn_major:
        groups = max(1, -(-rows // 8))
        if layout.swizzle:
            wide = max(1, -(-footprint.row_bytes // layout.swizzle))
            return (groups - 1) * layout.stride + (wide - 1) * layout.leading + atom
        return (groups - 1) * layout.stride + (max(1, footprint.row_bytes // 16) - 1) * layout.leading + 128
    depth = max(1, footprint.row_bytes * 8 // footprint.element_bits // 8)
    width = rows * footprint.element_bits // 8
    if layout.swizzle:
        chunks = max(1, -(-width // layout.swizzle))
        return (chunks - 1) * layout.leading + (depth - 1) * layout.stride + atom
    cores = max(1, -(-rows // 8))
    return max(
        (cores - 1) * layout.stride + (depth - 1) * layout.leading,
        (cores - 1) * layout.leading + (depth - 1) * layout.stride,
    ) + 128  # fmt: skip


def _tile(values: Values, index: int, footprint: Matrix) -> tuple[int, bool]:
    """Rows of the tile and whether it is stored MN-major."""
    rows, major = footprint.rows, False
    if footprint.mn_major is not None:
        major = values.constant(index, footprint.mn_major) != 0
    if footprint.idesc is not None:
        bits = values.constant(index, footprint.idesc)
        first = footprint.which == "a"
        if bits is None:
            return (128 if first else 256), False
        if rows is None:
            rows = (bits >> 24 & 31) * 16 if first else (bits >> 17 & 63) * 8
            rows //= footprint.ctas
        major = bool(bits >> (15 if first else 16) & 1)
    if rows is None:
        rows = 128 if footprint.which == "a" else 256
    return rows, major
