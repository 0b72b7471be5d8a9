"""Coverage and soundness of the address analysis over folders of PTX, one folder per source, as tables of Markdown.

    python bench/addresses.py FOLDER/SOURCE...             shares of operands resolved
    python bench/addresses.py --oracle FOLDER/SOURCE...    concrete addresses against predicted regions

"bounded": a symbol and a range that does not come from the symbol's size alone. mbarriers are counted apart. The oracle
runs every kernel with numbers (tests/oracle_addresses). Its exit status is 1 if an address leaves its region, if there
are fewer than a million samples, or if for a source fewer than 90 % of the operands that were reached have a predicted
range of at most twice the bytes touched. How check grows with a kernel is measured by bench/growth.py.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import Access, Copy, Matrix, Role, Space
from ptxfence.analysis.isa import effect, lookup
from ptxfence.analysis.region import BaseKind, Region
from ptxfence.analysis.values import Values
from ptxfence.grammar import Function, Module, parse

SHARED = (Space.CTA, Space.CLUSTER)
KINDS = ("data", "descriptors", "mbarriers")
PRECISE, SAMPLES = 0.9, 1_000_000


def kind_of(access: Access) -> str:
    if access.role is Role.MBARRIER:
        return "mbarriers"
    return "descriptors" if isinstance(access.footprint, Matrix | Copy) else "data"


def grade(region: Region) -> str:
    if region.base is None or region.base.kind is BaseKind.OPAQUE:
        return "nothing"
    return "bounded" if region.bounded and region.bounded_by != "symbol" else "unbounded"


def measure(module: Module, function: Function, counts: Counter[tuple[str, str]]) -> Counter[str]:
    """Adds to `counts`; returns the opcodes at which unresolved operands were lost."""
    values = Values(function, Cfg(function), module)
    lost: Counter[str] = Counter()
    for instruction in function.instructions:
        if not lookup(instruction.opcode).relevant:
            continue
        for access in effect(instruction.opcode, instruction.operands).accesses:
            if access.space not in (*SHARED, Space.ANY):
                continue
            region = values.region(instruction.index, access)
            if region.space not in SHARED:
                continue
            counts[kind_of(access), grade(region)] += 1
            if (reason := values.unresolved(instruction.index, access)) is not None:
                lost[function.instructions[reason[0]].opcode] += 1
    return lost


def functions(folder: Path) -> Iterator[tuple[Path, Module, Function]]:
    for path in sorted(folder.rglob("*.ptx")):
        for module in parse(path.read_text(errors="surrogateescape"), str(path)).modules:
            for function in module.functions:
                if function.has_body:
                    yield path, module, function


def coverage(folders: list[Path]) -> int:
    print("| source | files | data operands | bounded | descriptors | bounded | mbarriers | bounded | lost at |")
    print("|---|---|---|---|---|---|---|---|---|")
    for folder in folders:
        counts: Counter[tuple[str, str]] = Counter()
        lost: Counter[str] = Counter()
        files: set[Path] = set()
        for path, module, function in functions(folder):
            files.add(path)
            lost += measure(module, function, counts)
        cells = [folder.name, str(len(files))]
        for kind in KINDS:
            total = sum(counts[kind, g] for g in ("bounded", "unbounded", "nothing"))
            share = f"{100 * counts[kind, 'bounded'] / total:.1f} %" if total else "-"
            cells += [str(total), share]
        cells.append(", ".join(f"`{opcode}` {count}" for opcode, count in lost.most_common(3)) or "-")
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


@dataclass
class Tally:
    """What the concrete runs of some kernels came to."""

    kernels: int = 0
    samples: int = 0
    misses: int = 0
    operands: int = 0
    precise: int = 0
    unreached: int = 0

    def row(self, name: str) -> str:
        share = f"{100 * self.precise / self.operands:.1f} %" if self.operands else "-"
        cells = (name, self.kernels, self.samples, self.misses, self.operands, share, self.unreached)
        return f"| {' | '.join(str(cell) for cell in cells)} |"


def oracle(folders: list[Path], runs: int) -> int:
    from tests.oracle_addresses.check import run_kernel

    print("| source | kernels | samples | misses | operands reached | within 2 x | not reached |")
    print("|---|---|---|---|---|---|---|")
    whole, misses, fine = Tally(), list[str](), True
    for folder in folders:
        tally = Tally()
        for _, module, function in functions(folder):
            if function.kind.value != "entry":
                continue
            outcome = run_kernel(module, function, runs, 1)
            precise = sum(predicted <= 2 * touched for predicted, touched in outcome.spans.values())
            for one in (tally, whole):
                one.kernels += 1
                one.samples += outcome.samples
                one.misses += len(outcome.misses)
                one.operands += len(outcome.spans)
                one.precise += precise
                one.unreached += outcome.unreached
            misses += outcome.misses
        fine = fine and tally.precise >= PRECISE * tally.operands
        print(tally.row(folder.name), flush=True)
    print(whole.row("all"))
    print("".join(f"\n{miss}" for miss in misses[:20]), end="")
    return int(bool(misses) or not fine or whole.samples < SAMPLES)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folders", nargs="+", type=Path)
    options.add_argument("--oracle", action="store_true")
    options.add_argument("--runs", type=int, default=40)
    chosen = options.parse_args()
    return oracle(chosen.folders, chosen.runs) if chosen.oracle else coverage(chosen.folders)


if __name__ == "__main__":
    raise SystemExit(main())
