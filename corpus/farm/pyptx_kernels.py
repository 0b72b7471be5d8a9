"""Prints the example kernels of the registry package pyptx, without a GPU: ``python pyptx_kernels.py OUT TOOLS``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

from common import Farm, install

VERSION = "0.1.1"
CASES: tuple[tuple[str, str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("ampere.gemm", "build_gemm", (256, 256, 256), {}),
    ("ampere.gemm_pipelined", "build_gemm_pipelined", (256, 256, 256), {}),
    ("ampere.gemm_highperf_ampere", "build_gemm_highperf", (256, 256, 256), {}),
    ("ampere.layer_norm", "build_layer_norm", (128, 1024), {}),
    ("ampere.rms_norm", "build_rms_norm", (128, 1024), {}),
    ("ampere.softmax", "build_softmax", (128, 1024), {}),
    ("ampere.swiglu", "build_fused_silu_mul", (128, 1024), {}),
    ("hopper.gemm_highperf_hopper", "gemm_warp_specialized", (), {"M": 4096, "N": 4096, "K": 4096}),
    ("hopper.grouped_gemm", "build_grouped_gemm", (4, 256, 256, 256), {}),
    ("hopper.layer_norm", "build_layer_norm", (128, 1024), {}),
    ("hopper.rms_norm", "build_rms_norm", (128, 1024), {}),
    ("hopper.softmax", "build_softmax", (128, 1024), {}),
    ("hopper.swiglu", "build_fused_silu_mul", (128, 1024), {}),
    ("hopper.experimental.flash_attention_hopper", "build_flash_attention_hopper", (128, 512), {}),
    ("hopper.experimental.flash_attention_parallel", "build_flash_attention_parallel", (128, 512), {}),
    ("hopper.experimental.flash_attention_wgmma_kloop", "build_flash_attention_kloop", (512,), {}),
    ("blackwell.gemm_highperf_blackwell", "build_gemm", (512, 512, 512), {}),
    ("blackwell.gemm_highperf_blackwell", "build_gemm_persistent", (512, 512, 512), {}),
    ("blackwell.gemm_highperf_blackwell", "build_gemm_2sm", (512, 512, 512), {}),
    ("blackwell.gemm_experimental_blackwell", "build_gemm_no_tma_debug", (128, 128, 128), {}),
    ("blackwell.grouped_gemm", "build_grouped_gemm", (4, 256, 256, 256), {}),
    ("blackwell.layer_norm", "build_layer_norm", (128, 1024), {}),
    ("blackwell.rms_norm", "build_rms_norm", (128, 1024), {}),
    ("blackwell.swiglu", "build_fused_silu_mul", (128, 1024), {}),
    ("blackwell.tcgen05_accum_probe", "build", (), {}),
    ("blackwell.tcgen05_ld_phase_probe", "build", (), {"use_shift": False}),
    ("blackwell.tcgen05_ld_register_probe", "build", (), {}),
    ("blackwell.tcgen05_mma_probe", "build", (), {}),
    ("blackwell.tcgen05_roundtrip", "build", (), {}),
    ("blackwell.tcgen05_smoke", "build_mma_only", (), {}),
    ("blackwell.tcgen05_smoke", "build_alloc_only", (), {}),
    ("blackwell.tcgen05_smoke", "build_ld_only", (), {}),
)


def print_kernel(module: str, entry: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> str:
    """PTX text of one example; raises what pyptx raises."""
    made: Any = getattr(importlib.import_module(f"pyptx.examples.{module}"), entry)
    if hasattr(made, "ptx"):
        return str(made.ptx(**options))
    kernel: Any = made(*arguments, **options)
    if isinstance(kernel, tuple):
        kernel = cast(Any, kernel)[0]
    return str(kernel.ptx())


def main() -> int:
    """Command line."""
    out, tools = Path(sys.argv[1]), Path(sys.argv[2])
    sys.path.insert(0, str(install([f"pyptx=={VERSION}"], tools / f"pyptx-{VERSION}")))
    for name in ("jax", "jax.numpy", "torch", "numpy"):
        sys.modules.setdefault(name, MagicMock())
    farm = Farm(out, f"pyptx-{VERSION}")
    for module, entry, arguments, options in CASES:
        name = f"{module.replace('.', '_')}.{entry}"
        try:
            text = print_kernel(module, entry, arguments, options)
        except Exception as error:
            farm.fail(name, error)
            continue
        farm.add(name, text, f"pyptx {VERSION}: {entry}{arguments} {options}")
    return farm.close()


if __name__ == "__main__":
    sys.exit(main())
