"""Shows on a GPU that missing proxy fences give wrong results and that `ptxfence fix` repairs them at no cost.

    python bench/hardware/run.py [--tiles N] [--words N] [--kernel NAME] [--patched FOLDER] [--save FOLDER]

Needs an sm_90 GPU (H100, H200), cuda-python and NumPy. For each kernel: the unfenced build runs and its wrong words
are counted; `ptxfence fix` patches it, at least `--words` words of the patched build are compared; its run time is
set against the build that a person fenced, both measured in turn. Exit status 0 if every unfenced kernel failed, no
patched one did, and none is more than 2 % slower than its hand-fenced twin.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gpu import Buffer, Gpu, GpuError, Kernel
from workloads import WORKLOADS, Data, Workload

SLOWER = 1.02
UNFENCED_RUNS = 5
PAIRS = 101


class Bench:
    """One workload on the GPU: its buffers, and what is counted and timed with them."""

    def __init__(self, gpu: Gpu, workload: Workload, tiles: int) -> None:
        self.gpu = gpu
        self.workload = workload
        self.grid = gpu.multiprocessors * workload.ctas
        self.data: Data = workload.data(tiles, self.grid)
        self.inputs = [Buffer.of(values) for values in self.data.inputs]
        self.expected = Buffer.of(self.data.expected)
        self.output = Buffer(self.expected.size)
        buffers = [*self.inputs, self.output]
        self.arguments: Sequence[np.generic] = (*(b.argument for b in buffers), np.int32(self.data.tiles))

    @property
    def words(self) -> int:
        """Words compared in one run."""
        if self.workload.counts_itself:
            return self.grid * self.data.tiles * self.workload.words_per_tile
        return self.expected.size // 4

    def kernel(self, text: str) -> Kernel:
        return Kernel(text, self.workload.entry, self.workload.shared)

    def wrong(self, kernel: Kernel) -> int:
        """Wrong words of one run; the output is poisoned first so that old results cannot pass."""
        self.output.fill(0 if self.workload.counts_itself else 0xEE)
        kernel.launch(self.grid, self.workload.block, self.arguments)
        if self.workload.counts_itself:
            self.gpu.wait()
            return int(self.output.read(np.uint32)[0])
        return self.gpu.different(self.output, self.expected)

    def ratio(self, kernel: Kernel, reference: Kernel) -> tuple[float, float, float]:
        """Median and quartiles of time(kernel) / time(reference), measured in pairs of alternating order."""
        once = self._seconds(reference, 3)
        repeats = max(1, round(0.005 / once))
        ratios: list[float] = []
        for number in range(PAIRS):
            order = (kernel, reference) if number % 2 else (reference, kernel)
            times = {id(k): self._seconds(k, repeats) for k in order}
            ratios.append(times[id(kernel)] / times[id(reference)])
        low, middle, high = statistics.quantiles(ratios, n=4)
        return middle, low, high

    def _seconds(self, kernel: Kernel, repeats: int) -> float:
        return self.gpu.seconds(kernel, self.grid, self.workload.block, self.arguments, repeats)

    def free(self) -> None:
        for buffer in (*self.inputs, self.expected, self.output):
            buffer.free()


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    workload: Workload
    unfenced: int
    unfenced_words: int
    patched: int
    patched_words: int
    hand: int
    fences: int
    ratio: tuple[float, float, float]

    @property
    def good(self) -> bool:
        return self.unfenced > 0 and self.patched == 0 and self.hand == 0 and self.ratio[0] <= SLOWER

    def cells(self) -> tuple[str, ...]:
        middle, low, high = self.ratio
        return (
            self.workload.name,
            self.workload.hazard,
            f"{self.unfenced:.2e} of {self.unfenced_words:.2e}",
            f"{self.patched} of {self.patched_words:.2e}",
            str(self.fences),
            f"{100 * (middle - 1):+.2f} % [{100 * (low - 1):+.2f}, {100 * (high - 1):+.2f}]",
            "yes" if self.good else "NO",
        )


HEADER = ("kernel", "hazard", "wrong unfenced", "wrong patched", "fences", "time against hand-fenced", "as expected")


def measure(gpu: Gpu, workload: Workload, patched: str, tiles: int, words: int) -> Row:
    bench = Bench(gpu, workload, tiles)
    try:
        unfenced, fixed, hand = (
            bench.kernel(text) for text in (workload.text("nofence"), patched, workload.text("fence"))
        )
        runs = -(-words // bench.words)
        return Row(
            workload,
            sum(bench.wrong(unfenced) for _ in range(UNFENCED_RUNS)),
            bench.words * UNFENCED_RUNS,
            sum(bench.wrong(fixed) for _ in range(runs)),
            bench.words * runs,
            sum(bench.wrong(hand) for _ in range(UNFENCED_RUNS)),
            patched.count("\n") - workload.text("nofence").count("\n"),
            bench.ratio(fixed, hand),
        )
    finally:
        bench.free()


def patch(workload: Workload, folder: Path | None) -> str:
    """The text that `ptxfence fix` gives, made now or taken from `folder` (made there with `ptxfence fix -o`)."""
    if folder is not None:
        return (folder / workload.path("nofence").name).read_text()
    import ptxfence

    path = workload.path("nofence")
    return ptxfence.fix(path.read_text(), filename=path.name).text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", type=int, default=8192)
    parser.add_argument("--words", type=int, default=10**9, help="at least so many of each patched kernel")
    parser.add_argument("--kernel", action="append", choices=[w.name for w in WORKLOADS], help="only this one")
    parser.add_argument("--patched", type=Path, help="folder with patched files, instead of patching now")
    parser.add_argument("--save", type=Path, help="write the patched files there and stop; needs no GPU")
    arguments = parser.parse_args()
    chosen = [w for w in WORKLOADS if not arguments.kernel or w.name in arguments.kernel]
    if arguments.save:
        arguments.save.mkdir(parents=True, exist_ok=True)
        for workload in chosen:
            (arguments.save / workload.path("nofence").name).write_text(patch(workload, None))
        return 0
    try:
        gpu = Gpu()
    except GpuError as error:
        sys.exit(str(error))
    if gpu.capability[0] != 9:
        sys.exit(f"{gpu.name} has compute capability {'.'.join(map(str, gpu.capability))}; these kernels are for 9.0")
    print(f"{gpu.name}, {gpu.multiprocessors} multiprocessors, driver for CUDA {gpu.driver}, {arguments.tiles} tiles\n")
    print(f"| {' | '.join(HEADER)} |\n|{' --- |' * len(HEADER)}")
    good = True
    for workload in chosen:
        row = measure(gpu, workload, patch(workload, arguments.patched), arguments.tiles, arguments.words)
        print(f"| {' | '.join(row.cells())} |", flush=True)
        good &= row.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
