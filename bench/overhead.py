"""What ptxfence costs beside ptxas -O3: check and fix in a warm process, against the assembly of the same text.

    python bench/overhead.py [--repeat N] [--ptxas PATH] [PATH ...]     default: every PTX file of corpus/ptx

Prints one line a file and the medians. Exit status 1 if the median of check is above 0.15 x or that of fix (without
re-assembly) above 0.25 x the time of ptxas. Times are CPU time, which a busy machine disturbs less than wall time, the
least of N runs each.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ptxfence
from ptxfence.errors import PtxFenceError
from ptxfence.rewrite.assemble import target_of
from ptxfence.rewrite.tools import find

CORPUS = Path(__file__).resolve().parent.parent / "corpus" / "ptx"
CHECK, FIX = 0.15, 0.25


@dataclass(frozen=True)
class Row:
    """Seconds for one file."""

    path: Path
    lines: int
    ptxas: float
    check: float
    fix: float
    edits: int


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
            text.count("\n"),
            least(lambda: subprocess.run(command, capture_output=True, check=True), repeat),
            least(lambda: ptxfence.check(text, str(path)), repeat),
            least(lambda: ptxfence.fix(text, str(path)), repeat),
            edits,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--ptxas", help="default: the newest found")
    arguments = parser.parse_args()
    tool = arguments.ptxas or find("ptxas")[0].path
    paths = arguments.paths or sorted(CORPUS.rglob("*.ptx"))
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout.split("release")[1]
    print(f"ptxas {version.split(',')[0].strip()}, {len(paths)} files")
    rows: list[Row] = []
    for path in paths:
        row = measure(path, tool, arguments.repeat)
        if row is None:
            continue
        rows.append(row)
        print(
            f"{row.path.parent.name}/{row.path.name:<40} {row.lines:6} lines  ptxas {row.ptxas * 1e3:8.1f} ms  "
            f"check {row.check * 1e3:7.1f} ms {row.check / row.ptxas:6.3f}  "
            f"fix {row.fix * 1e3:7.1f} ms {row.fix / row.ptxas:6.3f}  {row.edits} edits",
            flush=True,
        )
    if not rows:
        print("nothing could be measured", file=sys.stderr)
        return 2
    check = statistics.median(row.check / row.ptxas for row in rows)
    fix = statistics.median(row.fix / row.ptxas for row in rows)
    patched = [row.fix / row.ptxas for row in rows if row.edits]
    print(f"median over {len(rows)} files: check {check:.3f} x ptxas (limit {CHECK}), fix {fix:.3f} x (limit {FIX})")
    if patched:
        print(f"median over the {len(patched)} that are patched: fix {statistics.median(patched):.3f} x ptxas")
    return 0 if check <= CHECK and fix <= FIX else 1


if __name__ == "__main__":
    sys.exit(main())
