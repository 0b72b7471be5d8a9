"""Speed, memory and start-up of the front end, with the ratio to ptxas.

`python bench/parse.py FILE...` measures real files (1 MB and more are the ones that count);
`--scale` measures time per line and memory from 10 KB to 10 MB, `--hostile` runs the hostile texts at full size,
`--cold` times `ptxfence check` of a small file in a new process.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ptxfence.analysis.isa import lookup  # noqa: E402
from ptxfence.grammar import PtxFile, parse, validate  # noqa: E402

_RUNS = 5
_LINE = "\tmad.lo.s32 \t%r1, %r2, %r3, 17;\n\t@%p1 ld.shared.v2.b32 {%r4, %r5}, [%r1+1024];\n\tbar.sync 0;\n"
_HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def best(action: Callable[[], object], runs: int = _RUNS) -> float:
    """Least CPU seconds of several runs."""
    found: list[float] = []
    for _ in range(runs):
        began = time.process_time()
        action()
        found.append(time.process_time() - began)
    return min(found)


def split(text: str) -> PtxFile:
    """Level 1 and one table look-up for every instruction."""
    file = parse(text)
    for module in file.modules:
        for function in module.functions:
            for instruction in function.instructions:
                lookup(instruction.opcode)
    return file


def without_tables(text: str) -> str:
    """The text without its `.section` data."""
    return re.sub(r"\.section\s+\.\w+\s*\{[^{}]*\}", "", text)


def assemble_seconds(path: Path, text: str) -> float | None:
    tool = shutil.which("ptxas")
    target = re.search(r"\.target\s+(sm_\w+)", text)
    if tool is None or target is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        command = [tool, "-arch", target[1], str(path), "-o", str(Path(folder, "k.cubin"))]
        done = subprocess.run(command, capture_output=True, check=False)
        return time.perf_counter() - began if done.returncode == 0 else None


def files(paths: list[Path]) -> None:
    print(f"{'file':40} {'MB':>7} {'instr.':>8} {'split MB/s':>10} {'validate MB/s':>13} {'ptxas s':>8} {'ratio':>8}")
    for path in paths:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        code = without_tables(text)
        size = len(code) / 1e6
        seconds = best(lambda code=code: split(code))
        file = split(code)
        count = sum(len(function.instructions) for module in file.modules for function in module.functions)
        checked = best(lambda file=file: validate(file), 2)
        ptxas = assemble_seconds(path, text)
        ratio = "-" if ptxas is None else f"{ptxas / seconds:.0f}"
        shown = "-" if ptxas is None else f"{ptxas:.2f}"
        speeds = f"{size / seconds:10.1f} {size / checked:13.1f}"
        print(f"{path.name[:40]:40} {size:7.2f} {count:8} {speeds} {shown:>8} {ratio:>8}")


def scale() -> None:
    print(f"{'KB':>8} {'us/line':>8} {'MB/s':>7} {'peak/size':>9}")
    for size in (10_000, 100_000, 1_000_000, 10_000_000):
        lines = size // len(_LINE)
        text = f"{_HEADER}.entry k() {{ .reg .b32 %r<9>; .reg .pred %p<2>;\n{_LINE * lines}}}\n"
        seconds = best(lambda text=text: split(text), 3)
        tracemalloc.start()
        file = split(text)
        validate(file)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        per_line = seconds / (3 * lines) * 1e6
        print(f"{size / 1000:8.0f} {per_line:8.2f} {len(text) / 1e6 / seconds:7.1f} {peak / len(text):9.1f}")


def hostile() -> None:
    from tests.grammar.hostile import CASES

    for name, make in CASES.items():
        text = make(1_000_000)
        began = time.process_time()
        errors = validate(parse(text))
        spent = time.process_time() - began
        print(f"{name:22} {len(text) / 1e6:6.2f} MB {spent:7.2f} s {len(errors):3} errors")


def cold() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.ptx")
        path.write_text(f"{_HEADER}.entry k() {{ .reg .b32 %r<9>; .reg .pred %p<2>;\n{_LINE * 10}ret;\n}}\n")
        times: list[float] = []
        for _ in range(_RUNS):
            began = time.perf_counter()
            code = "from ptxfence.cli.main import main; main()"
            subprocess.run([sys.executable, "-c", code, "check", str(path)], capture_output=True, check=False, cwd=ROOT)
            times.append(time.perf_counter() - began)
        print(f"ptxfence check, cold: {min(times):.3f} s wall")
        print(f"ptxas, the same file: {assemble_seconds(path, path.read_text()) or 0:.3f} s wall")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--scale", action="store_true")
    options.add_argument("--hostile", action="store_true")
    options.add_argument("--cold", action="store_true")
    chosen = options.parse_args()
    if chosen.files:
        files(chosen.files)
    if chosen.scale:
        scale()
    if chosen.hostile:
        hostile()
    if chosen.cold:
        cold()


if __name__ == "__main__":
    main()
