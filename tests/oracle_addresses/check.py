"""Runs kernels in the interpreter and holds every concrete shared-memory address against its predicted region."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import Access, Copy, Matrix, Space
from ptxfence.analysis.isa import effect, lookup
from ptxfence.analysis.region import BaseKind, Region
from ptxfence.analysis.values import Values
from ptxfence.grammar import Function, Module

from .interpreter import PEER, WINDOW, Launch, Thread

SHARED = (Space.CTA, Space.CLUSTER)


@dataclass
class Outcome:
    """`misses` name operands whose address left its region; `spans` are (predicted, touched) bytes per operand."""

    samples: int = 0
    misses: list[str] = field(default_factory=list)
    spans: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)


def watched_operands(function: Function, values: Values) -> dict[tuple[int, int], tuple[Access, Region]]:
    """Every operand of the function that the analysis bounds to bytes of a shared symbol."""
    found: dict[tuple[int, int], tuple[Access, Region]] = {}
    for instruction in function.instructions:
        if not lookup(instruction.opcode).relevant:
            continue
        for access in effect(instruction.opcode, instruction.operands).accesses:
            region = values.region(instruction.index, access)
            known = region.base is not None and region.base.kind is BaseKind.SYMBOL and region.lo is not None
            if known and region.space in SHARED:
                found[instruction.index, access.operand] = (access, region)
    return found


def run_kernel(module: Module, function: Function, runs: int, seed: int, steps: int = 4000) -> Outcome:
    """`runs` launches with random thread, CTA, parameters and symbol addresses."""
    values = Values(function, Cfg(function), module)
    operands = watched_operands(function, values)
    watched: dict[int, list[int]] = {}
    for index, position in operands:
        watched.setdefault(index, []).append(position)
    outcome = Outcome()
    touched: dict[tuple[int, int], list[int]] = {}
    source = random.Random(seed)
    threads = (function.directives.get("reqntid") or function.directives.get("maxntid") or (128,))[0]
    for number in range(runs):
        symbols = place_symbols(module, source)
        shuffles: dict[tuple[int, int, int], int] = {}
        corners = (0, threads - 1, 31, 32, threads // 2, 1, 127, 128, 255, 256, 160, 64)
        tid = min(corners[number], threads - 1) if number < len(corners) else source.randrange(threads)
        ctaid = source.randrange(132)

        def trace(index: int, position: int, address: int, symbols: dict[str, int] = symbols, tid: int = tid) -> None:
            access, region = operands[index, position]
            outcome.samples += 1
            assert region.base is not None
            assert region.lo is not None
            offset = concrete_offset(access, address, symbols[region.base.name])
            seen = touched.setdefault((index, position), [offset, offset])
            seen[0], seen[1] = min(seen[0], offset), max(seen[1], offset)
            if (offset < region.lo and not isinstance(access.footprint, Matrix | Copy)) or not inside(offset, region):
                text = function.instructions[index].text[:80]
                outcome.misses.append(
                    f"{function.name} {index} tid {tid}: {offset} not in {region.lo}..{region.hi} {text}"
                )

        for lane in sorted({tid & ~31, tid & ~31 | 31, tid}):
            launch = Launch(seed * 1000 + number, lane, ctaid, threads, symbols, shuffles)
            Thread(function, launch, trace, watched).run(steps)
    for key, (lo, hi) in touched.items():
        _, region = operands[key]
        if region.bounded and region.lo is not None and region.hi is not None:
            width = region.width or 1
            outcome.spans[key] = (region.hi - region.lo, hi - lo + width)
    return outcome


def inside(offset: int, region: Region) -> bool:
    assert region.lo is not None
    if region.hi is not None and not region.lo <= offset < region.hi:
        return False
    return not region.step or (offset - region.lo) % region.step < max(region.span, region.width, 1)


def concrete_offset(access: Access, address: int, base: int) -> int:
    if isinstance(access.footprint, Matrix | Copy):
        return (address & 0x3FFF) * 16 - base
    address &= (1 << 64) - 1
    if address >= WINDOW // 2:
        address -= WINDOW
    return (address & 0xFFFFFFFF) % PEER - base if address & 0xFFFFFFFF >= PEER else signed32(address) - base


def signed32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def place_symbols(module: Module, source: random.Random) -> dict[str, int]:
    """Addresses of shared variables, one after the other, the dynamic ones last."""
    at = source.choice((0, 1024, 4096))
    symbols: dict[str, int] = {}
    for variable in module.variables.values():
        if variable.space == "shared" and variable.size is not None:
            at = -(-at // max(variable.align, 16)) * max(variable.align, 16)
            symbols[variable.name] = at
            at += variable.size
    at = -(-at // 1024) * 1024
    for variable in module.variables.values():
        if variable.space == "shared" and variable.size is None:
            symbols[variable.name] = at
    return symbols
