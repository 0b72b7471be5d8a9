"""Compiles the examples of the registry package nvidia-cutlass: ``python cutlass_examples.py OUT TOOLS [WORD]``.

Each file instantiates collective GEMMs of one kind (warp-specialised, cooperative, FP8, mixed input, grouped,
block-scaled, sparse, attention). A file costs one to ten minutes. WORD restricts to files whose name holds it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from common import Farm, compile_cuda, install, nvcc

VERSION = "4.2.0.0"
CURAND = "10.4.0.35"
_BLOCKWISE = "67_hopper_fp8_warp_specialized_gemm_with_blockwise_scaling"
EXAMPLES: tuple[tuple[str, str], ...] = (
    ("cute/tutorial/hopper/wgmma_sm90.cu", "90a"),
    ("cute/tutorial/hopper/wgmma_tma_sm90.cu", "90a"),
    ("cute/tutorial/blackwell/01_mma_sm100.cu", "100a"),
    ("cute/tutorial/blackwell/02_mma_tma_sm100.cu", "100a"),
    ("cute/tutorial/blackwell/03_mma_tma_multicast_sm100.cu", "100a"),
    ("cute/tutorial/blackwell/04_mma_tma_2sm_sm100.cu", "100a"),
    ("cute/tutorial/blackwell/05_mma_tma_epi_sm100.cu", "100a"),
    ("48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm.cu", "90a"),
    ("54_hopper_fp8_warp_specialized_gemm/54_hopper_fp8_warp_specialized_gemm.cu", "90a"),
    ("50_hopper_gemm_with_epilogue_swizzle/50_hopper_gemm_with_epilogue_swizzle.cu", "90a"),
    ("70_blackwell_gemm/70_blackwell_fp16_gemm.cu", "100a"),
    ("70_blackwell_gemm/70_blackwell_fp8_gemm.cu", "100a"),
    ("79_blackwell_geforce_gemm/79a_blackwell_geforce_nvfp4_bf16_gemm.cu", "120a"),
    ("55_hopper_mixed_dtype_gemm/55_hopper_int4_bf16_gemm.cu", "90a"),
    ("57_hopper_grouped_gemm/57_hopper_grouped_gemm.cu", "90a"),
    ("72_blackwell_narrow_precision_gemm/72b_blackwell_nvfp4_nvfp4_gemm.cu", "100a"),
    ("61_hopper_gemm_with_topk_and_softmax/61_hopper_gemm_with_topk_and_softmax.cu", "90a"),
    ("62_hopper_sparse_gemm/62_hopper_sparse_gemm.cu", "90a"),
    ("63_hopper_gemm_with_weight_prefetch/63_hopper_gemm_with_weight_prefetch.cu", "90a"),
    ("56_hopper_ptr_array_batched_gemm/56_hopper_ptr_array_batched_gemm.cu", "90a"),
    (f"{_BLOCKWISE}/{_BLOCKWISE}.cu", "90a"),
    ("75_blackwell_grouped_gemm/75_blackwell_grouped_gemm.cu", "100a"),
    ("73_blackwell_gemm_preferred_cluster/blackwell_gemm_preferred_cluster.cu", "100a"),
    ("74_blackwell_gemm_streamk/blackwell_gemm_streamk.cu", "100a"),
    ("86_blackwell_mixed_dtype_gemm/86_blackwell_mixed_dtype.cu", "100a"),
    ("79_blackwell_geforce_gemm/79d_blackwell_geforce_nvfp4_grouped_gemm.cu", "120a"),
    ("51_hopper_gett/51_hopper_gett.cu", "90a"),
    ("53_hopper_gemm_permute/53_hopper_gemm_permute.cu", "90a"),
    ("52_hopper_gather_scatter_fusion/52_hopper_gather_scatter_fusion.cu", "90a"),
    ("83_blackwell_sparse_gemm/83_blackwell_sparse_gemm.cu", "100a"),
    ("71_blackwell_gemm_with_collective_builder/71_blackwell_gemm_with_collective_builder.cu", "100a"),
    ("49_hopper_gemm_with_collective_builder/49_collective_builder.cu", "90a"),
    ("88_hopper_fmha/88_hopper_fmha.cu", "90a"),
    ("77_blackwell_fmha/77_blackwell_fmha.cu", "100a"),
)
FLAGS = ("-std=c++17", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-DNDEBUG")


def main() -> int:
    """Command line."""
    out, tools = Path(sys.argv[1]), Path(sys.argv[2])
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    root = install([f"nvidia-cutlass=={VERSION}"], tools / f"cutlass-{VERSION}") / "cutlass_library" / "source"
    random = install([f"nvidia-curand=={CURAND}"], tools / f"curand-{CURAND}") / "nvidia" / "cu13" / "include"
    includes = [f"-I{root / part}" for part in ("include", "tools/util/include", "examples/common")]
    includes.append(f"-I{random}")
    farm = Farm(out, f"cutlass-{VERSION}")
    for path, arch in EXAMPLES:
        source = root / "examples" / path
        folder = source.parent
        if word not in path or farm.has(f"{source.stem}.sm_{arch}"):
            continue
        try:
            text = compile_cuda(nvcc(tools), source, arch, [*FLAGS, *includes, f"-I{folder}"])
        except RuntimeError as error:
            farm.fail(path, error)
            continue
        farm.add(f"{source.stem}.sm_{arch}", text, f"nvcc 13.0, nvidia-cutlass {VERSION}, examples/{path}")
    return farm.close()


if __name__ == "__main__":
    sys.exit(main())
