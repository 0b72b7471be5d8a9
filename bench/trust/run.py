"""Generated kernels by the hundred thousand: the oracle against check, recheck and fix.

    python bench/trust/run.py --count 100000 --jobs 2 --keep findings/ --page
    python bench/trust/run.py --start 10000 --count 10000 --save pieces/1.json
    python bench/trust/run.py --pieces pieces/*.json --again --page

Prints a table; `--keep` writes each kind of disagreement, shrunk, as a .ptx file; `--page` puts the table into
docs/trust.md. A seed names a kernel: `--start` and `--count` repeat a run. `--save` keeps the figures of a piece of a
run, `--pieces` adds them up, and `--again` looks once more at the seeds of them that failed.
"""

from __future__ import annotations

import argparse
import gc
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bench.trust.tally import Tally  # noqa: E402
from ptxfence.analysis.report import Confidence  # noqa: E402
from tests.oracle.generate import generate  # noqa: E402
from tests.oracle.kernels import Kernel  # noqa: E402
from tests.oracle.properties import (  # noqa: E402
    Disagreement,
    certainty,
    check,
    fixed,
    monotone,
    observe,
    rechecked,
    soundness,
    unchanged,
)
from tests.oracle.shrink import shrink, signature  # noqa: E402

BEGIN, END = "<!-- figures: written by bench/trust/run.py -->", "<!-- end of figures -->"
CHUNK = 50
EVERY_FIX, EVERY_VARIANT, EVERY_ASSEMBLY = 8, 16, 100  # one program in so many gets the dearer checks


def examine(kernel: Kernel, seed: int, tally: Tally | None = None) -> list[Disagreement]:
    """All disagreements of one kernel."""
    seen = observe(kernel, seed)
    checked = check(kernel)
    report = checked.report
    found = [*soundness(seen, report)]
    for confidence in (Confidence.CERTAIN, Confidence.LIKELY):
        found += certainty(kernel, seed, seen, report, confidence)
    found += rechecked(checked)
    if seed % EVERY_FIX == 0:
        found += fixed(kernel, seed, seen)
    if seed % EVERY_VARIANT == 0:
        found += unchanged(kernel, report)
        found += monotone(kernel, random.Random(seed).randrange(len(kernel.body)), report)
    if tally is not None:
        tally.counts[f"verdict {report.verdict.value}"] += 1
        tally.counts["programs with a hazard (oracle)"] += any(h.rule for h in seen.hazards)
        tally.counts["programs that block for ever"] += bool(seen.deadlocks)
        tally.counts["schedules run"] += seen.schedules
        for finding in report.findings:
            if finding.rule.startswith("PF1") and finding.second is not None:
                tally.counts[f"findings {finding.confidence.value}"] += 1
    return found


def chunk(start: int, count: int) -> Tally:
    gc.set_threshold(100_000, 20, 20)  # thousands of short-lived graphs a second: the default spends a tenth on them
    tally = Tally()
    for seed in range(start, start + count):
        kernel = generate(seed)
        try:
            found = examine(kernel, seed, tally)
        except Exception as error:  # a crash of the tool is a finding too
            found = [Disagreement("crash", f"{type(error).__name__}: {error}")]
        tally.counts["programs"] += 1
        if seed % EVERY_ASSEMBLY == 0:
            tally.counts["assembled with ptxas"] += 1
            if not _assembles(kernel):
                found.append(Disagreement("assembly", "ptxas refuses the kernel"))
        for one in found:
            tally.failures.append((seed, one.what, one.text))
    return tally


def _assembles(kernel: Kernel) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(kernel.text(32))
        command = ["ptxas", "-arch=sm_90a", "-O0", str(path), "-o", str(Path(folder) / "k.cubin")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def keep(folder: Path, failures: Iterable[tuple[int, str, str]]) -> None:
    """The first kernel of each kind of disagreement, shrunk."""
    folder.mkdir(parents=True, exist_ok=True)
    done: set[str] = set()
    failures = list(failures)
    for seed, what, _ in failures:
        if what in done or what in ("crash", "assembly"):
            continue
        done.add(what)

        kernel = generate(seed)
        wanted = {signature(kernel, what, text) for s, w, text in failures if (s, w) == (seed, what)}

        def same(kernel: Kernel, seed: int = seed, wanted: set[tuple[str, ...]] = wanted) -> bool:
            return any(signature(kernel, one.what, one.text) in wanted for one in examine(kernel, seed))

        small = shrink(kernel, same)
        texts = [one.text for one in examine(small, seed) if one.what == what]
        (folder / f"{what}-{seed}.ptx").write_text(small.text(32) + "".join(f"// {text}\n" for text in texts))


def renewed(tally: Tally) -> None:
    """Looks again at the seeds that failed."""
    seeds = sorted({seed for seed, _, _ in tally.failures})
    tally.renew(seeds, [failure for seed in seeds for failure in chunk(seed, 1).failures])


def measured(start: int, count: int, jobs: int) -> Tally:
    """Examines `count` seeds from `start` on."""
    begin = time.monotonic()
    total = Tally()
    starts = range(start, start + count, CHUNK)
    sizes = [min(CHUNK, start + count - at) for at in starts]
    with ProcessPoolExecutor(jobs) as pool:
        for tally in pool.map(chunk, starts, sizes):
            total.add(tally)
    total.seconds = time.monotonic() - begin
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--pieces", type=Path, nargs="+")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--page", action="store_true", help="write the table into docs/trust.md")
    options = parser.parse_args()
    if shutil.which("ptxas") is None:
        parser.error("ptxas is not on PATH")
    if options.pieces:
        total = Tally()
        for path in options.pieces:
            total.add(Tally.load(path))
    else:
        total = measured(options.start, options.count, options.jobs)
    if options.again:
        renewed(total)
    if options.save is not None:
        total.save(options.save)
    text = total.table(options.start)
    print(text)
    for seed, what, message in total.failures:
        print(f"{seed}: {what}: {message}")
    if options.keep is not None:
        keep(options.keep, total.failures)
    if options.page:
        page = ROOT / "docs" / "trust.md"
        old = page.read_text()
        page.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{text}\n\n{old[old.index(END) :]}")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
