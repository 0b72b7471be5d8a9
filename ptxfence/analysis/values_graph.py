"""Hash-consed expressions: one node per distinct value of one thread.

Additions, subtractions, shifts and multiplications by constants fold into linear forms (`lin` nodes: a constant
plus terms `coefficient * atom`), so that `base + tid * 16 + stage * 16384` keeps its terms. Every other operation
is an atom. The constructors apply the rewrites that keep compilers' address arithmetic linear: an `or` of disjoint
bits is an addition, aligned parts move out of masks and shifts, `x - (x & m)` is `x & ~m`, `x - n * (x div n)` is
`x rem n`, a multiply-high with a magic number is a division.
"""

from __future__ import annotations

from collections.abc import Callable, Container

from ptxfence.analysis.values_domain import SPACE_BITS, Value, plain, value_bits

Terms = tuple[tuple["Node", int], ...]
_BLOOM = 255
_FOLDED = frozenset(("div", "and", "shr", "shrs", "mulhis"))


class Node:
    """One expression. `args` are nodes, `data` integers or names; `lin` nodes use `const` and `terms` instead."""

    __slots__ = ("alias", "args", "av", "bloom", "const", "data", "id", "op", "phis", "terms", "width")

    def __init__(self, number: int, op: str, args: tuple[Node, ...], data: tuple[int | str, ...], width: int) -> None:
        self.id = number
        self.op = op
        self.args = args
        self.data = data
        self.width = width
        self.const = 0
        self.terms: Terms = ()
        self.av: Value | None = None
        self.alias: Node | None = None
        bloom = 1 << (number & _BLOOM)
        phis: frozenset[Node] = frozenset()
        for arg in args:
            bloom |= arg.bloom
            phis = phis | arg.phis if phis else arg.phis
        self.bloom = bloom
        self.phis = phis

    def __repr__(self) -> str:
        return describe(self, 4)


def describe(node: Node, depth: int = 6) -> str:
    """The expression as text, cut at `depth` levels."""
    if node.op == "lin":
        parts = [describe(a, depth - 1) if k == 1 else f"{k}*{describe(a, depth - 1)}" for a, k in node.terms]
        return " + ".join([*parts, str(node.const)] if node.const or not parts else parts)
    if node.op in ("var", "sym"):
        return str(node.data[0])
    if node.op == "phi":
        return f"phi@{node.data[1]}({node.data[0]})"
    if depth <= 0:
        return f"#{node.id}"
    inner = ", ".join([describe(a, depth - 1) for a in node.args] + [str(d) for d in node.data])
    return f"{node.op}({inner})"


def unvisited(node: Node, done: Container[Node]) -> list[Node]:
    """The parts of an expression that are not in `done`, arguments before what uses them. Iterative."""
    if node in done:
        return []
    order: list[Node] = []
    seen: set[Node] = set()
    work: list[tuple[Node, bool]] = [(node, False)]
    while work:
        part, ready = work.pop()
        if ready:
            order.append(part)
        elif part not in seen and part not in done:
            seen.add(part)
            work.append((part, True))
            work.extend((arg, False) for arg in part.args)
    return order


def to_signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _id(term: tuple[Node, int]) -> int:
    return term[0].id


