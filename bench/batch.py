"""Check 2,000 real kernels: one process, two, eight, and again from the result cache.

    python bench/batch.py [FILES]

The files are the corpus over and over, each with a comment of its own so that no two are equal. Prints wall time, the
speed-up, whether all runs printed the same, and the peak memory of the parent process and of its largest worker.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "corpus" / "ptx"


def fill(folder: Path, count: int) -> None:
    texts = [path.read_bytes() for path in sorted(CORPUS.rglob("*.ptx"))]
    for number in range(count):
        (folder / f"{number:05}.ptx").write_bytes(texts[number % len(texts)] + b"// copy %d\n" % number)


def check(folder: Path, cache: Path, *words: str) -> tuple[float, float, Any]:
    """Seconds, processor seconds and the report without its times."""
    command = [sys.executable, "-m", "ptxfence", "check", str(folder), "--format", "json", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    environment = {**os.environ, "PTXFENCE_CACHE_DIR": str(cache)}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(done.stdout)
    report["summary"]["seconds"] = 0
    for file in report["files"]:
        for kernel in file["kernels"]:
            kernel["seconds"] = 0
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, report


def main(count: int = 2000) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        folder, cache = Path(scratch, "in"), Path(scratch, "cache")
        folder.mkdir()
        fill(folder, count)
        reports: list[Any] = []
        base = 0.0
        runs = (("1",), ("2",), ("8",))
        for jobs in runs:
            seconds, processor, report = check(folder, cache, "--no-cache", "--jobs", *jobs)
            base = base or seconds
            reports.append(report)
            print(f"--jobs {jobs[0]}: {seconds:.1f} s ({base / seconds:.2f} x), {processor:.1f} s of processor time")
        for name in ("cold", "warm"):
            seconds, _, report = check(folder, cache)
            reports.append(report)
            print(f"with a cache, {name}: {seconds:.2f} s")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        same = all(report == reports[0] for report in reports)
        print(f"{count} files, same output: {same}, peak memory of one process {peak} MiB")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:2])))
