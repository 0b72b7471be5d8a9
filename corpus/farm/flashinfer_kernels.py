"""Compiles CUDA kernels of the registry package flashinfer-python: ``python flashinfer_kernels.py OUT TOOLS [N]``.

Takes the first N (default 3) kernels of every family below ``data/csrc`` that use the copy engine or the tensor cores.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from common import Farm, compile_cuda, install, nvcc

VERSION = "0.7.4"
ASYNC = re.compile(r"cp\.async\.bulk|fence\.proxy|wgmma\.|tcgen05\.")


def architectures(source: Path, text: str) -> tuple[str, ...]:
    """Targets to try, likeliest first: the folder names some, the instructions decide the rest."""
    named = re.search(r"sm_?(90|100|103|107|120)a?(?![0-9])", str(source.parent.name) + source.name)
    if named:
        return (f"{named[1]}a",)
    if "tcgen05." in text:
        return ("100a", "103a")
    if "wgmma." in text:
        return ("90a",)
    return ("90a", "100a", "120a")


def select(root: Path, count: int) -> list[Path]:
    """The first `count` matching kernels of each folder, in name order."""
    chosen: list[Path] = []
    families: dict[Path, int] = {}
    for source in sorted(root.rglob("*_kernel.cu")):
        if families.get(source.parent, 0) >= count or not ASYNC.search(source.read_text(encoding="utf-8")):
            continue
        families[source.parent] = families.get(source.parent, 0) + 1
        chosen.append(source)
    return chosen


def main() -> int:
    """Command line."""
    out, tools = Path(sys.argv[1]), Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    data = install([f"flashinfer-python=={VERSION}"], tools / f"flashinfer-{VERSION}") / "flashinfer" / "data"
    flags = [
        "-std=c++17",
        "--expt-relaxed-constexpr",
        f"-I{data / 'csrc'}",
        f"-I{data / 'include'}",
        f"-I{data / 'cutlass' / 'include'}",
    ]
    farm = Farm(out, f"flashinfer-{VERSION}")
    for source in select(data / "csrc", count):
        name = str(source.relative_to(data / "csrc").with_suffix("")).replace("/", ".")
        error: Exception = RuntimeError("no target")
        targets = architectures(source, source.read_text(encoding="utf-8"))
        if any(farm.has(f"{name}.sm_{arch}") for arch in targets):
            continue
        for release, arch in ((release, arch) for release in ("13.0", "13.4") for arch in targets):
            try:
                text = compile_cuda(nvcc(tools, release), source, arch, flags, limit=300)
            except RuntimeError as failure:
                error = failure
                continue
            farm.add(f"{name}.sm_{arch}", text, f"nvcc {release}, flashinfer-python {VERSION}, csrc/{name}")
            break
        else:
            farm.fail(name, error)
    return farm.close()


if __name__ == "__main__":
    sys.exit(main())
