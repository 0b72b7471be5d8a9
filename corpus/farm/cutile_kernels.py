"""Compiles cuTile kernels without a GPU and keeps the PTX: ``python cutile_kernels.py OUT TOOLS [WORD]``.

The tile compiler hands PTX to the ptxas beside it; a wrapper in its place keeps a copy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Farm, environment, install

VERSION = "1.7.0"
COMPILER = ("nvidia-cuda-tileiras==13.5.37", "nvidia-cuda-nvcc==13.5.37", "nvidia-nvvm==13.5.37")
CASES = (
    "matmul", "matmul_bf16_256", "matmul_small", "matmul_fp8", "cast_matmul", "attention", "attention_d128",
    "gather_matmul",
)  # fmt: skip
ARCHES = ("sm_90", "sm_100", "sm_120")
WRAPPER = """#!/bin/sh
# Keeps a copy of every PTX file it is given, then assembles it.
for argument; do
  case "$argument" in *.ptx) [ -n "$PTX_CAPTURE" ] && cp "$argument" "$PTX_CAPTURE/";; esac
done
exec "$(dirname "$0")/ptxas.real" "$@"
"""


def compiler(tools: Path) -> Path:
    """Folder of the tile compiler with the wrapped ptxas."""
    folder = install(COMPILER, tools / "tileiras") / "nvidia" / "cu13" / "bin"
    ptxas, real = folder / "ptxas", folder / "ptxas.real"
    if not real.is_file():
        ptxas.rename(real)
    ptxas.write_text(WRAPPER, encoding="utf-8")
    for program in (ptxas, real, folder / "tileiras"):
        program.chmod(0o755)
    return folder


def compile_case(python: Path, binaries: Path, arch: str, case: str) -> str:
    """PTX of one case; raises RuntimeError with the end of the output if none was assembled."""
    with tempfile.TemporaryDirectory() as capture:
        variables = {"PTX_CAPTURE": capture, "PATH": f"{binaries}:{os.environ['PATH']}", "HOME": capture}
        command = ["nice", "-n", "10", str(python), str(Path(__file__).with_name("cutile_sources.py")), arch, case]
        result = subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=600
        )
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in Path(capture).glob("*.ptx")]
    texts = [text for text in texts if ".entry" in text]
    if not texts:
        raise RuntimeError(result.stderr[-400:])
    return texts[0]


def main() -> int:
    """Command line."""
    out, tools = Path(sys.argv[1]), Path(sys.argv[2])
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    python = environment((f"cuda-tile=={VERSION}",), tools / "cutile")
    binaries = compiler(tools)
    farm = Farm(out, f"cutile-{VERSION}")
    for case in CASES:
        for arch in ARCHES:
            name = f"{case}.{arch}"
            if word not in name or farm.has(name):
                continue
            try:
                text = compile_case(python, binaries, arch, case)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                farm.fail(name, error)
                continue
            farm.add(name, text, f"cuda-tile {VERSION}, {COMPILER[0]}: {case}")
    return farm.close()


if __name__ == "__main__":
    sys.exit(main())
