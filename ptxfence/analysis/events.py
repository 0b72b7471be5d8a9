"""The few instructions that matter to the flow: accesses, fences, synchronisation, completion.

An `Event` is one instruction with its effect resolved: which bytes, which mbarrier, which barrier id, under
which guard. A `Touch` is one data access of an event; touches that can meet in a hazard get the bits of the
flow's bit sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.conditions import ThreadSet
from ptxfence.analysis.effects import Access, Effect, Knowledge, Mode, Order, Proxy, Role, Space, SyncKind
from ptxfence.analysis.inline import Routine
from ptxfence.analysis.isa import effect, lookup
from ptxfence.analysis.overlaps import Overlap, overlap
from ptxfence.analysis.region import Region
from ptxfence.analysis.values import Values
from ptxfence.grammar.parse import Module

SHARED = (Space.CTA, Space.CLUSTER, Space.ANY)


@dataclass(frozen=True, slots=True)
class Touch:
    """One data access: `region` over all threads of `threads` and all iterations."""

    number: int
    index: int
    access: Access
    region: Region
    threads: ThreadSet

    @property
    def is_async(self) -> bool:
        return self.access.proxy is Proxy.ASYNC


class FlagUse(Enum):
    """What a strong access to global memory can do for synchronisation (PTX ISA 8.8: release and acquire patterns)."""

    NONE = 0
    RELEASE = 1
    ACQUIRE = 2
    BOTH = 3


@dataclass(frozen=True, slots=True)
class Event:
    """One relevant instruction.

    `ids` is the range of barrier ids (inclusive), `barrier` the mbarrier's bytes, `bytes` what it is told to expect.
    `flag` is what a strong access to global memory touches: a release or acquire, or a relaxed half beside a fence.
    """

    index: int
    effect: Effect
    guard: ThreadSet
    touches: tuple[Touch, ...] = ()
    barrier: Region | None = None
    ids: tuple[int, int] | None = None
    count: int | None = None
    pending: int | None = None
    bytes: int | None = None
    flag: Region | None = None
    flags: FlagUse = FlagUse.NONE


class Events:
    """All events of one function body in order, and its touches."""

    def __init__(self, module: Module, function: Routine, cfg: Cfg, values: Values) -> None:
        self.module = module
        self.function = function
        self.cfg = cfg
        self.values = values
        self.touches: list[Touch] = []
        self.unknown: list[int] = []
        effects = [lookup(opcode) for opcode in cfg.opcodes]
        self._relevant = frozenset(what.opcode for what in effects if what.relevant)
        syncs = (what.sync for what in effects)
        self._reuses_barriers = any(s is not None and s.kind is SyncKind.MBARRIER_INVAL for s in syncs)
        self._with_globals = any(_bulk_reads(what) for what in effects)
        self.by_block: dict[int, list[Event]] = {block: self._block_events(block) for block in cfg.order}

    @cached_property
    def live_barriers(self) -> tuple[Region, ...]:
        """Bytes of the mbarriers that stay mbarriers: those of an invalidated one are ordinary data again."""
        regions: dict[Region, None] = {}
        ended: list[Region] = []
        for event in (e for block in self.by_block.values() for e in block):
            if event.barrier is None or not event.barrier.bounded or event.effect.sync is None:
                continue
            if event.effect.sync.kind is SyncKind.MBARRIER_INVAL:
                ended.append(event.barrier)
            regions.setdefault(event.barrier)
        return tuple(r for r in regions if all(overlap(r, gone) is Overlap.NO for gone in ended))

    @cached_property
    def ordered(self) -> tuple[Event, ...]:
        """All events by instruction index."""
        return tuple(sorted((e for block in self.by_block.values() for e in block), key=lambda e: e.index))

    @cached_property
    def barriers(self) -> frozenset[int]:
        """Barriers of threads: named ones, those of the CTA and those of the cluster."""
        return self._synchronising(SyncKind.BAR, SyncKind.CLUSTER_WAIT)

    @cached_property
    def joins(self) -> frozenset[int]:
        """Everything through which a thread may learn of another: barriers and waits."""
        return self.barriers | self._synchronising(SyncKind.WARP, SyncKind.MBARRIER_WAIT)

    def _synchronising(self, *kinds: SyncKind) -> frozenset[int]:
        return frozenset(e.index for e in self.ordered if e.effect.sync is not None and e.effect.sync.kind in kinds)

    @cached_property
    def relaxed_cluster(self) -> bool:
        """Whether some arrival at the cluster barrier is relaxed, so that the barrier alone orders nothing."""
        every = (e.effect.sync for e in self.ordered)
        return any(s is not None and s.kind is SyncKind.CLUSTER_ARRIVE and s.order is Order.RELAXED for s in every)

    @cached_property
    def common_barriers(self) -> dict[bool, list[int]]:
        """Barriers in which every thread of the CTA takes part; under True, those of the whole cluster only."""
        found: dict[bool, list[int]] = {False: [], True: []}
        for event in (e for block in self.by_block.values() for e in block):
            sync = event.effect.sync
            if sync is None or any(atom.varies for atom in self.values.threads(event.index)):
                continue
            if sync.kind is SyncKind.CLUSTER_WAIT and sync.order is not Order.RELAXED:
                found[True].append(event.index)
                found[False].append(event.index)
            elif sync.kind is SyncKind.BAR:
                found[False].append(event.index)
        return found

    def at(self, index: int) -> Event:
        """The event of instruction `index`, which must have one."""
        return next(e for e in self.by_block[self.cfg.block_of(index)] if e.index == index)

    def _block_events(self, block: int) -> list[Event]:
        bounds, relevant = self.cfg.blocks[block], self._relevant
        indices = [i.index for i in self.cfg.instructions[bounds.start : bounds.end] if i.opcode in relevant]
        return [event for index in indices if (event := self._event(index)) is not None]

    def _event(self, index: int) -> Event | None:
        instruction = self.cfg.instructions[index]
        what = effect(instruction.opcode, instruction.operands)
        if what.knowledge is Knowledge.UNKNOWN:
            self.unknown.append(index)
        touches = self._touches(index, what)
        strong = self._strong(what)
        if not (touches or what.fences or what.sync or what.group or strong):
            return None
        guard: ThreadSet = self.values.guard(index) if instruction.guard else frozenset()
        sync, group = what.sync, what.group
        return Event(
            index=index,
            effect=what,
            guard=guard,
            touches=touches,
            barrier=self.values.mbarrier_region(index, sync.address) if sync and sync.address is not None else None,
            ids=self._ids(index, sync.barrier) if sync else None,
            count=self._constant(index, sync.count) if sync else None,
            bytes=self._constant(index, sync.tx) if sync else None,
            pending=self._constant(index, group.pending) if group else None,
            flag=self.values.region(index, strong) if strong else None,
            flags=_flag_use(strong) if strong else FlagUse.NONE,
        )

    def _strong(self, what: Effect) -> Access | None:
        """The strong access to global memory of an instruction, where global data is looked at."""
        if not self._with_globals:
            return None
        found = (a for a in what.accesses if a.space in (Space.GLOBAL, Space.ANY) and (a.order or a.volatile))
        return next((a for a in found if a.proxy is Proxy.GENERIC), None)

    def _touches(self, index: int, what: Effect) -> tuple[Touch, ...]:
        found: list[Touch] = []
        for access in what.accesses:
            if access.space not in (*SHARED, Space.GLOBAL):
                continue
            if access.role is Role.MBARRIER and not (self._reuses_barriers and _begins_or_ends(what)):
                continue
            touch = self._touch(index, access)
            if touch is not None:
                found.append(touch)
        return tuple(found)

    def _touch(self, index: int, access: Access) -> Touch | None:
        generic_data = access.proxy is Proxy.GENERIC and access.role is not Role.TENSOR_MAP
        if generic_data and access.space is Space.GLOBAL and not self._with_globals:
            return None
        region = self.values.region(index, access)
        if generic_data and region.space not in SHARED and not (region.space is Space.GLOBAL and self._with_globals):
            return None
        touch = Touch(len(self.touches), index, access, region, self.values.threads(index))
        self.touches.append(touch)
        return touch

    def _constant(self, index: int, operand: int | None) -> int | None:
        return None if operand is None else self.values.constant(index, operand)

    def _ids(self, index: int, operand: int | None) -> tuple[int, int] | None:
        if operand is None:
            return None
        return self.values.range(index, operand)


def _flag_use(access: Access) -> FlagUse:
    releases = access.mode & Mode.WRITE and access.order is not Order.ACQUIRE
    acquires = access.mode & Mode.READ and access.order is not Order.RELEASE
    return FlagUse((1 if releases else 0) + (2 if acquires else 0))


def _begins_or_ends(what: Effect) -> bool:
    """mbarrier.init and mbarrier.inval write storage that is ordinary data once the barrier is gone."""
    return what.sync is not None and what.sync.kind in (SyncKind.MBARRIER_INIT, SyncKind.MBARRIER_INVAL)


def _bulk_reads(what: Effect) -> bool:
    """Whether an instruction reads global memory through the async proxy at an address that the text gives."""
    return any(a.proxy is Proxy.ASYNC and a.space is Space.GLOBAL and a.mode & Mode.READ for a in what.accesses)


def in_order(events: Events) -> Sequence[Event]:
    """All events by instruction index."""
    return events.ordered
