"""Rebuilds corpus/ptx from the sources beside it, with compilers from the package registry; needs no GPU.

    python corpus/build.py                      # everything that is committed
    python corpus/build.py --all-triton --out build/farm --tools build/tools   # every Triton release, every kernel

The output is deterministic: the same compiler release gives the same bytes wherever it is run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from annotate import annotate  # noqa: E402
from kernels import KERNELS  # noqa: E402

TRITON_RELEASES = ("3.5.1", "3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0")
COMMITTED: dict[str, frozenset[str]] = {
    "3.7.0": frozenset(kernel.name for kernel in KERNELS) - {"pointer_gemm_8warps"},
    "3.7.1": frozenset({"pointer_gemm", "attention", "store_tile_nofence", "ws_store_nofence"}),
    "3.9.0": frozenset(kernel.name for kernel in KERNELS) - {"pointer_gemm_8warps"},
}
"""Triton releases and kernels kept in the repository: last without, first with the fences, newest."""
NVCC_RELEASE = "13.0"
NVCC_PACKAGES = (
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-cuda-crt==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-runtime==13.0.88",
    "nvidia-cuda-cccl==13.0.85",
)


def install(packages: Iterable[str], target: Path) -> None:
    """Installs packages, without their dependencies, into a folder of their own unless it exists.

    Raises subprocess.CalledProcessError if pip fails.
    """
    if target.is_dir():
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), *packages]
    subprocess.run(command, check=True)


def build_triton(release: str, names: Iterable[str], out: Path, tools: Path) -> int:
    """Compiles the named kernels with one Triton release into OUT/triton-RELEASE; returns how many failed."""
    wheel = tools / f"triton-{release}"
    install([f"triton=={release}"], wheel)
    folder = out / f"triton-{release}"
    command = [sys.executable, "-P", str(HERE / "compile_triton.py"), str(wheel), str(folder), "kernels"]
    command += sorted(names)
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    version = tuple(int(part) for part in release.split("."))
    failed = 0
    for line in result.stdout.splitlines():
        status, name = line.split(" ", 2)[:2]
        if status != "ok":
            print(f"triton {release}: {line}", file=sys.stderr)
            failed += 1
            continue
        path = folder / name
        path.write_text(annotate(path.read_text(encoding="utf-8"), path.stem, version), encoding="utf-8")
    return failed


def build_cuda(out: Path, tools: Path) -> int:
    """Compiles corpus/cuda with nvcc into OUT/nvcc-RELEASE, each with and without -DFENCE; returns how many failed."""
    root = tools / f"nvcc-{NVCC_RELEASE}"
    install(NVCC_PACKAGES, root)
    nvcc = root / "nvidia" / "cu13" / "bin" / "nvcc"
    nvcc.chmod(0o755)
    folder = out / f"nvcc-{NVCC_RELEASE}"
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for source in sorted((HERE / "cuda").glob("*.cu")):
        for variant, defines in (("nofence", []), ("fence", ["-DFENCE"])):
            path = folder / f"{source.stem}.{variant}.sm_90.ptx"
            command = [str(nvcc), "-std=c++17", "-arch=compute_90a", "-O3", "-lineinfo", "-ptx", *defines]
            command += ["-o", str(path), f"cuda/{source.name}"]
            if subprocess.run(command, cwd=HERE, check=False).returncode:
                failed += 1
                continue
            text = relative_files(path.read_text(encoding="utf-8"))
            path.write_text(annotate(text, path.stem, (13, 0)), encoding="utf-8")
    return failed


def relative_files(text: str) -> str:
    """Cuts machine paths out of the ``.file`` directives of nvcc: sources below corpus/, headers below include/."""
    text = text.replace(f'"{HERE}/', '"')
    return re.sub(r'(\.file\s+\d+ )"/[^"]*?/include/', r'\1"include/', text)


def main() -> int:
    """Command line; exit status 1 if any kernel failed to compile."""
    parser = argparse.ArgumentParser(description="Rebuild the compiled corpus.")
    parser.add_argument("--out", type=Path, default=HERE / "ptx", help="output folder (default: corpus/ptx)")
    parser.add_argument(
        "--tools", type=Path, default=HERE.parent / "build" / "tools", help="where compilers are installed"
    )
    parser.add_argument(
        "--all-triton", action="store_true", help="every kernel with every release, not the committed few"
    )
    parser.add_argument("--only", choices=("triton", "cuda"), help="one producer only")
    options = parser.parse_args()
    everything = {release: frozenset(kernel.name for kernel in KERNELS) for release in TRITON_RELEASES}
    failed = 0
    if options.only != "cuda":
        for release, names in (everything if options.all_triton else COMMITTED).items():
            failed += build_triton(release, names, options.out, options.tools)
    if options.only != "triton":
        failed += build_cuda(options.out, options.tools)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
