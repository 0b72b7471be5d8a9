"""The kernels of the experiment: where their PTX is, what they are launched with, and what they must compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
HERE = Path(__file__).parent
OWN = HERE / "ptx"
DEMOS = HERE.parent.parent / "corpus" / "ptx" / "nvcc-13.0"
SEED = 1234


@dataclass(frozen=True)
class Data:
    """Arguments before the output, the expected output (compared word by word), and how many tiles it has."""

    inputs: tuple[Array, ...]
    expected: Array
    tiles: int


@dataclass(frozen=True)
class Workload:
    """One kernel. `data` gets the number of tiles and of CTAs; `shared` are bytes of dynamic shared memory.

    A kernel with `counts_itself` compares in its own code (`words_per_tile` words a CTA and tile) and adds what is
    wrong to its output word.
    """

    name: str
    hazard: str
    entry: str
    block: int
    data: Callable[[int, int], Data]
    folder: Path = OWN
    shared: int = 0
    ctas: int = 1
    counts_itself: bool = False
    words_per_tile: int = 0

    def text(self, variant: str) -> str:
        """PTX of variant `fence` or `nofence`."""
        return self.path(variant).read_text()

    def path(self, variant: str) -> Path:
        return self.folder / f"{self.name}.{variant}.sm_90.ptx"


def words(*shape: int) -> Array:
    return np.random.default_rng(SEED).integers(0, 2**32, shape, dtype=np.uint32)


def numbers(tiles: int) -> Array:
    return np.arange(tiles, dtype=np.uint32)


def transpose(tiles: int, _: int) -> Data:
    values = words(tiles, 64, 64)
    return Data((values,), values.transpose(0, 2, 1), tiles)


def staged_a(tiles: int, _: int) -> Data:
    """Small whole numbers without zero: every product and sum is exact, in any order."""
    random = np.random.default_rng(SEED)
    a = (random.integers(1, 9, (tiles, 64, 64)) * random.choice((-1, 1), (tiles, 64, 64))).astype(np.float16)
    b = (random.integers(1, 9, (64, 64)) * random.choice((-1, 1), (64, 64))).astype(np.float16)
    product = np.matmul(a.astype(np.float32), b.astype(np.float32).T)
    return Data((a, b), product + np.float32(0), tiles)


def sums(tiles: int, _: int) -> Data:
    values = words(tiles, 256, 32)
    total = np.zeros((tiles, 256), np.uint32)
    for column in range(32):
        total = total * np.uint32(31) + values[:, :, column]
    return Data((values,), total, tiles)


def roundtrip(tiles: int, ctas: int) -> Data:
    """Scratch and log are only written by the kernel; the one output word counts what was wrong."""
    rounds = max(8, tiles // 4)
    return Data((np.zeros(ctas * 1024, np.uint32), np.zeros(ctas * 65536, np.uint32)), np.zeros(1, np.uint32), rounds)


def epilogue(tiles: int, _: int) -> Data:
    values = words(tiles, 8192)
    return Data((values,), values * np.uint32(0x9E3779B1) + numbers(tiles)[:, None], tiles)


def running_sums(tiles: int, ctas: int) -> Data:
    values = words(tiles, 4096)
    placed = values.reshape(tiles, 16, 8, 32).transpose(0, 3, 2, 1).reshape(tiles, 4096)
    expected = np.empty_like(values)
    for cta in range(ctas):
        expected[cta::ctas] = np.cumsum(placed[cta::ctas], axis=0, dtype=np.uint32)
    return Data((values,), expected, tiles)


def handoff(tiles: int, _: int) -> Data:
    values = words(tiles, 8, 256, 4)
    expected = values.transpose(0, 2, 1, 3).copy()
    expected[..., 0] += numbers(tiles)[:, None, None]
    expected[..., 3] ^= np.uint32(0x5A5A5A5A)
    return Data((values,), expected, tiles)


def staging(tiles: int, _: int) -> Data:
    values = words(tiles, 8, 8, 32, 4)
    expected = values.transpose(0, 1, 3, 2, 4).copy()
    expected[..., 1] -= numbers(tiles)[:, None, None, None]
    expected[..., 2] ^= np.uint32(0xA5A5A5A5)
    return Data((values,), expected, tiles)


def loaded(tiles: int, _: int) -> Data:
    values = words(tiles, 8192)
    return Data((values,), values, tiles)


WORKLOADS = (
    Workload("transpose_bulk_store", "st.shared, bar.sync, bulk store", "transpose_store", 256, transpose, DEMOS),
    Workload("wgmma_staged_a", "st.shared, bar.sync, wgmma", "wgmma_staged", 128, staged_a, DEMOS, ctas=4),
    Workload("war_bulk_load", "ld.shared, bar.sync, bulk load", "war_load", 256, sums, DEMOS, shared=32768),
    Workload("global_roundtrip", "st.global, bar.sync, bulk load", "global_roundtrip", 256, roundtrip, DEMOS,
             counts_itself=True, words_per_tile=1024),
    Workload("stmatrix_epilogue", "stmatrix, bar.sync, bulk store", "stmatrix_epilogue", 256, epilogue),
    Workload("red_bulk_store", "red.shared, bar.sync, bulk store", "red_bulk_store", 256, running_sums),
    Workload("role_handoff", "st.shared, mbarrier, bulk store by another warp", "role_handoff", 288, handoff,
             shared=65536),
    Workload("warp_staging", "st.shared, bar.warp.sync, bulk store", "warp_staging", 256, staging),
    Workload("overwrite_load", "st.shared, bar.sync, bulk load over it", "overwrite_load", 256, loaded, shared=32768),
)  # fmt: skip
