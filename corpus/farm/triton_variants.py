"""Variants of the corpus kernels for the farm: other element types, tiles, depths, warp counts and targets."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from kernels import KERNELS as CORPUS
from kernels import Kernel

ASSEMBLE = False
"""The compiler stops at PTX."""
ARCHES = (90, 100, 120)
_BASE = {kernel.name: kernel for kernel in CORPUS}
_TILES = ((128, 256, 64), (64, 64, 64), (64, 128, 128))


def _typed(kernel: Kernel, old: str, new: str) -> dict[str, str]:
    return {name: kind.replace(old, new) for name, kind in kernel.signature.items()}


def _gemms() -> list[Kernel]:
    """Pointer, cast and device-descriptor GEMMs over tiles, depths and warps."""
    made: list[Kernel] = []
    for name, tile, stages, warps in product(("pointer_gemm", "cast_gemm", "tma_gemm"), _TILES, (2, 4), (4, 8)):
        m, n, k = tile
        constants = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "STAGES": stages}
        if (m == 64 and warps == 8) or (n == 256 and warps == 4):
            continue
        stem = f"{name}_{m}x{n}x{k}_{stages}stages_{warps}warps"
        made.append(replace(_BASE[name], name=stem, constants=constants, num_warps=warps, arches=ARCHES))
    return made


def _element_types() -> list[Kernel]:
    """bf16, FP8 and tf32 inputs."""
    pointer, cast = _BASE["pointer_gemm"], _BASE["cast_gemm"]
    inputs = {"a_ptr", "b_ptr"}
    made = [
        replace(
            pointer,
            name="pointer_gemm_bf16",
            signature={name: "*bf16" if name in inputs else kind for name, kind in pointer.signature.items()},
            arches=ARCHES,
        )
    ]
    made += [
        replace(
            pointer,
            name=f"pointer_gemm_{label}",
            signature={name: f"*{label}" if name in inputs else kind for name, kind in pointer.signature.items()},
            arches=ARCHES,
        )
        for label in ("fp8e4nv", "fp8e5", "fp32")
    ]
    made += [replace(cast, name="cast_gemm_u8", signature=_typed(cast, "*i8", "*u8"), arches=ARCHES)]
    return made  # fmt: skip


def _attention() -> list[Kernel]:
    """Attention over head sizes, tiles and depths."""
    made: list[Kernel] = []
    for head, keys, stages, warps in product((64, 128), (32, 128), (2, 3), (4,)):
        constants = {"BLOCK_M": 128, "BLOCK_N": keys, "HEAD": head, "STAGES": stages}
        stem = f"attention_d{head}_{keys}keys_{stages}stages_{warps}warps"
        made.append(replace(_BASE["attention"], name=stem, constants=constants, num_warps=warps, arches=ARCHES))
    return made


KERNELS: tuple[Kernel, ...] = (*_gemms(), *_element_types(), *_attention())
