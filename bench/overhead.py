"""What ptxfence costs beside ptxas -O3: check and fix in a warm process, against the assembly of the same text.

    python bench/overhead.py [--repeat N] [--ptxas PATH] [--page] [PATH ...]    default: every PTX file of corpus/ptx

Prints one line a file, the medians, the 95th percentile over the files on which ptxas takes 50 ms or more, and the
worst. `--page` writes the summary and the plot into docs/speed.md and docs/speed.svg. Exit status 1 if the median of
check is above 0.15 x or that of fix (without re-assembly) above 0.25 x the time of ptxas. Times are CPU time, which a
busy machine disturbs less than wall time, the least of N runs each.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ptxfence
from bench.plot import scatter
from ptxfence.errors import PtxFenceError
from ptxfence.rewrite.assemble import target_of
from ptxfence.rewrite.tools import find

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "corpus" / "ptx"
PAGE, PLOT = ROOT / "docs" / "speed.md", ROOT / "docs" / "speed.svg"
BEGIN, END = "<!-- overhead: written by bench/overhead.py -->", "<!-- end of overhead -->"
CHECK, CHECK_95, FIX = 0.15, 0.3, 0.25
LONG = 0.05  # seconds of ptxas from which on a file counts for the percentile


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds for one file."""

    path: Path
    size: int
    ptxas: float
    check: float
    fix: float
    edits: int

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def ratio(self) -> float:
        return self.check / self.ptxas


def least(action: Callable[[], object], repeat: int) -> float:
    """The least CPU time of several runs, children included, in seconds."""
    best = float("inf")
    for _ in range(repeat):
        start = cpu_seconds()
        action()
        best = min(best, cpu_seconds() - start)
    return best


def cpu_seconds() -> float:
    """User and system time of this process and of its children so far."""
    mine, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime


def measure(path: Path, ptxas: str, repeat: int) -> Row | None:
    """One file; None if this ptxas does not take it or it cannot be patched."""
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        command = [ptxas, "-O3", f"-arch={target_of(text)}", str(path), "-o", f"{folder}/out"]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            return None
        try:
            edits = len(ptxfence.fix(text, str(path)).edits)  # also warms everything up
        except PtxFenceError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            return None
        return Row(
            path,
            len(text),
            least(lambda: subprocess.run(command, capture_output=True, check=True), repeat),
            least(lambda: ptxfence.check(text, str(path)), repeat),
            least(lambda: ptxfence.fix(text, str(path)), repeat),
            edits,
        )


def summary(rows: list[Row], release: str) -> list[tuple[str, str]]:
    """(what, figure) of all rows."""
    by_ratio = sorted(rows, key=lambda row: row.ratio)
    long = [row for row in by_ratio if row.ptxas >= LONG]
    triton = sorted((r for r in rows if "triton" in r.name and 35_000 <= r.size <= 50_000), key=lambda r: r.ratio)
    found = [
        ("files", str(len(rows))),
        ("ptxas", release),
        ("machine", f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"),
        ("check / ptxas -O3, median", f"{statistics.median(r.ratio for r in rows):.3f} (bar {CHECK})"),
        ("check in MB/s, median", f"{statistics.median(r.size / r.check for r in rows) / 1e6:.2f}"),
        ("fix / ptxas -O3, median", f"{statistics.median(r.fix / r.ptxas for r in rows):.3f} (bar {FIX})"),
        ("worst", f"{by_ratio[-1].ratio:.3f}, {by_ratio[-1].name}"),
    ]
    if long:
        at = long[min(len(long) - 1, int(0.95 * len(long)))].ratio
        what = f"95th percentile of check, {len(long)} files from {LONG * 1e3:.0f} ms on"
        found.append((what, f"{at:.3f} (bar {CHECK_95})"))
    if triton:
        middle = statistics.median(r.ratio for r in triton)
        least_, most = f"{triton[0].ratio:.3f} ({triton[0].name})", f"{triton[-1].ratio:.3f} ({triton[-1].name})"
        found.append((f"{len(triton)} Triton kernels of 35 to 50 KB", f"{least_}, median {middle:.3f}, {most}"))
    patched = [row.fix / row.ptxas for row in rows if row.edits]
    if patched:
        found.append((f"fix of the {len(patched)} that are patched, median", f"{statistics.median(patched):.3f}"))
    return found


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def write_page(rows: list[Row], table: list[tuple[str, str]]) -> None:
    """Puts the figures between their marks and draws the plot."""
    lines = ["| what | figure |", "|---|---|", *(f"| {what} | {figure} |" for what, figure in table)]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    body = "\n".join(lines)
    PAGE.write_text(f"{before}{BEGIN}\n{body}\n\n![check against ptxas](speed.svg)\n{END}{after}")
    points = [(row.ptxas * 1e3, row.check * 1e3, row.name) for row in rows]
    PLOT.write_text(scatter(points, "ptxas -O3, ms", "check, ms", CHECK))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--ptxas", help="default: the newest found")
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    tool = arguments.ptxas or find("ptxas")[0].path
    paths = arguments.paths or sorted(CORPUS.rglob("*.ptx"))
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout.split("release")[1]
    rows: list[Row] = []
    for path in paths:
        row = measure(path, tool, arguments.repeat)
        if row is None:
            continue
        rows.append(row)
        print(
            f"{row.name:<56} {row.size / 1e3:6.1f} KB  ptxas {row.ptxas * 1e3:8.1f} ms  "
            f"check {row.check * 1e3:7.1f} ms {row.ratio:6.3f}  "
            f"fix {row.fix * 1e3:7.1f} ms {row.fix / row.ptxas:6.3f}  {row.edits} edits",
            flush=True,
        )
    if not rows:
        print("nothing could be measured", file=sys.stderr)
        return 2
    table = summary(rows, version.split(",")[0].strip())
    for what, figure in table:
        print(f"{what}: {figure}")
    if arguments.page:
        write_page(rows, table)
    check = statistics.median(row.ratio for row in rows)
    return 0 if check <= CHECK and statistics.median(r.fix / r.ptxas for r in rows) <= FIX else 1


if __name__ == "__main__":
    sys.exit(main())
