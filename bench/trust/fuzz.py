"""Hostile inputs by the million: no traceback, no hang, no memory above the limit, the same answer twice.

    python bench/trust/fuzz.py --count 1000000 --jobs 2 --log build/fuzz.jsonl --page

A seed names an input. One input of eight is asked twice in its process; one chunk of ten is asked again in a process
whose string hashes differ. Each piece of 100,000 inputs is a line of the log; a run that was stopped goes on after
the pieces that the log has, and seeds that failed are judged again at the end. Each kind of failure is shrunk and
written to `--keep`, tests/regressions by default.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.fuzz.judge import LIMIT, compiled, complaint, judge, kernels  # noqa: E402
from tests.fuzz.mutate import hostile, shrink  # noqa: E402

MEMORY = 2 << 30  # bytes of address space of a worker
CHUNK = 500
PIECE = 100_000
AGAIN = 10  # one chunk of so many is asked in a second process
WAVERS = "two processes differ"
BEGIN, END = "<!-- fuzzing: written by bench/trust/fuzz.py -->", "<!-- end of fuzzing -->"


@dataclass(frozen=True, slots=True)
class Piece:
    """Figures of a run of inputs; `peak` in MiB, `seconds` of wall time."""

    start: int
    count: int
    failures: dict[str, list[int]]  # kind: seeds
    seconds: float
    slowest: float
    peak: int
    twice: int
    elsewhere: int


@dataclass(frozen=True, slots=True)
class Chunk:
    failures: list[tuple[int, str]]
    digests: list[str]
    slowest: float
    peak: int
    salt: int


def start() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def chunk(first: int, count: int) -> Chunk:
    found: list[tuple[int, str]] = []
    digests: list[str] = []
    slowest = 0.0
    for seed in range(first, first + count):
        text = hostile(seed, kernels(), compiled())
        begin = time.process_time()
        wrong, digest = judge(text, repeat=seed % 8 == 0)
        slowest = max(slowest, time.process_time() - begin)
        digests.append(digest)
        if wrong:
            found.append((seed, wrong))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return Chunk(found, digests, slowest, peak, hash("salt"))


def kind_of(wrong: str) -> str:
    """What failures have in common: the exception and the place that raised it."""
    lines = wrong.strip().splitlines()
    places = [line.strip() for line in lines if line.startswith("  File ")]
    if not places:
        return lines[-1].split(":")[0]
    return f"{lines[-1].split(':')[0]} at {places[-1].rsplit('/', 1)[-1]}"


def run_piece(first: int, count: int, pools: tuple[ProcessPoolExecutor, ProcessPoolExecutor]) -> Piece:
    begin = time.monotonic()
    firsts = list(range(first, first + count, CHUNK))
    sizes = [min(CHUNK, first + count - low) for low in firsts]
    once = pools[0].map(chunk, firsts, sizes)
    sample = [i for i in range(len(firsts)) if i % AGAIN == 0]
    other = list(pools[1].map(chunk, [firsts[i] for i in sample], [sizes[i] for i in sample]))
    chunks = list(once)
    failures: dict[str, list[int]] = {}
    for seed, wrong in (failure for part in chunks for failure in part.failures):
        failures.setdefault(kind_of(wrong), []).append(seed)
    for i, part in zip(sample, other, strict=True):
        if part.salt == chunks[i].salt:
            raise SystemExit("both processes have the same string hashes: unset PYTHONHASHSEED")
        pairs = zip(chunks[i].digests, part.digests, strict=True)
        different = [firsts[i] + n for n, (one, two) in enumerate(pairs) if one != two]
        if different:
            failures.setdefault(WAVERS, []).extend(different)
    return Piece(
        first, count, failures, time.monotonic() - begin, max(part.slowest for part in chunks),
        max(part.peak for part in chunks), len(range(-first % 8, count, 8)), sum(sizes[i] for i in sample),
    )  # fmt: skip


def failing(pieces: list[Piece]) -> list[int]:
    """Seeds that failed when their piece was run and fail with the code as it is now."""
    found = [(seed, kind) for piece in pieces for kind, seeds in piece.failures.items() for seed in seeds]
    return [
        seed
        for seed, kind in found
        if kind == WAVERS or complaint(hostile(seed, kernels(), compiled()), repeat=True)  # one process shows no more
    ]


def summary(pieces: list[Piece]) -> str:
    count = sum(piece.count for piece in pieces)
    ranges = sorted((piece.start, piece.start + piece.count - 1) for piece in pieces)
    gaps = any(low != high + 1 for (_, high), (low, _) in pairwise(ranges))
    failed = sum(len(seeds) for piece in pieces for seeds in piece.failures.values())
    seconds = sum(piece.seconds for piece in pieces)
    mended = f", {failed - len(failing(pieces))} of them mended since" if failed else ""
    return (
        f"{count:,} inputs, seeds {ranges[0][0]} to {ranges[-1][1]}{' with gaps' if gaps else ''}: {failed} failures "
        f"(a traceback, more than {LIMIT:.0f} s of processor time, more than {MEMORY >> 30} GiB, two answers)"
        f"{mended}.\n"
        f"{sum(piece.twice for piece in pieces):,} were asked twice in one process and "
        f"{sum(piece.elsewhere for piece in pieces):,} again in another one with other string hashes; the slowest took "
        f"{max(piece.slowest for piece in pieces):.1f} s,\nthe largest process {max(p.peak for p in pieces)} MiB, "
        f"all of them {seconds / 60:.0f} minutes."
    )


def keep(folder: Path, failures: dict[str, list[int]]) -> None:
    """The shortest input of each kind, shrunk."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, seeds in failures.items():
        seed, text = min(((s, hostile(s, kernels(), compiled())) for s in seeds[:20]), key=lambda pair: len(pair[1]))
        if kind != WAVERS:
            text = shrink(text, lambda smaller, kind=kind: kind_of(complaint(smaller, repeat=True) or "-") == kind)
        (folder / f"hostile_{seed}.ptx").write_text(text, encoding="utf-8", errors="surrogateescape", newline="")


