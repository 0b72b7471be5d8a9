"""Hostile inputs by the million: no traceback, no hang, no memory above the limit, the same answer twice.

    python bench/trust/fuzz.py --count 1000000 --jobs 2 --keep tests/regressions --page

Inputs that fail are written to `--keep` as they are. A seed names an input.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.fuzz.judge import complaint, kernels  # noqa: E402
from tests.fuzz.mutate import hostile  # noqa: E402

MEMORY = 2 << 30  # bytes of address space of a worker
CHUNK = 500
BEGIN, END = "<!-- fuzzing: written by bench/trust/fuzz.py -->", "<!-- end of fuzzing -->"


def start() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def chunk(first: int, count: int) -> list[tuple[int, str]]:
    texts = kernels()
    found: list[tuple[int, str]] = []
    for seed in range(first, first + count):
        wrong = complaint(hostile(seed, texts), repeat=seed % 8 == 0)
        if wrong:
            found.append((seed, wrong))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--page", action="store_true", help="write the figures into docs/trust.md")
    options = parser.parse_args()
    begin = time.monotonic()
    firsts = range(options.start, options.start + options.count, CHUNK)
    sizes = [min(CHUNK, options.start + options.count - first) for first in firsts]
    failures: list[tuple[int, str]] = []
    with ProcessPoolExecutor(options.jobs, initializer=start) as pool:
        for found in pool.map(chunk, firsts, sizes):
            failures += found
    seconds = time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    text = (
        f"Inputs {options.start} to {options.start + options.count - 1}: {len(failures)} failures, {seconds:.0f} s, "
        f"at most {peak} MiB in a worker."
    )
    print(text)
    kinds = Counter(wrong.strip().splitlines()[-1] for _, wrong in failures)
    for kind, count in kinds.most_common():
        seeds = [seed for seed, wrong in failures if wrong.strip().endswith(kind)]
        print(f"{count} x {kind} (seeds {seeds[:5]})")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        texts, told = kernels(), set[str]()
        for seed, wrong in failures:
            kind = wrong.strip().splitlines()[-1]
            if kind not in told:
                told.add(kind)
                (options.keep / f"hostile-{seed}.ptx").write_text(hostile(seed, texts), errors="surrogateescape")
    if options.page:
        page = ROOT / "docs" / "trust.md"
        old = page.read_text()
        page.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{text}\n{old[old.index(END) :]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
