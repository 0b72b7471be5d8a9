"""Whether a loaded value is pinned before the hand-off (contract 2; measured on an H200).

ptxas sinks arithmetic, mma, shuffles and votes of a loaded value below `bar.sync` and `mbarrier.arrive`, which
wait for no load. It never moves a store, an atomic or reduction that depends on the value, nor the guard of one:
these pin the load. Everything is judged inside the reading thread, on every path to its next synchronisation.
"""

from __future__ import annotations

from collections import deque

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import Effect, GroupKind, Mode, SyncKind
from ptxfence.analysis.isa import effect, lookup
from ptxfence.analysis.isa_calls import stores_tensor_memory
from ptxfence.grammar.model import Address, Negated, Operand, Pair, Register, Vector

RELEASES = frozenset(
    (
        SyncKind.BAR,
        SyncKind.BAR_ARRIVE,
        SyncKind.WARP,
        SyncKind.CLUSTER_ARRIVE,
        SyncKind.MBARRIER_ARRIVE,
        SyncKind.CP_ASYNC_ARRIVE,
        SyncKind.TCGEN05_COMMIT,
    )
)


def pinned(cfg: Cfg, load: int, value: int | None, target: int) -> bool:
    """Whether every register that instruction `load` fills (operand `value`) is pinned before the next release.

    `target` is the async operation, which ends a path as a release does.
    """
    if value is None:
        return False
    registers = frozenset(names(cfg.instructions[load].operands[value]))
    return bool(registers) and all(_one_pinned(cfg, load, register, target) for register in registers)


def _one_pinned(cfg: Cfg, load: int, register: str, target: int) -> bool:
    start = (cfg.block_of(load), load + 1, frozenset((register,)))
    seen = {start}
    work = deque([start])
    while work:
        block, begin, taint = work.popleft()
        tainted = set(taint)
        end = cfg.blocks[block].end
        outcome = _scan(cfg, begin, end, tainted, target, load)
        if outcome is False:
            return False
        if outcome:
            continue
        if not cfg.succs[block]:
            continue
        for successor in cfg.succs[block]:
            state = (successor, cfg.blocks[successor].start, frozenset(tainted))
            if state not in seen:
                seen.add(state)
                work.append(state)
    return True


def _scan(cfg: Cfg, begin: int, end: int, tainted: set[str], target: int, load: int) -> bool | None:
    """True: pinned here; False: released unpinned; None: the block ends first."""
    for index in range(begin, end):
        instruction = cfg.instructions[index]
        quick = lookup(instruction.opcode)
        if index in (target, load) or (quick.sync is not None and quick.sync.kind in RELEASES):
            return False
        stored = stores_tensor_memory(instruction.opcode)
        if stored and any(name in tainted for operand in instruction.operands for name in names(operand)):
            return True
        if quick.relevant:
            what = effect(instruction.opcode, instruction.operands)
            if _pins(what, instruction.guard, instruction.operands, tainted):
                return True
            if what.group is not None and what.group.kind is not GroupKind.COMMIT:
                continue
        _propagate(instruction.operands, tainted)
    return None


def _pins(what: Effect, guard: str | None, operands: tuple[Operand, ...], tainted: set[str]) -> bool:
    for access in what.accesses:
        if not access.mode & Mode.WRITE or access.completion.value != "none":
            continue
        if guard in tainted:
            return True
        if any(name in tainted for operand in operands for name in names(operand)):
            return True
    return False


def _propagate(operands: tuple[Operand, ...], tainted: set[str]) -> None:
    if not operands:
        return
    used = any(name in tainted for operand in operands[1:] for name in names(operand))
    for name in names(operands[0]) if not isinstance(operands[0], Address) else ():
        if used:
            tainted.add(name)
        else:
            tainted.discard(name)


def names(operand: Operand) -> tuple[str, ...]:
    """Registers that an operand mentions."""
    if isinstance(operand, Register):
        return (operand.name,)
    if isinstance(operand, Vector):
        return tuple(name for item in operand.items for name in names(item))
    if isinstance(operand, Pair):
        return names(operand.first) + names(operand.second)
    if isinstance(operand, Negated):
        return names(operand.operand)
    if isinstance(operand, Address) and isinstance(operand.base, Register):
        return (operand.base.name,)
    return ()
