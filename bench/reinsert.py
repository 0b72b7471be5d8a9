"""Takes every async proxy fence out of right kernels and lets `fix --policy cheapest` put back what is needed.

    python bench/reinsert.py PATH ...

Prints, per file, fences and estimated cycles (form times loop depth, see ptxfence/rewrite/placement.py) of the author
and of ptxfence. Exit status 1 if any kernel got more fences or dearer ones than its author needed, or is not proven.
"""

from __future__ import annotations

import argparse
import sys
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
from ptxfence.rewrite.roots import roots


@dataclass(frozen=True)
class Count:
    """Fences of a file and their estimated cycles."""

    fences: int
    cycles: int


def fences_of(function: Function) -> Iterator[int]:
    for instruction in function.instructions:
        if any(fence.kind is FenceKind.ASYNC for fence in lookup(instruction.opcode).fences):
            yield instruction.index


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
    ours = count(parse(patch.text, path.name))
    good = ours.fences <= author.fences and ours.cycles <= author.cycles and patch.after.verdict is Verdict.PROVEN
    numbers = f"{author.fences} -> {ours.fences} fences, {author.cycles} -> {ours.cycles} cycles"
    return f"{name}: {numbers}, {patch.after.verdict.value}{'' if good else '  <-- NOT GOOD'}", good


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
