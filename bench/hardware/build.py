"""Compiles the kernels of this folder to PTX, each without a fence and with the fence a person would write.

    python bench/hardware/build.py [--check]

Needs nvcc (CUDA 13.0 gave the committed files). `--check` writes nothing and fails if a committed file differs.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FLAGS = ("-gencode=arch=compute_90a,code=compute_90a", "-O3", "-std=c++17", "-ptx")
VARIANTS = {"nofence": (), "fence": ("-DFENCE",)}


def compile_kernel(nvcc: str, source: Path, defines: tuple[str, ...]) -> bytes:
    """PTX of one source file; it names no path, so that it is the same on every machine."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.ptx"
        subprocess.run([nvcc, *FLAGS, *defines, "-o", out, source.name], cwd=source.parent, check=True)
        return out.read_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        sys.exit("nvcc is not on PATH")
    different = 0
    for source in sorted((HERE / "kernels").glob("*.cu")):
        for variant, defines in VARIANTS.items():
            target = HERE / "ptx" / f"{source.stem}.{variant}.sm_90.ptx"
            text = compile_kernel(nvcc, source, defines)
            if not arguments.check:
                target.write_bytes(text)
            elif not target.is_file() or target.read_bytes() != text:
                print(f"{target.name} is not what {source.name} gives")
                different += 1
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