def recorded(log: Path | None) -> list[Piece]:
    if log is None or not log.exists():
        return []
    return [Piece(**json.loads(line)) for line in log.read_text().splitlines()]


def run(options: argparse.Namespace) -> list[Piece]:
    pieces = recorded(options.log)
    done = {piece.start for piece in pieces}
    context = multiprocessing.get_context("spawn")
    end = options.start + options.count
    with (
        ProcessPoolExecutor(options.jobs, context, start) as one,
        ProcessPoolExecutor(1, context, start) as two,
    ):
        for first in range(options.start, end, PIECE):
            if first in done:
                continue
            piece = run_piece(first, min(PIECE, end - first), (one, two))
            pieces.append(piece)
            print(summary([piece]), flush=True)
            if options.log is not None:
                options.log.parent.mkdir(parents=True, exist_ok=True)
                with options.log.open("a") as stream:
                    stream.write(json.dumps(asdict(piece)) + "\n")
            if piece.failures:
                keep(options.keep, piece.failures)
    return pieces


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=ROOT / "tests" / "regressions")
    parser.add_argument("--log", type=Path, help="pieces done, one a line of JSON")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/trust.md")
    options = parser.parse_args()
    pieces = run(options)
    text = summary(pieces)
    print(text)
    kinds: Counter[str] = Counter()
    for piece in pieces:
        for kind, seeds in piece.failures.items():
            kinds[kind] += len(seeds)
            print(f"{len(seeds)} x {kind} (seeds {seeds[:5]})")
    if options.page:
        page = ROOT / "docs" / "trust.md"
        old = page.read_text()
        page.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{text}\n{old[old.index(END) :]}")
    return 1 if failing(pieces) else 0


if __name__ == "__main__":
    sys.exit(main())