class Graph:
    """Node factory. `evaluate` gives the context-free value of a node; `alignment` the alignment of base symbols."""

    def __init__(self, evaluate: Callable[[Node], Value]) -> None:
        self.evaluate = evaluate
        self.alignment: dict[str, int] = {}
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
        return self._lin(value, ())

    def _lin(self, const: int, terms: Terms) -> Node:
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
            if "shr" in ops and not ops.isdisjoint(("shrs", "mulhis")):
                kept = self._signed_divisions(kept)
            if not ops.isdisjoint(_FOLDED):
                const, kept = self._fold(const, kept, width)
            if "zext" in ops and "shr" in ops:
                kept = self._rejoined_halves(kept)
            kept.sort(key=_id)
        return self._lin(const, tuple(kept))

    def _rejoined_halves(self, terms: list[tuple[Node, int]]) -> list[tuple[Node, int]]:
        """`(x >> 32 << 32) + (x & 0xffffffff)` is x."""
        table = dict(terms)
        for atom, k in terms:
            if atom.op == "zext" and atom.data[0] == 32 and atom in table:
                whole = atom.args[0]
                upper = self._nodes.get(("shr", (whole, ), (32,), 64))
                if upper is not None and table.get(upper) == k << 32:
                    del table[atom], table[upper]
                    for part, factor in self.parts(whole)[1]:
                        table[part] = table.get(part, 0) + k * factor
        return list(table.items())

    def _signed_divisions(self, terms: list[tuple[Node, int]]) -> list[tuple[Node, int]]:
        """`(t >> s) + (t >>> 31)` with t the high half of `x * magic` (plus x) is `x div n`.

        A dividend of unknown sign is taken to be >= 0: compilers index rings with it, and a negative index would
        leave the object.
        """
        table = dict(terms)
        for atom, k in terms:
            if atom.op != "shr" or atom.data[0] != 31 or atom.width != 32:
                continue
            high = atom.args[0]
            for other in table:
                shift = int(other.data[0]) if other.op == "shrs" and other.args[0] is high else 0 if other is high else -1
                if shift < 0 or table[other] != k or (found := self._signed_divisor(high, shift)) is None:
                    continue
                del table[atom], table[other]
                new = self.atom("div", (found[0],), (found[1],), 32)
                table[new] = table.get(new, 0) + k
                break
        return list(table.items())

    def _signed_divisor(self, high: Node, shift: int) -> tuple[Node, int] | None:
        product = next((a for a in (high, *high.args) if a.op == "mulhis" and self.is_const(a.args[1])), None)
        if product is None:
            return None
        x, magic = product.args[0], product.args[1].const
        if high is not product:
            magic += 1 << 32
            inner = x.args[0] if x.op == "sext" else x
            if self.add(high, product, 32, -1) not in (inner, x):
                return None
        if magic <= 0:
            return None
        n = -(-(1 << (32 + shift)) // magic)
        lowest = min(span.lo for span in self.evaluate(x))
        if n < 2 or (magic * n - (1 << (32 + shift))) >= 1 << (shift + 1) or -(1 << 20) < lowest < 0:
            return None
        return x, n

    def _fold(self, const: int, terms: list[tuple[Node, int]], width: int) -> tuple[int, list[tuple[Node, int]]]:
        """Rewrite `a*x - a*n*(x div n)` to `a*(x rem n)` and `a*x - a*(x & m)` to `a*(x & ~m)`."""
        table = dict(terms)
        for atom, k in terms:
            if atom.op not in ("div", "and") or table.get(atom) != k:
                continue
            amount = int(atom.data[0])
            have, odd = divmod(-k, amount) if atom.op == "div" else (-k, 0)
            inner = atom.args[0]
            if inner.op in ("zext", "sext") and int(inner.data[0]) >= width:
                inner = inner.args[0]
            base, parts = self.parts(inner)
            if atom.op == "and" and len(parts) > 1:
                parts = self._without_sign_fix(parts)
            if odd or not parts or any(table.get(part) != have * factor for part, factor in parts):
                continue
            del table[atom]
            for part, _ in parts:
                del table[part]
            const -= have * base
            new = self._complement(atom, self._lin(base, parts), amount, have, width)
            table[new] = table.get(new, 0) + have
        return to_signed(const, width), [(a, k) for a, k in table.items() if k]

    def _without_sign_fix(self, parts: Terms) -> Terms:
        """The terms of x in `x + (sign of x)`, the rounding of a signed `x mod 2**k`; as they are if there is none."""
        for fix, k in parts:
            source = fix.args[0] if fix.op == "shr" and k == 1 and int(fix.data[0]) > 16 else None
            if source is None:
                continue
            if source.op == "shrs" and source.data[0] == 31:
                source = source.args[0]
            rest = tuple(part for part in parts if part[0] is not fix)
            lowest = min(span.lo for span in self.evaluate(source))
            if self.parts(source)[1] == rest and (lowest >= 0 or lowest < -(1 << 20)):
                return rest
        return parts

    def _complement(self, atom: Node, inner: Node, amount: int, have: int, width: int) -> Node:
        if atom.op == "div":
            return self.remainder(atom.args[0], amount, atom.width)
        mask = ~amount & ((1 << atom.width) - 1)
        lost = width - ((have & -have).bit_length() - 1)  # bits that the coefficient shifts out
        return self.and_const(inner, mask & ((1 << max(0, lost)) - 1), atom.width)

    def parts(self, node: Node) -> tuple[int, Terms]:
        return (node.const, node.terms) if node.op == "lin" else (0, ((node, 1),))

    def is_const(self, node: Node) -> bool:
        return node.op == "lin" and not node.terms

    def add(self, a: Node, b: Node, width: int, factor: int = 1) -> Node:
        """`a + factor * b`."""
        ca, ta = self.parts(a)
        cb, tb = self.parts(b)
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

    # --- ranges ----------------------------------------------------------------------------------

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
        for span in self.evaluate(node):
            if span.lo < -half or span.hi >= half:
                return False
        return True

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
            else:
                scaled[atom] = factor << k
        return self.linear(const << k, scaled, width)

    def shr(self, a: Node, k: int, width: int, signed: bool) -> Node:
        if k == 0:
            return a
        if self.is_const(a):
            value = a.const if signed else a.const & ((1 << width) - 1)
            return self.const(to_signed(value >> k, width))
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
        if a.op == "lin" and not a.const and len(a.terms) == 1 and (found := self._magic(*a.terms[0], k)) is not None:
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

    def low_part(self, a: Node, at: int, count: int, width: int) -> Node:
        """Bits `[at, at + count)` of `a`, which has `width` bits."""
        if at + count == width and at:
            return self.shr(a, at, width, False)
        moved = self.shr(a, at, width, False) if at else a
        return self.trunc(moved, count) if count in (16, 32) and at == 0 else self.and_const(moved, (1 << count) - 1, width)

    def _magic(self, x: Node, factor: int, k: int) -> Node | None:
        """`(factor * x) >> k` where that is `x div n` for every value of x (Granlund and Montgomery, 1994)."""
        if factor < 3 or factor & (factor - 1) == 0:
            return None
        n = -(-(1 << k) // factor)
        most = max(span.hi for span in self.evaluate(x))
        if n < 2 or (factor * n - (1 << k)) * most >= 1 << k or not self.fits(x, most.bit_length()):
            return None
        return self.divide(x, n, 64)

    def multiply_high(self, a: Node, b: Node, width: int, signed: bool) -> Node:
        """The upper half of a product."""
        if self.is_const(a):
            a, b = b, a
        if self.is_const(b) and (not signed or self.fits(a, width - 1) and b.const > 0):
            found = self._magic(a, b.const & ((1 << width) - 1), width)
            if found is not None:
                return found
            signed = False
        return self.atom("mulhis" if signed else "mulhi", (a, b), (), width)

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
