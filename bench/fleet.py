"""Check 10^5 files on a local Dask cluster of two workers, kill one midway, compare with what must come out.

    python bench/fleet.py [FILES]

Prints the time, the number of worker deaths survived and whether anything was lost or doubled.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow.dataset as dataset
from distributed import Client

from ptxfence.analysis.rules import NAMES, rule
from ptxfence.analysis.rules.example import kernel
from ptxfence.batch.cache import package_stamp
from ptxfence.batch.examine import Options, examine, task_of
from ptxfence.config import Settings
from ptxfence.fleet.batches import cut, find
from ptxfence.fleet.drive import drive, write_summary
from ptxfence.fleet.work import Totals

TEXTS = [kernel(text) for name in NAMES for text in (rule(name).bad, rule(name).good)]


def fill(folder: Path, count: int) -> None:
    for number in range(count):
        path = folder / f"{number // 1000:04}" / f"{number:07}.ptx"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXTS[number % len(TEXTS)])


def main(count: int = 100_000) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        store, output = Path(scratch, "in"), str(Path(scratch, "out"))
        fill(store, count)
        expected = Counter[str]()
        for number, text in enumerate(TEXTS):
            times = count // len(TEXTS) + (number < count % len(TEXTS))
            result = examine(task_of("x", text, Options()))
            expected.update({f.rule: times for f in result.findings if f.severity})
        started = time.perf_counter()
        batches = list(cut(find([str(store)]), 500, output, Settings(), package_stamp()))
        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
            killed: list[int] = []

            def midway(total: Totals) -> None:
                if total.files * 2 > count and not killed:
                    killed.append(next(iter(client.run(os.getpid).values())))
                    os.kill(killed[0], signal.SIGKILL)

            found = drive(client, batches, midway)
        summary = write_summary(output, batches, found)
        seconds = time.perf_counter() - started
        paths = dataset.dataset(f"{output}/files").to_table(columns=["path"])["path"].to_pylist()
        once = len(paths) == len(set(paths)) == count and summary["rules"] == dict(expected)
        told = f"{len(killed)} killed; nothing lost or doubled: {once}"
        print(f"{count} files in {seconds:.0f} s on 2 workers, {told}", flush=True)
    return 0 if once else 1


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:2])))
