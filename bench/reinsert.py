"""Takes every async proxy fence out of right kernels and lets `fix --policy cheapest` put back what is needed.

    python bench/reinsert.py PATH ...

Prints, per file, fences and estimated cycles (form times loop depth, see ptxfence/rewrite/placement.py) of the author
and of ptxfence. Exit status 1 if any kernel got more fences or dearer ones than its author needed, is not proven, or
has a pair uncovered by the recheck that the author's text has not.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.check import analyse
from ptxfence.analysis.effects import FenceKind
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.report import Severity, Verdict
from ptxfence.grammar import Function, PtxFile, parse
from ptxfence.rewrite.edits import apply, remove_statement
from ptxfence.rewrite.forms import cycles_of
from ptxfence.rewrite.patch import fix
from ptxfence.rewrite.placement import LOOP_FACTOR
from ptxfence.rewrite.recheck import recheck
from ptxfence.rewrite.roots import roots, routine


@dataclass(frozen=True)
class Count:
    """Fences of a file and their estimated cycles."""

    fences: int
    cycles: int


def is_fence(opcode: str) -> bool:
    return any(fence.kind is FenceKind.ASYNC for fence in lookup(opcode).fences)


def fences_of(function: Function) -> Iterator[int]:
    return (instruction.index for instruction in function.instructions if is_fence(instruction.opcode))


def count(file: PtxFile) -> Count:
    number = cycles = 0
    for _, function in roots(file):
        cfg = Cfg(function)
        for index in fences_of(function):
            number += 1
            cycles += cycles_of(function.instructions[index].opcode) * LOOP_FACTOR ** cfg.depth(index)
    return Count(number, cycles)


def strip(file: PtxFile) -> str | None:
    """The text without its fences; None where one shares its lines with others."""
    edits = [remove_statement(file, function, i) for _, function in roots(file) for i in fences_of(function)]
    return None if None in edits else apply(file.text, [edit for edit in edits if edit is not None])


def uncovered(file: PtxFile) -> set[tuple[str, int, int]]:
    """Pairs that the recheck finds, by positions among the instructions that are no fences."""
    found: set[tuple[str, int, int]] = set()
    for module, function in roots(file):
        body = routine(module, function)
        fences = sorted(i for i, code in enumerate(body.instructions) if is_fence(code.opcode))
        for pair in recheck(module, body):
            access, operation = (i - bisect_left(fences, i) for i in (pair.access, pair.operation))
            found.add((function.name, access, operation))
    return found


def reinsert(path: Path) -> tuple[str, bool]:
    """A line of the table and whether the file is as it should be."""
    file = parse(path.read_text(), path.name)
    name = "/".join(path.parts[-2:])
    author = count(file)
    before = analyse(file)
    if author.fences == 0 or before.verdict is not Verdict.PROVEN:
        return f"{name}: not used ({author.fences} fences, {before.verdict.value})", True
    text = strip(file)
    if text is None:
        return f"{name}: not used (a fence shares its line)", True
    bare = parse(text, path.name)
    patch = fix(bare, analyse(bare), level=Severity.WARNING, policy="cheapest")
    again = parse(patch.text, path.name)
    ours = count(again)
    good = ours.fences <= author.fences and ours.cycles <= author.cycles and patch.after.verdict is Verdict.PROVEN
    new = uncovered(again) - uncovered(file)
    numbers = f"{author.fences} -> {ours.fences} fences, {author.cycles} -> {ours.cycles} cycles"
    verdict = f"{patch.after.verdict.value}, recheck {'agrees' if not new else f'finds {len(new)} pairs'}"
    return f"{name}: {numbers}, {verdict}{'' if good and not new else '  <-- NOT GOOD'}", good and not new


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    good = True
    for root in parser.parse_args().paths:
        for path in sorted(root.rglob("*.ptx")) if root.is_dir() else [root]:
            line, fine = reinsert(path)
            print(line, flush=True)
            good &= fine
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
