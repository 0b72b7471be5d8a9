"""Runs kernels in the interpreter and holds every concrete shared-memory address against its predicted region."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import prod

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import Access, Copy, Matrix, Space
from ptxfence.analysis.isa import effect, lookup
from ptxfence.analysis.region import BaseKind, Region
from ptxfence.analysis.values import Values
from ptxfence.grammar import Function, Module

from .interpreter import Launch, Program, Shape, Thread
from .translate import PEER, WINDOW

SHARED = (Space.CTA, Space.CLUSTER)
MOST_WARPS = 12  # of one launch; the next one takes other warps
LANES = (0, 31, 1, 2, 4, 8, 16, 30, 29, 27, 23, 15)

Key = tuple[int, int]  # instruction, operand


@dataclass
class Outcome:
    """`misses` name operands whose address left its region; `spans` are (predicted, touched) bytes per operand."""

    samples: int = 0
    misses: list[str] = field(default_factory=list[str])
    spans: dict[Key, tuple[int, int]] = field(default_factory=dict[Key, tuple[int, int]])
    unreached: int = 0  # bounded operands that no run came to


def watched_operands(function: Function, values: Values) -> dict[Key, tuple[Access, Region]]:
    """Every operand of the function that the analysis bounds to bytes of a shared symbol."""
    found: dict[Key, tuple[Access, Region]] = {}
    for instruction in function.instructions:
        if not lookup(instruction.opcode).relevant:
            continue
        for access in effect(instruction.opcode, instruction.operands).accesses:
            region = values.region(instruction.index, access)
            known = region.base is not None and region.base.kind is BaseKind.SYMBOL and region.lo is not None
            if known and region.space in SHARED:
                found[instruction.index, access.operand] = (access, region)
    return found


def run_kernel(module: Module, function: Function, runs: int, seed: int, steps: int = 20_000) -> Outcome:
    """`runs` launches with random warps, CTA, parameters and symbol addresses; `steps` statements a thread.

    Half of the launches are changed from one that touched bytes which none before did: guided as a fuzzer is.
    """
    values = Values(function, Cfg(function), module)
    operands = watched_operands(function, values)
    keys = list(operands)
    program = Program(function, keys)
    outcome = Outcome()
    touched: list[set[int]] = [set() for _ in keys]
    fruitful: list[Launch] = []
    source = random.Random(seed)
    for number in range(runs):
        symbols = place_symbols(module, source)
        shape = launch_shape(function, source)
        launch = Launch(seed * 1000 + number, shape, symbols, cluster_size(function), program.constants)
        if fruitful and number % 2:
            launch = source.choice(fruitful[-8:]).changed(symbols, source)
        fresh_places = 0
        for tid in chosen_threads(launch.shape, number, source):
            reports: list[list[int]] = [[] for _ in keys]
            Thread(program, launch, tid, reports).run(steps)
            for key, found, seen in zip(keys, reports, touched, strict=True):
                if not found:
                    continue
                outcome.samples += len(found)
                fresh = offsets(operands[key], set(found), symbols) - seen
                fresh_places += bool(fresh) and (not seen or max(fresh) > max(seen) or min(fresh) < min(seen))
                seen |= fresh
                outcome.misses += [missed(function, key, tid, x) for x in fresh if not held(operands[key], x)]
        if fresh_places:
            fruitful.append(launch)
    for key, seen in zip(keys, touched, strict=True):
        region = operands[key][1]
        if not seen:
            outcome.unreached += region.bounded
        elif region.bounded and region.lo is not None and region.hi is not None:
            outcome.spans[key] = (region.hi - region.lo, max(seen) - min(seen) + (region.width or 1))
    return outcome


def launch_shape(function: Function, source: random.Random) -> Shape:
    """Threads of a CTA: what the kernel requires, or a launch that it allows."""
    x, y, z = (*function.directives.get("reqntid", ()), 1, 1, 1)[:3]
    if "reqntid" in function.directives:
        return x, y, z
    x, y, z = (*function.directives.get("maxntid", (1024,)), 1, 1)[:3]
    return (x * y * z, 1, 1) if source.random() < 0.8 else (max(1, x * y * z // 2), 1, 1)


def cluster_size(function: Function) -> int:
    return max(1, prod(function.directives.get("reqnctapercluster", (2,))))


def chosen_threads(shape: Shape, number: int, source: random.Random) -> list[Shape]:
    """Some lanes of some warps, lane 0 first, in an order that covers all warps over the launches."""
    threads = shape[0] * shape[1] * shape[2]
    warps = -(-threads // 32)
    picked = sorted({(number * MOST_WARPS + k) % warps for k in range(min(warps, MOST_WARPS))})
    found: list[Shape] = []
    for warp in picked:
        for lane in (0, 31, source.choice(LANES), source.randrange(32)):
            linear = min(warp * 32 + lane, threads - 1)
            rest, x = divmod(linear, shape[0])
            found.append((x, rest % shape[1], rest // shape[1]))
    return found


def offsets(operand: tuple[Access, Region], addresses: set[int], symbols: dict[str, int]) -> set[int]:
    access, region = operand
    assert region.base is not None
    base = symbols[region.base.name]
    return {concrete_offset(access, address, base) for address in addresses}


def held(operand: tuple[Access, Region], offset: int) -> bool:
    """Whether the prediction holds an offset; a descriptor's region begins at the row that its start lies in."""
    access, region = operand
    below = region.lo is not None and offset < region.lo
    return inside(offset, region) and (not below or isinstance(access.footprint, Matrix | Copy))


def missed(function: Function, key: Key, tid: Shape, offset: int) -> str:
    return f"{function.name} {key[0]} operand {key[1]} tid {tid}: {offset} {function.instructions[key[0]].text[:80]}"


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
