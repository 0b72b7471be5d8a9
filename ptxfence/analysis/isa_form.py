"""One opcode text taken apart for the table's rows: its qualifiers, and where its operands are.

Qualifiers are a set, because producers and ptxas agree on no order (`.relaxed.cluster` or `.cluster.relaxed`,
`.tile` before or after the spaces, `.x4.m8n8` or `.m8n8.x4`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptxfence.analysis.effects import (
    Access,
    Bytes,
    Completion,
    Effect,
    Fence,
    Flow,
    Group,
    Knowledge,
    Mode,
    Order,
    Proxy,
    Role,
    Scope,
    Space,
    Sync,
)
from ptxfence.analysis.isa_operations import type_width
from ptxfence.grammar.model import Address, Operand, Vector

SPACES = {
    "shared": Space.CTA,  # without sub-qualifier: ::cta (PTX ISA, ld)
    "shared::cta": Space.CTA,
    "shared::cluster": Space.CLUSTER,
    "global": Space.GLOBAL,
    "local": Space.LOCAL,
    "param": Space.PARAM,
    "param::entry": Space.PARAM,
    "param::func": Space.PARAM,
    "const": Space.CONST,
}
SCOPES = {"cta": Scope.CTA, "cluster": Scope.CLUSTER, "gpu": Scope.GPU, "gl": Scope.GPU, "sys": Scope.SYS}
ORDERS = {
    "relaxed": Order.RELAXED,
    "acquire": Order.ACQUIRE,
    "release": Order.RELEASE,
    "acq_rel": Order.ACQ_REL,
    "sc": Order.SC,
}
VECTORS = {"v2": 2, "v4": 4, "v8": 8}


class Form:
    """An opcode without the row's name, and the kinds of its operands (None: operands not looked at)."""

    __slots__ = ("family", "kinds", "opcode", "qualifiers", "words")

    def __init__(
        self, opcode: str, family: str, words: tuple[str, ...], kinds: tuple[type[Operand], ...] | None = None
    ) -> None:
        self.opcode = opcode
        self.family = family
        self.words = words
        self.kinds = kinds
        self.qualifiers = frozenset(words)

    def has(self, *words: str) -> bool:
        """Whether any of the qualifiers is there."""
        return not self.qualifiers.isdisjoint(words)

    def spaces(self) -> tuple[Space, ...]:
        """State spaces in the order of the text, which is destination, source."""
        return tuple([SPACES[word] for word in self.words if word in SPACES])

    def space(self) -> Space:
        """The only state space, ANY where addressing is generic."""
        return next(iter(self.spaces()), Space.ANY)

    def scope(self, default: Scope) -> Scope:
        return next((SCOPES[word] for word in self.words if word in SCOPES), default)

    def order(self, default: Order) -> Order:
        return next((ORDERS[word] for word in self.words if word in ORDERS), default)

    def size(self) -> Bytes:
        """Bytes of the type times the vector."""
        bits = next((width for word in self.words if (width := type_width(word))), 0)
        vector = next((VECTORS[word] for word in self.words if word in VECTORS), 1)
        return Bytes(bits * vector // 8)

    def count(self) -> int:
        """Number of operands, 0 where they were not looked at."""
        return len(self.kinds or ())

    def address(self, nth: int, default: int) -> int:
        """Position of the nth `[...]` operand, counted from 0."""
        found = [i for i, kind in enumerate(self.kinds or ()) if kind is Address]
        return found[nth] if nth < len(found) else default

    def is_address(self, position: int) -> bool:
        return self.kinds is not None and position < len(self.kinds) and self.kinds[position] is Address

    def is_vector(self, position: int) -> bool:
        return self.kinds is not None and position < len(self.kinds) and self.kinds[position] is Vector

    def optional(self, position: int) -> int | None:
        """`position` where the instruction has that many operands."""
        return position if position < self.count() else None

    def effect(
        self,
        *accesses: Access,
        fence: Fence | None = None,
        sync: Sync | None = None,
        group: Group | None = None,
        flow: Flow = Flow.NEXT,
        elects: bool = False,
    ) -> Effect:
        """The effect of this form; irrelevant where nothing is given."""
        silent = not (accesses or fence or sync or group or flow is not Flow.NEXT)
        return Effect(
            opcode=self.opcode,
            family=self.family,
            knowledge=Knowledge.IRRELEVANT if silent else Knowledge.KNOWN,
            accesses=accesses,
            fences=(fence,) if fence else (),
            sync=sync,
            group=group,
            flow=flow,
            collective=bool(accesses) and "aligned" in self.qualifiers,
            elects=elects,
            qualifiers=self.qualifiers,
        )


def mbarrier(operand: int, space: Space, multicast: bool = False) -> Access:
    """The access to the mbarrier object itself, always through the generic proxy (PTX ISA 9.1 and later)."""
    return Access(
        operand,
        Proxy.GENERIC,
        Mode.BOTH,
        space,
        Bytes(8),
        role=Role.MBARRIER,
        completion=Completion.SYNC,
        multicast=multicast,
        atomic=True,
    )


Build = Callable[[Form], Effect | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table.

    `name`: the leading components of the opcode. `words`: the qualifiers it takes; one that is not there makes
    the opcode unknown, since a later PTX version may have given it another meaning. `build` gives the effect,
    None for combinations that do not exist.
    """

    name: str
    words: frozenset[str]
    build: Build


def words(*groups: str) -> frozenset[str]:
    """Qualifiers from text separated by blanks."""
    return frozenset(word for group in groups for word in group.split())
