"""A Triton program whose kernel lacks a proxy fence, and which checks its own results.

Persistent programs take tiles through shared memory: ordinary stores, then a TMA store. `gl.fence_async_shared` is
missing between the two, as it was in kernels of Triton up to 3.7.0 (triton-lang/triton PR 9610). Exit status 0 if
every word is right, 1 if not.

    python3 triton_victim.py [--tiles N] [--runs N]

Needs an sm_90 GPU, PyTorch and Triton 3.6 to 3.7.0.
"""

from __future__ import annotations

import argparse
import sys

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import tma

tma_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global  # renamed in Triton 3.9
ROWS, COLUMNS = 64, 64


@gluon.jit
def scale_tiles(source, out_desc, count, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """out = 2 * source + 1, tile by tile."""
    # A warp stores a column of 32 rows at a time: bank conflicts keep the stores waiting behind the barrier.
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [32, 1], [2, 4], [1, 0])
    rows = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    columns = gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
    offsets = rows[:, None] * COLUMNS + columns[None, :]
    tile = gl.allocate_shared_memory(out_desc.dtype, [ROWS, COLUMNS], out_desc.layout)
    for number in range(gl.program_id(0), count, gl.num_programs(0)):
        value = gl.load(source + number * ROWS * COLUMNS + offsets)
        tile.store(value * 2 + 1)
        tma_store(out_desc, [number * ROWS, 0], tile)
        tma.store_wait(0)


def wrong_words(tiles: int, runs: int) -> int:
    """Launches the kernel and counts what is wrong over all runs."""
    import torch
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    source = torch.arange(tiles * ROWS * COLUMNS, dtype=torch.int32, device="cuda").reshape(tiles * ROWS, COLUMNS)
    out = torch.empty_like(source)
    layout = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=2)
    out_desc = TensorDescriptor.from_tensor(out, [ROWS, COLUMNS], layout)
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    wrong = 0
    for _ in range(runs):
        out.fill_(-1)
        scale_tiles[(programs,)](source, out_desc, tiles, ROWS, COLUMNS, num_warps=8)
        wrong += int((out != source * 2 + 1).sum())
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiles", type=int, default=8192)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    wrong = wrong_words(arguments.tiles, arguments.runs)
    total = arguments.tiles * arguments.runs * ROWS * COLUMNS
    print(f"{wrong} of {total} words wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
