"""What the bounds and bits of an expression are, as far as rewrites need to know: `Graph` builds on it."""

from __future__ import annotations

from collections.abc import Callable

from ptxfence.analysis.values_domain import SPACE_BITS, Value
from ptxfence.analysis.values_nodes import Node


class Ranges:
    """`evaluate` gives the context-free value of a node; `alignment` the alignment of base symbols in bytes."""

    def __init__(self, evaluate: Callable[[Node], Value]) -> None:
        self.evaluate = evaluate
        self.alignment: dict[str, int] = {}

    def is_const(self, node: Node) -> bool:
        return node.op == "lin" and not node.terms

    def fits(self, node: Node, bits: int) -> bool:
        """Whether the node is in `[0, 2**bits)`; addresses of shared memory are taken to fit in 18 bits."""
        if self.is_const(node):
            return 0 <= node.const < 1 << bits
        limit = 1 << bits
        for span in self.evaluate(node):
            if not span.base:
                if span.lo < 0 or span.hi >= limit:
                    return False
                continue
            room = self._room(span.base)  # what is addressed exists, even where the bounds are wider
            if room == 0 or room > limit or span.hi >= 2 * room or span.lo <= -room:
                return False
        return True

    def _room(self, base: tuple[tuple[str, float], ...]) -> int:
        """Upper bound of an address with these bases; 0 if none is known."""
        total = 0.0
        for name, factor in base:
            if factor < 0:
                return 0
            total += factor * (1 << (64 if name.startswith("@") else SPACE_BITS))
        return int(total)

    def signed_fits(self, node: Node, bits: int) -> bool:
        half = 1 << (bits - 1)
        if self.is_const(node):
            return -half <= node.const < half
        return all(span.lo >= -half and span.hi < half for span in self.evaluate(node))

    def bits(self, node: Node) -> int:
        """Bits that can be one, -1 if unknown. An address and a bounded offset stay below 2**18."""
        if node.op != "lin":
            return self._atom_bits(node)
        if node.const < 0:
            return self._sum_bits(node)
        total, overlap, most, low = node.const, 0, node.const, node.const
        room = 0
        for atom, k in node.terms:
            part = self._atom_bits(atom)
            if part < 0 or k < 0:
                return self._sum_bits(node)
            if atom.op == "sym" and k == 1:
                room = ((1 << SPACE_BITS) - 1) >> int(atom.data[1])
            piece = part * k
            overlap |= total & piece if k & (k - 1) == 0 else -1
            total |= piece
            most += piece
            low |= piece
        if not overlap:
            return total
        if room and most <= 2 * room + 1:
            most = min(most, room)
        return ((1 << most.bit_length()) - 1) & ~((low & -low) - 1)

    def _sum_bits(self, node: Node) -> int:
        return self._value_bits(self.evaluate(node))

    def _atom_bits(self, atom: Node) -> int:
        if atom.op == "sym":
            name, right = str(atom.data[0]), int(atom.data[1])
            if name.startswith("@"):
                return -1
            return (((1 << SPACE_BITS) - 1) & ~(self.alignment[name] - 1)) >> right
        bits = self._value_bits(self.evaluate(atom))
        return int(atom.data[0]) if bits < 0 and atom.op == "and" else bits

    def _value_bits(self, value: Value) -> int:
        """Bits of a value that may be an address; -1 if unknown."""
        total = 0
        for span in value:
            if not span.base:
                bits = span.bits
            else:
                room = self._room(span.base)
                if room == 0 or span.hi >= 2 * room or span.lo <= -room:
                    return -1
                low = span.lo | span.step
                for name, factor in span.base:
                    low |= int(self.alignment[name] * factor) or 1
                bits = ((1 << (room - 1).bit_length()) - 1) & ~((low & -low) - 1)
            if bits < 0:
                return -1
            total |= bits
        return total
