"""cuTile kernels of our own, exported to cubin for one target: ``python cutile_sources.py ARCH CASE``.

Run by cutile_kernels.py, whose ptxas wrapper keeps the PTX on its way.
"""

# pyright: basic
import io
import math
import sys

import cuda.tile as ct
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    ConstantConstraint,
    KernelSignature,
    ScalarConstraint,
    export_kernel,
)

TM = TN = TK = ct.Constant[int]


@ct.kernel
def matmul(A, B, C, tm: TM, tn: TN, tk: TK):
    """C = A @ B."""
    row, col = ct.bid(0), ct.bid(1)
    acc = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(tm, tk))):
        a = ct.load(A, index=(row, k), shape=(tm, tk))
        b = ct.load(B, index=(k, col), shape=(tk, tn))
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(row, col), tile=ct.astype(acc, C.dtype))


@ct.kernel
def cast_matmul(A, B, C, tm: TM, tn: TN, tk: TK):
    """C = A @ cast(B), B narrower than A."""
    row, col = ct.bid(0), ct.bid(1)
    acc = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(tm, tk))):
        a = ct.load(A, index=(row, k), shape=(tm, tk))
        b = ct.astype(ct.load(B, index=(k, col), shape=(tk, tn)), A.dtype)
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(row, col), tile=ct.astype(acc, C.dtype))


@ct.kernel
def attention(Q, K, V, Out, scale, tm: TM, tn: TN, d: TK):
    """Out = softmax(Q K^T) V for one head."""
    row = ct.bid(0)
    q = ct.load(Q, index=(row, 0), shape=(tm, d))
    top = ct.full((tm, 1), -math.inf, dtype=ct.float32)
    total = ct.full((tm, 1), 0.0, dtype=ct.float32)
    acc = ct.full((tm, d), 0.0, dtype=ct.float32)
    for j in range(ct.num_tiles(K, axis=0, shape=(tn, d))):
        k = ct.transpose(ct.load(K, index=(j, 0), shape=(tn, d)))
        s = ct.mma(q, k, ct.full((tm, tn), 0.0, dtype=ct.float32)) * scale
        new = ct.maximum(top, ct.max(s, axis=-1, keepdims=True))
        p = ct.exp2(s - new)
        alpha = ct.exp2(top - new)
        total = total * alpha + ct.sum(p, axis=-1, keepdims=True)
        v = ct.load(V, index=(j, 0), shape=(tn, d))
        acc = ct.mma(ct.astype(p, Q.dtype), v, acc * alpha)
        top = new
    ct.store(Out, index=(row, 0), tile=ct.astype(acc / total, Out.dtype))


@ct.kernel
def gather_matmul(A, B, C, rows, tm: TM, tn: TN, tk: TK):
    """C = A[rows] @ B: gathered rows, the mixture-of-experts pattern."""
    row, col = ct.bid(0), ct.bid(1)
    picked = ct.load(rows, index=(row,), shape=(tm,))
    acc = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(A, axis=1, shape=(tm, tk))):
        cols = k * tk + ct.arange(tk, dtype=ct.int32)
        a = ct.gather(A, (picked[:, None], cols[None, :]))
        b = ct.load(B, index=(k, col), shape=(tk, tn))
        acc = ct.mma(a, b, acc)
    ct.store(C, index=(row, col), tile=ct.astype(acc, C.dtype))


def array(dtype, ndim=2):
    """A contiguous, 16-byte aligned array that aliases no other."""
    last, wide = (None,) * (ndim - 1) + (1,), (8,) * (ndim - 1) + (1,)
    return ArrayConstraint(
        dtype, ndim, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False,
        stride_constant=last, stride_divisible_by=wide, shape_divisible_by=(8,) * ndim, base_addr_divisible_by=16,
    )  # fmt: skip


HALF, BRAIN, BYTE = array(ct.float16), array(ct.bfloat16), array(ct.int8)
CASES = {
    "matmul": (matmul, [HALF, HALF, HALF], (128, 128, 64)),
    "matmul_bf16_256": (matmul, [BRAIN, BRAIN, BRAIN], (128, 256, 64)),
    "matmul_small": (matmul, [HALF, HALF, HALF], (64, 64, 32)),
    "matmul_fp8": (matmul, [array(ct.float8_e4m3fn), array(ct.float8_e4m3fn), HALF], (128, 128, 128)),
    "cast_matmul": (cast_matmul, [HALF, BYTE, HALF], (128, 128, 64)),
    "attention": (attention, [HALF] * 4 + [ScalarConstraint(ct.float32)], (128, 64, 64)),
    "attention_d128": (attention, [BRAIN] * 4 + [ScalarConstraint(ct.float32)], (128, 128, 128)),
    "gather_matmul": (gather_matmul, [HALF, HALF, HALF, array(ct.int32, 1)], (128, 128, 64)),
}

if __name__ == "__main__":
    kernel, parameters, constants = CASES[sys.argv[2]]
    signature = KernelSignature(
        [*parameters, *map(ConstantConstraint, constants)], CallingConvention.cutile_python_v1(), "kernel"
    )
    export_kernel(kernel, [signature], io.BytesIO(), gpu_code=sys.argv[1], output_format="cubin")
