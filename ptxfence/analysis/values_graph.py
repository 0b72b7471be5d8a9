"""Hash-consed expressions: one node per distinct value of one thread.

Additions, subtractions, shifts and multiplications by constants fold into linear forms (`lin` nodes: a constant
plus terms `coefficient * atom`), so that `base + tid * 16 + stage * 16384` keeps its terms. Every other operation
is an atom. The constructors apply the rewrites that keep compilers' address arithmetic linear: an `or` of disjoint
bits is an addition, aligned parts move out of masks and shifts, `x - (x & m)` is `x & ~m`, `x - n * (x div n)` is
`x rem n`, a multiply-high with a magic number is a division.
"""

from __future__ import annotations

from collections.abc import Callable

from ptxfence.analysis import values_fold
from ptxfence.analysis.values_domain import Value, value_bits
from ptxfence.analysis.values_nodes import Node, Terms, to_signed
from ptxfence.analysis.values_ranges import Ranges

_PLAIN = frozenset(("var", "sym", "phi"))
_FOLDED = frozenset(("div", "and", "shr", "shrs", "mulhis"))


def _id(term: tuple[Node, int]) -> int:
    return term[0].id


class Graph(Ranges):
    """Node factory. `evaluate` gives the context-free value of a node; `alignment` the alignment of base symbols."""

    def __init__(self, evaluate: Callable[[Node], Value]) -> None:
        super().__init__(evaluate)
        self.count = 0
        self._nodes: dict[object, Node] = {}
        self._lins: dict[tuple[int, Terms], Node] = {}

    # --- atoms -----------------------------------------------------------------------------------

    def atom(self, op: str, args: tuple[Node, ...] = (), data: tuple[int | str, ...] = (), width: int = 32) -> Node:
        key = (op, args, data, width)
        node = self._nodes.get(key)
        if node is None:
            self.count += 1
            node = self._nodes[key] = Node(self.count, op, args, data, width)
        return node

    def known(self, key: tuple[str, tuple[Node, ...], tuple[int | str, ...], int]) -> Node | None:
        """The atom with these parts if there is one already."""
        return self._nodes.get(key)

    def var(self, name: str, width: int = 32) -> Node:
        return self.atom("var", (), (name,), width)

    def symbol(self, name: str, align: int) -> Node:
        self.alignment.setdefault(name, align)
        return self.atom("sym", (), (name, 0))

    def phi(self, register: str, block: int, width: int) -> Node:
        node = self.atom("phi", (), (register, block), width)
        if not node.phis:
            node.phis = frozenset((node,))
        return node

    # --- linear forms ----------------------------------------------------------------------------

    def const(self, value: int) -> Node:
        return self.form(value, ())

    def form(self, const: int, terms: Terms) -> Node:
        """The node of a linear form whose terms are in order."""
        if const == 0 and len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        key = (const, terms)
        node = self._lins.get(key)
        if node is None:
            self.count += 1
            node = self._lins[key] = Node(self.count, "lin", tuple(a for a, _ in terms), (), 0)
            node.const, node.terms = const, terms
        return node

    def linear(self, const: int, terms: dict[Node, int], width: int) -> Node:
        """The linear form modulo `2**width`."""
        limit, half, mask = 1 << width, 1 << (width - 1), (1 << width) - 1
        if not -half <= const < half:
            const = to_signed(const, width)
        kept: list[tuple[Node, int]] = []
        for atom, k in terms.items():
            if not -half <= k < half:
                k &= mask
                k = k - limit if k >= half else k
            if k:
                kept.append((atom, k))
        if len(kept) > 1:
            ops = {atom.op for atom, _ in kept}
            if ops <= _PLAIN:
                kept.sort(key=_id)
                return self.form(const, tuple(kept))
            if "shr" in ops and not ops.isdisjoint(("shrs", "mulhis")):
                kept = values_fold.signed_divisions(self, kept)
            if not ops.isdisjoint(_FOLDED):
                const, kept = values_fold.fold(self, const, kept, width)
            if "zext" in ops and "shr" in ops:
                kept = values_fold.rejoined_halves(self, kept)
            kept.sort(key=_id)
        return self.form(const, tuple(kept))

    def parts(self, node: Node) -> tuple[int, Terms]:
        return (node.const, node.terms) if node.op == "lin" else (0, ((node, 1),))

    def add(self, a: Node, b: Node, width: int, factor: int = 1) -> Node:
        """`a + factor * b`."""
        ca, ta = self.parts(a)
        cb, tb = self.parts(b)
        if not tb:  # a moved constant leaves the terms as they are
            half = 1 << (width - 1)
            const = ca + cb * factor
            if -half <= const < half and all(-half <= k < half for _, k in ta):
                return self.form(const, ta)
        terms = dict(ta)
        for atom, k in tb:
            terms[atom] = terms.get(atom, 0) + k * factor
        return self.linear(ca + cb * factor, terms, width)

    def scale(self, a: Node, factor: int, width: int) -> Node:
        if factor == 1:
            return a
        const, terms = self.parts(a)
        return self.linear(const * factor, {atom: k * factor for atom, k in terms}, width)

    def mul(self, a: Node, b: Node, width: int) -> Node:
        if self.is_const(a):
            a, b = b, a
        if self.is_const(b):
            return self.scale(a, b.const, width)
        return self.atom("mul", (a, b) if a.id <= b.id else (b, a), (), width)

    def split(self, node: Node, k: int) -> tuple[dict[Node, int], int, Node]:
        """`node` as (terms and constant that are multiples of `2**k`, remainder)."""
        const, terms = self.parts(node)
        low = (1 << k) - 1
        high: dict[Node, int] = {}
        rest: dict[Node, int] = {}
        for atom, factor in terms:
            if (factor * self._atom_align(atom)) & low == 0:
                high[atom] = factor
            elif abs(factor) > low and factor & low <= low >> 1:
                high[atom], rest[atom] = factor & ~low, factor & low
            else:
                rest[atom] = factor
        return high, const & ~low, self.linear(const & low, rest, 64)

    def _atom_align(self, atom: Node) -> int:
        if atom.op == "sym":
            return self.alignment[str(atom.data[0])] >> int(atom.data[1])
        if atom.op in ("and", "mul", "selp") and atom.av is not None:
            bits = value_bits(atom.av)
            return bits & -bits if bits > 0 else 1
        return 1

    def _rejoin(self, high: dict[Node, int], const: int, rest: Node, width: int) -> Node:
        c, terms = self.parts(rest)
        total = dict(high)
        for atom, k in terms:
            total[atom] = total.get(atom, 0) + k
        return self.linear(const + c, total, width)

    # --- bitwise and shifts ----------------------------------------------------------------------

    def shl(self, a: Node, k: int, width: int) -> Node:
        if k >= width:
            return self.const(0)
        const, terms = self.parts(a)
        scaled: dict[Node, int] = {}
        for atom, factor in terms:
            if atom.op == "sym" and int(atom.data[1]) > 0:
                back = min(k, int(atom.data[1]))
                inner = self.atom("sym", (), (atom.data[0], int(atom.data[1]) - back))
                scaled[inner] = scaled.get(inner, 0) + (factor << (k - back))
            elif atom.op == "and" and int(atom.data[0]) >> max(0, width - k):  # bits of the mask that are shifted out
                kept = self.and_const(atom.args[0], int(atom.data[0]) & ((1 << (width - k)) - 1), atom.width)
                base, inner = self.parts(kept)
                const += base * factor
                for part, times in inner:
                    scaled[part] = scaled.get(part, 0) + (times * factor << k)
            else:
                scaled[atom] = scaled.get(atom, 0) + (factor << k)
        return self.linear(const << k, scaled, width)

    def shr(self, a: Node, k: int, width: int, signed: bool) -> Node:
        if k == 0:
            return a
        if self.is_const(a):
            value = a.const if signed else a.const & ((1 << width) - 1)
            return self.const(to_signed(value >> k, width))
        quotient = values_fold.averaged(self, a, k) if width == 32 and len(a.terms) == 2 and not a.const else None
        if quotient is not None:
            return quotient
        fits = self.signed_fits(a, width) if signed else self.fits(a, width)
        op = "shrs" if signed and not self.fits(a, width - 1) else "shr"
        if not fits:
            return self.atom(op, (a,), (k,), width)
        if a.op not in ("lin", "sym"):
            return self.const(0) if self.fits(a, k) else self._shr_atom(op, a, k, width)
        high, const, rest = self.split(a, k)
        if not high and not const:
            return self.const(0) if self.fits(rest, k) else self._shr_atom(op, rest, k, width)
        moved: dict[Node, int] = {}
        for atom, factor in high.items():
            inner, by = self._shifted(atom, factor, k)
            moved[inner] = moved.get(inner, 0) + by
        if self.fits(rest, k):
            return self.linear(const >> k, moved, width)
        low = self.shr(rest, k, 64, True)
        return self._rejoin(moved, const >> k, low, width)

    def _shr_atom(self, op: str, a: Node, k: int, width: int) -> Node:
        if (
            a.op == "lin"
            and not a.const
            and len(a.terms) == 1
            and (found := values_fold.magic(self, *a.terms[0], k)) is not None
        ):
            return found
        if a.op == "div":
            return self.atom("div", a.args, (int(a.data[0]) << k,), a.width)
        if a.op == "shr" and op == "shr":
            return self.atom("shr", a.args, (int(a.data[0]) + k,), a.width)
        if a.op == "and":
            mask = int(a.data[0]) >> k
            return self.and_const(self.shr(a.args[0], k, a.width, False), mask, width)
        return self.atom(op, (a,), (k,), width)

    def _shifted(self, atom: Node, factor: int, k: int) -> tuple[Node, int]:
        low = factor & -factor
        by = min(low.bit_length() - 1, k)
        if by == k:
            return atom, factor >> k
        if atom.op == "sym":
            return self.atom("sym", (), (atom.data[0], int(atom.data[1]) + k - by)), factor >> by
        return self.shr(atom, k - by, 64, False), factor >> by

    def and_const(self, a: Node, mask: int, width: int) -> Node:
        mask &= (1 << width) - 1
        if self.is_const(a):
            return self.const(to_signed(a.const & mask, width))
        if mask == 0 or mask == (1 << width) - 1:
            return a if mask else self.const(0)
        bits = self.bits(a)
        if bits >= 0 and not bits & ~mask:
            return a
        if bits >= 0 and not bits & mask:
            return self.const(0)
        if a.op == "and":
            return self.and_const(a.args[0], mask & int(a.data[0]), width)
        if a.op == "lin":
            return self._and_lin(a, mask, width)
        return self.atom("and", (a,), (mask,), width)

    def _and_lin(self, a: Node, mask: int, width: int) -> Node:
        top = mask.bit_length()
        inside = top == width or self.fits(a, top)
        if not inside:
            high, const, rest = self.split(a, top)
            if high or const:  # bits above the mask do not matter
                return self.and_const(rest, mask, width)
        else:
            ones = ~mask & ((1 << top) - 1)  # holes in the mask
            high, const, rest = self.split(a, ones.bit_length())
            if (high or const) and (top == width or self._rest_inside(rest, top)):
                return self._rejoin(high, const, self.and_const(rest, mask, width), width)
        parts = self._disjoint(a)
        if parts:
            total = self.const(0)
            for atom, shift in parts:
                part = self.shl(self.and_const(atom, mask >> shift, 64), shift, width)
                total = self.add(total, part, width)
            return self.add(total, self.const(a.const & mask), width)
        return self.atom("and", (a,), (mask,), width)

    def _rest_inside(self, rest: Node, top: int) -> bool:
        return self.is_const(rest) or self.fits(rest, top)

    def _disjoint(self, a: Node) -> list[tuple[Node, int]]:
        """Terms of a sum of disjoint bits as (atom, shift); empty if it is none."""
        used = a.const
        if used < 0:
            return []
        parts: list[tuple[Node, int]] = []
        for atom, k in a.terms:
            bits = self._atom_bits(atom)
            if k <= 0 or k & (k - 1) or bits < 0 or bits * k & used:
                return []
            used |= bits * k
            parts.append((atom, k.bit_length() - 1))
        return parts

    def bitwise(self, op: str, a: Node, b: Node, width: int) -> Node:
        """`and`, `or`, `xor`."""
        if self.is_const(a):
            a, b = b, a
        if op == "and":
            if self.is_const(b):
                return self.and_const(a, b.const, width)
            return a if a is b else self._binary("and2", a, b, width)
        if a is b:
            return a if op == "or" else self.const(0)
        if self.is_const(a):
            both = a.const | b.const if op == "or" else a.const ^ b.const
            return self.const(to_signed(both, width))
        left, right = self.bits(a), self.bits(b)
        if left >= 0 and right >= 0 and not left & right:
            return self.add(a, b, width)
        if self.is_const(b):
            return self._bit_const(op, a, b.const & ((1 << width) - 1), left, width)
        return self._pull(op, a, b, left, right, width)

    def _pull(self, op: str, a: Node, b: Node, left: int, right: int, width: int) -> Node:
        """Move what lies above the other operand's bits out of `or` and `xor`."""
        if right >= 0 and (left < 0 or right.bit_length() <= left.bit_length()):
            high, const, rest = self.split(a, right.bit_length())
            if high or const:
                return self._rejoin(high, const, self.bitwise(op, rest, b, 64 if width == 64 else 32), width)
        elif left >= 0:
            high, const, rest = self.split(b, left.bit_length())
            if high or const:
                return self._rejoin(high, const, self.bitwise(op, a, rest, 64 if width == 64 else 32), width)
        return self._binary(op, a, b, width)

    def _binary(self, op: str, a: Node, b: Node, width: int) -> Node:
        return self.atom(op, (a, b) if a.id <= b.id else (b, a), (), width)

    def _bit_const(self, op: str, a: Node, mask: int, bits: int, width: int) -> Node:
        if mask == 0:
            return a
        if op == "xor" and mask == (1 << width) - 1:  # ~a = -1 - a
            return self.add(self.const(-1), a, width, -1)
        high, const, rest = self.split(a, mask.bit_length())
        if high or const:
            return self._rejoin(high, const, self.bitwise(op, rest, self.const(to_signed(mask, 64)), 64), width)
        outside = mask & ~bits if bits >= 0 else 0
        if outside:
            inner = self.bitwise(op, a, self.const(mask & bits), width) if mask & bits else a
            return self.add(inner, self.const(to_signed(outside, width)), width)
        return self.atom(op + "c", (a,), (mask,), width)

    # --- width changes ---------------------------------------------------------------------------

    def trunc(self, a: Node, width: int) -> Node:
        const, terms = self.parts(a)
        total: dict[Node, int] = {}
        for atom, k in terms:
            if atom.op in ("zext", "sext") and int(atom.data[0]) >= width:
                base, inner = self.parts(atom.args[0])
                const += base * k
                for part, factor in inner:
                    total[part] = total.get(part, 0) + k * factor
                continue
            kept = atom.op == "shr" and atom.width == 64 and int(atom.data[0]) + width <= 64
            if kept and not self.fits(atom.args[0], 64):
                shifted = self.atom("shrs", atom.args, atom.data, 64)  # the same in the bits that stay
                total[shifted] = total.get(shifted, 0) + k
            else:
                total[atom] = total.get(atom, 0) + k
        return self.linear(const, total, width)

    def extend(self, a: Node, source: int, signed: bool) -> Node:
        """The integer that the low `source` bits of `a` stand for."""
        if self.is_const(a):
            value = to_signed(a.const, source)
            return self.const(value if signed else value & ((1 << source) - 1))
        if self.signed_fits(a, source) if signed else self.fits(a, source):
            return a
        if a.op == "lin" and a.const and not signed and self._has_symbol(a):
            return a
        a = self.trunc(a, source)
        return self.atom("sext" if signed else "zext", (a,), (source,), 64)

    def _has_symbol(self, a: Node) -> bool:
        return any(atom.op == "sym" and k > 0 for atom, k in a.terms)

    def remainder(self, a: Node, n: int, width: int) -> Node:
        """`a mod n` for `a >= 0`; multiples of n drop out of a linear form."""
        if n & (n - 1) == 0:
            return self.and_const(a, n - 1, width)
        if a.op == "lin" and self.fits(a, 63):
            a = self.linear(a.const % n, {atom: k % n for atom, k in a.terms}, 64)
        if self.is_const(a):
            return self.const(a.const % n)
        return a if self.fits(a, n.bit_length() - 1) else self.atom("rem", (a,), (n,), width)

    def divide(self, a: Node, n: int, width: int) -> Node:
        if n & (n - 1) == 0:
            return self.shr(a, n.bit_length() - 1, width, False)
        return self.atom("div", (a,), (n,), width)
