"""TileLang kernels of our own, parametrised; read by tilelang_kernels.py. Importing needs tilelang."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
from typing import Any

import tilelang.language as T


def gemm(
    m: int, n: int, k: int, block: tuple[int, int, int], stages: int, threads: int, dtype: str, transposed: bool
) -> Any:
    """C = A @ B (or A @ B^T), pipelined copies."""
    bm, bn, bk = block

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype), B: T.Tensor((n, k) if transposed else (k, n), dtype), C: T.Tensor((m, n), "float16")
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bm, bk), dtype)
            B_s = T.alloc_shared((bn, bk) if transposed else (bk, bn), dtype)
            C_s = T.alloc_shared((bm, bn), "float16")
            acc = T.alloc_fragment((bm, bn), "float32")
            T.clear(acc)
            for i in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[by * bm, i * bk], A_s)
                if transposed:
                    T.copy(B[bx * bn, i * bk], B_s)
                else:
                    T.copy(B[i * bk, bx * bn], B_s)
                T.gemm(A_s, B_s, acc, transpose_B=transposed)
            T.copy(acc, C_s)
            T.copy(C_s, C[by * bm, bx * bn])

    return main


def cast_gemm(m: int, n: int, k: int, block: tuple[int, int, int], stages: int, threads: int) -> Any:
    """C = A @ cast(B)^T, B is int8 and converted in registers."""
    bm, bn, bk = block

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((n, k), "int8"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bm, bk), "float16")
            B_s = T.alloc_shared((bn, bk), "int8")
            B_f = T.alloc_fragment((bn, bk), "int8")
            W_f = T.alloc_fragment((bn, bk), "float16")
            W_s = T.alloc_shared((bn, bk), "float16")
            acc = T.alloc_fragment((bm, bn), "float32")
            T.clear(acc)
            for i in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                T.copy(A[by * bm, i * bk], A_s)
                T.copy(B[bx * bn, i * bk], B_s)
                T.copy(B_s, B_f)
                for r, c in T.Parallel(bn, bk):
                    W_f[r, c] = T.cast(B_f[r, c], "float16")
                T.copy(W_f, W_s)
                T.gemm(A_s, W_s, acc, transpose_B=True)
            T.copy(acc, C[by * bm, bx * bn])

    return main


def attention(
    heads: int, length: int, dim: int, block: tuple[int, int], stages: int, threads: int, causal: bool
) -> Any:
    """Out = softmax(Q K^T) V, online softmax."""
    bm, bn = block
    shape = (1, length, heads, dim)
    scale = 1.44269504 / dim**0.5

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"), V: T.Tensor(shape, "float16"),
        Out: T.Tensor(shape, "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(length, bm), heads, threads=threads) as (bx, by):
            Q_s = T.alloc_shared((bm, dim), "float16")
            K_s = T.alloc_shared((bn, dim), "float16")
            V_s = T.alloc_shared((bn, dim), "float16")
            O_s = T.alloc_shared((bm, dim), "float16")
            S = T.alloc_fragment((bm, bn), "float32")
            P = T.alloc_fragment((bm, bn), "float16")
            acc = T.alloc_fragment((bm, dim), "float32")
            top = T.alloc_fragment((bm,), "float32")
            old = T.alloc_fragment((bm,), "float32")
            alpha = T.alloc_fragment((bm,), "float32")
            part = T.alloc_fragment((bm,), "float32")
            total = T.alloc_fragment((bm,), "float32")
            T.copy(Q[0, bx * bm : (bx + 1) * bm, by, :], Q_s)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity("float32"))
            steps = T.ceildiv((bx + 1) * bm, bn) if causal else T.ceildiv(length, bn)
            for j in T.Pipelined(steps, num_stages=stages):
                T.copy(K[0, j * bn : (j + 1) * bn, by, :], K_s)
                if causal:
                    for r, c in T.Parallel(bm, bn):
                        S[r, c] = T.if_then_else(bx * bm + r >= j * bn + c, 0, -T.infinity("float32"))
                else:
                    T.clear(S)
                T.gemm(Q_s, K_s, S, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(top, old)
                T.reduce_max(S, top, dim=1, clear=False)
                for r in T.Parallel(bm):
                    alpha[r] = T.exp2(old[r] * scale - top[r] * scale)
                for r, c in T.Parallel(bm, bn):
                    S[r, c] = T.exp2(S[r, c] * scale - top[r] * scale)
                T.reduce_sum(S, part, dim=1)
                for r in T.Parallel(bm):
                    total[r] = total[r] * alpha[r] + part[r]
                T.copy(S, P)
                for r, c in T.Parallel(bm, dim):
                    acc[r, c] *= alpha[r]
                T.copy(V[0, j * bn : (j + 1) * bn, by, :], V_s)
                T.gemm(P, V_s, acc, policy=T.GemmWarpPolicy.FullRow)
            for r, c in T.Parallel(bm, dim):
                acc[r, c] /= total[r]
            T.copy(acc, O_s)
            T.copy(O_s, Out[0, bx * bm : (bx + 1) * bm, by, :])

    return main


def double_gemm(m: int, n: int, k: int, block: tuple[int, int, int], threads: int) -> Any:
    """D = (A @ B) @ C; the intermediate result is staged in shared memory by ordinary stores."""
    bm, bn, bk = block

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"), B: T.Tensor((k, bn), "float16"), C: T.Tensor((bn, n), "float16"),
        D: T.Tensor((m, n), "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bm, bk), "float16")
            B_s = T.alloc_shared((bk, bn), "float16")
            M_s = T.alloc_shared((bm, bn), "float16")
            C_s = T.alloc_shared((bn, bn), "float16")
            first = T.alloc_fragment((bm, bn), "float32")
            second = T.alloc_fragment((bm, bn), "float32")
            T.clear(first)
            T.clear(second)
            for i in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[by * bm, i * bk], A_s)
                T.copy(B[i * bk, 0], B_s)
                T.gemm(A_s, B_s, first)
            T.copy(first, M_s)
            T.copy(C[0, bx * bn], C_s)
            T.gemm(M_s, C_s, second)
            T.copy(second, D[by * bm, bx * bn])

    return main


def scale_rows(m: int, n: int, block: tuple[int, int], threads: int) -> Any:
    """Y = 2 X, staged through shared memory both ways."""
    bm, bn = block

    @T.prim_func
    def main(X: T.Tensor((m, n), "float16"), Y: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            X_s = T.alloc_shared((bm, bn), "float16")
            T.copy(X[by * bm, bx * bn], X_s)
            for r, c in T.Parallel(bm, bn):
                X_s[r, c] = X_s[r, c] * T.float16(2)
            T.copy(X_s, Y[by * bm, bx * bn])

    return main
