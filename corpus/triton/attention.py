"""Attention forward in Triton: online softmax, K and V through pointers or through tensor descriptors."""

import triton
import triton.language as tl


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, length, stride, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """O = softmax(Q K^T) V for one head; K and V travel by pipelined ``cp.async``."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, HEAD)
    head = tl.program_id(1).to(tl.int64) * length * stride
    q = tl.load(q_ptr + head + rows[:, None] * stride + dims[None, :])
    top = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    for start in tl.range(0, length, BLOCK_N, num_stages=STAGES):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + head + keys[:, None] * stride + dims[None, :])
        scores = tl.dot(q, k.T) * scale
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        alpha = tl.exp2(top - new_top)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + head + keys[:, None] * stride + dims[None, :])
        acc = tl.dot(p.to(tl.float16), v, acc)
        top = new_top
    acc = acc / total[:, None]
    tl.store(o_ptr + head + rows[:, None] * stride + dims[None, :], acc.to(tl.float16))


@triton.jit
def tma_attention(
    q_desc, k_desc, v_desc, o_desc, length, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """O = softmax(Q K^T) V for one head; every tile travels by TMA."""
    row = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1) * length
    q = q_desc.load([base + row, 0])
    top = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    for start in tl.range(0, length, BLOCK_N, num_stages=STAGES):
        k = k_desc.load([base + start, 0])
        scores = tl.dot(q, k.T) * scale
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        alpha = tl.exp2(top - new_top)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = v_desc.load([base + start, 0])
        acc = tl.dot(p.to(tl.float16), v, acc)
        top = new_top
    acc = acc / total[:, None]
    o_desc.store([base + row, 0], acc.to(tl.float16))
