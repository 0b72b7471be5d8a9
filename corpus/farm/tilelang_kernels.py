"""Compiles TileLang kernels without a GPU: ``python tilelang_kernels.py OUT TOOLS [WORD]``.

The kernels are in tilelang_sources.py; TileLang prints CUDA, nvcc 13.0 makes PTX of it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from common import Farm, compile_cuda, environment, nvcc

VERSION = "0.1.15"
PACKAGES = ("torch", f"tilelang=={VERSION}")
HERE = Path(__file__).resolve().parent
_SIZE = (1024, 1024, 1024)
CASES: tuple[tuple[str, str, tuple[object, ...]], ...] = (
    ("gemm", "gemm", (*_SIZE, (128, 128, 64), 3, 256, "float16", False)),
    ("gemm_nt", "gemm", (*_SIZE, (128, 128, 64), 3, 256, "float16", True)),
    ("gemm_4stages", "gemm", (*_SIZE, (128, 256, 64), 4, 256, "float16", True)),
    ("gemm_1stage", "gemm", (*_SIZE, (128, 128, 64), 1, 128, "float16", True)),
    ("gemm_128threads", "gemm", (*_SIZE, (64, 128, 64), 2, 128, "float16", True)),
    ("gemm_bf16", "gemm", (*_SIZE, (128, 128, 64), 3, 256, "bfloat16", True)),
    ("gemm_fp8", "gemm", (*_SIZE, (128, 128, 128), 3, 256, "float8_e4m3fn", True)),
    ("gemm_odd", "gemm", (1000, 1000, 1000, (128, 128, 64), 3, 256, "float16", False)),
    ("cast_gemm", "cast_gemm", (*_SIZE, (128, 128, 64), 3, 256)),
    ("cast_gemm_1stage", "cast_gemm", (*_SIZE, (64, 128, 64), 1, 128)),
    ("attention", "attention", (8, 1024, 64, (128, 64), 2, 256, False)),
    ("attention_causal", "attention", (8, 1024, 128, (128, 128), 2, 256, True)),
    ("attention_1stage", "attention", (8, 1024, 64, (64, 64), 1, 128, True)),
    ("double_gemm", "double_gemm", (*_SIZE, (128, 128, 64), 256)),
    ("scale_rows", "scale_rows", (1024, 1024, (64, 128), 128)),
)
ARCHES = ("90a", "100a", "120a")


def emit(python: Path, arch: str, function: str, arguments: tuple[object, ...]) -> str:
    """CUDA source of one kernel; raises RuntimeError with the end of TileLang's output if it refuses."""
    command = ["nice", "-n", "10", str(python), str(HERE / "tilelang_emit.py"), f"sm_{arch}", function, repr(arguments)]
    result = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False, timeout=600)
    if result.returncode:
        raise RuntimeError(result.stderr[-400:])
    return result.stdout


def main() -> int:
    """Command line."""
    out, tools = Path(sys.argv[1]), Path(sys.argv[2])
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    python = environment(PACKAGES, tools / "tilelang")
    package = next((tools / "tilelang").glob("lib/python3*/site-packages/tilelang"))
    flags = [
        "-std=c++17",
        "--expt-relaxed-constexpr",
        f"-I{package / 'src'}",
        f"-I{package / '3rdparty/cutlass/include'}",
    ]
    farm = Farm(out, f"tilelang-{VERSION}")
    for case, function, arguments in CASES:
        for arch in ARCHES:
            name = f"{case}.sm_{arch}"
            if word not in name or farm.has(name):
                continue
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder) / f"{case}.cu"
                try:
                    source.write_text(emit(python, arch, function, arguments), encoding="utf-8")
                    text = compile_cuda(nvcc(tools), source, arch, flags)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    farm.fail(name, error)
                    continue
                farm.add(name, text, f"tilelang {VERSION}: {function}{arguments}, nvcc 13.0")
    return farm.close()


if __name__ == "__main__":
    sys.exit(main())
