"""Coverage of the address analysis over folders of PTX, one folder per source, and its growth with kernel size.

    python bench/addresses.py FOLDER/SOURCE...      shares of operands resolved, MB/s
    python bench/addresses.py --growth              time over kernels of 2e3 to 2e5 instructions
    python bench/addresses.py --oracle FOLDER...    concrete addresses against predicted regions

"bounded": a symbol and a range that does not come from the symbol's size alone. mbarriers are counted apart.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
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


def coverage(folder: Path) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    lost: Counter[str] = Counter()
    size, spent, files = 0, 0.0, sorted(folder.rglob("*.ptx"))
    for path in files:
        text = path.read_text(errors="surrogateescape")
        started = time.process_time()
        for module in parse(text, str(path)).modules:
            for function in module.functions:
                if function.has_body:
                    lost += measure(module, function, counts)
        spent += time.process_time() - started
        size += len(text)
    cells: list[str] = []
    for kind in KINDS:
        total = sum(counts[kind, g] for g in ("bounded", "unbounded", "nothing"))
        share = [100 * counts[kind, g] / max(1, total) for g in ("bounded", "unbounded", "nothing")]
        cells.append(f"{kind} {total}: {share[0]:.1f}/{share[1]:.1f}/{share[2]:.1f} %")
    print(f"{folder.name:24} {len(files):4} files  " + "  ".join(cells) + f"  {size / 1e6 / max(spent, 1e-9):.2f} MB/s")
    for opcode, count in lost.most_common(5):
        print(f"{'':24} lost at {opcode}: {count}")


def synthetic(stages: int) -> str:
    """A kernel of `stages` unrolled ring steps of 10 instructions each."""
    head = (
        ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 smem[];\n"
        ".entry k(.param .u64 p)\n.reqntid 128\n{\n.reg .b32 %r<9>;\n.reg .pred %p<9>;\n"
        "mov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 4;\nmov.u32 %r3, smem;\nmov.u32 %r4, 0;\n"
    )
    step = (
        "add.u32 %r5, %r4, 1;\nsetp.eq.u32 %p1, %r5, 4;\nselp.b32 %r4, 0, %r5, %p1;\nshl.b32 %r6, %r4, 11;\n"
        "add.u32 %r7, %r3, %r6;\nadd.u32 %r7, %r7, %r2;\nst.shared.u32 [%r7], %r1;\n@%p1 bra L{0};\n"
        "xor.b32 %r8, %r2, 64;\nL{0}:\nld.shared.u32 %r8, [%r7+8];\n"
    )
    return head + "".join(step.format(i) for i in range(stages)) + "ret;\n}\n"


def growth() -> None:
    before: float | None = None
    for stages in (200, 2_000, 20_000):
        file = parse(synthetic(stages))
        module = file.modules[0]
        function = module.functions[0]
        started = time.process_time()
        counts: Counter[tuple[str, str]] = Counter()
        measure(module, function, counts)
        spent = time.process_time() - started
        ratio = f", {spent / before:.1f} times" if before else ""
        print(f"{len(function.instructions):7} instructions {spent:7.2f} s{ratio}; {dict(counts)}")
        before = spent


def oracle(folder: Path, runs: int) -> None:
    from tests.oracle_addresses.check import run_kernel

    samples = precise = operands = 0
    misses: list[str] = []
    for path in sorted(folder.rglob("*.ptx")):
        for module in parse(path.read_text(errors="surrogateescape"), str(path)).modules:
            for function in module.functions:
                if not function.has_body or function.kind.value != "entry":
                    continue
                outcome = run_kernel(module, function, runs, 1)
                samples += outcome.samples
                misses += outcome.misses
                operands += len(outcome.spans)
                precise += sum(predicted <= 2 * touched for predicted, touched in outcome.spans.values())
    share = 100 * precise / max(1, operands)
    print(f"{folder.name:24} {samples} samples, {len(misses)} misses, {share:.1f} % of {operands} operands within 2 x")
    for miss in misses[:5]:
        print(f"{'':24} {miss}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folders", nargs="*", type=Path)
    options.add_argument("--growth", action="store_true")
    options.add_argument("--oracle", action="store_true")
    options.add_argument("--runs", type=int, default=24)
    chosen = options.parse_args()
    if chosen.growth:
        growth()
    for folder in chosen.folders:
        oracle(folder, chosen.runs) if chosen.oracle else coverage(folder)


if __name__ == "__main__":
    main()
