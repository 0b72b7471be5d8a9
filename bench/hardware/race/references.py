"""What the demo kernels must compute, in NumPy; called by `ptxfence race` with the buffers' first contents."""

from typing import Any

import numpy as np

Buffers = dict[str, Any]


def transpose(buffers: Buffers) -> Buffers:
    return {"output": buffers["input"].transpose(0, 2, 1)}


def product(buffers: Buffers) -> Buffers:
    a, b = buffers["a"].astype(np.float32), buffers["b"].astype(np.float32)
    return {"c": np.matmul(a, b.T) + np.float32(0)}


def sums(buffers: Buffers) -> Buffers:
    total = np.zeros(buffers["output"].shape, np.uint32)
    for column in range(buffers["input"].shape[2]):
        total = total * np.uint32(31) + buffers["input"][:, :, column]
    return {"output": total}


def nothing_wrong(buffers: Buffers) -> Buffers:
    return {"wrong": np.zeros_like(buffers["wrong"])}
