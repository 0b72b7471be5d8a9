"""Host time of one launch of a small compiled Triton kernel, in microseconds: the median of many."""

from __future__ import annotations

import statistics
import time

import torch
import triton
import triton.language as tl


@triton.jit
def nothing(pointer, BLOCK: tl.constexpr):
    tl.store(pointer + tl.arange(0, BLOCK), 0)


def main() -> None:
    memory = torch.zeros(128, device="cuda")
    nothing[(1,)](memory, BLOCK=128)
    times: list[float] = []
    for _ in range(50):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            nothing[(1,)](memory, BLOCK=128)
        times.append((time.perf_counter() - start) / 200)
    print(f"{statistics.median(times) * 1e6:.2f} us")


if __name__ == "__main__":
    main()
