"""A program that compiles corpus kernels for sm_90 with the Triton on its path, and prints what it got as JSON.

    triton_program.py KERNEL ...     compiles through triton.compile
    triton_program.py --jit          compiles one kernel through the JIT, on a driver made up here
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent.parent / "corpus"


def compile_kernel(name: str) -> Any:
    """The compiled kernel of corpus/kernels.py."""
    sys.path.append(str(CORPUS))
    os.chdir(CORPUS)
    kernels = importlib.import_module("kernels")
    loading = importlib.import_module("compile_triton")
    triton: Any = importlib.import_module("triton")
    backend: Any = importlib.import_module("triton.backends.compiler")
    kernel = next(kernel for kernel in kernels.KERNELS if kernel.name == name)
    function = getattr(loading.load_source(kernel.source), kernel.entry)
    if kernel.gluon:
        source_class = importlib.import_module("triton.experimental.gluon._runtime").GluonASTSource
    else:
        source_class = importlib.import_module("triton.compiler").ASTSource
    names = list(function.arg_names)
    signature = {name: kernel.signature.get(name, "constexpr") for name in names}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in kernel.aligned}
    source = source_class(function, signature, constexprs=dict(kernel.constants), attrs=attrs)
    target = backend.GPUTarget("cuda", 90, 32)
    return triton.compile(source, target=target, options={"num_warps": kernel.num_warps})


def facts(kernel: Any) -> dict[str, Any]:
    """Fences in the PTX and in the machine code, and the cache entry."""
    return {
        "hash": kernel.hash,
        "ptx": kernel.asm["ptx"].count("fence.proxy.async"),
        "sass": machine_fences(kernel.asm["cubin"]),
        "note": json.loads(getattr(kernel.metadata, "ptxfence", "null")),
    }


def machine_fences(cubin: bytes) -> int:
    """FENCE.VIEW.ASYNC instructions, as Triton's own disassembler shows them."""
    root = Path(importlib.import_module("triton").__path__[0])
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(root / "backends" / "nvidia" / "bin" / "cuobjdump"), "-sass", file.name]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text.count("FENCE.VIEW.ASYNC")


class FakeDriver:
    """As much of a driver as the JIT needs to compile; it cannot launch."""

    def get_current_target(self) -> Any:
        return importlib.import_module("triton.backends.compiler").GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> str:
        return "cuda"


def use_fake_driver() -> None:
    runtime: Any = importlib.import_module("triton.runtime.driver")
    runtime.driver.set_active(FakeDriver())


def main(words: list[str]) -> None:
    print(json.dumps({name: facts(compile_kernel(name)) for name in words}))


if __name__ == "__main__":
    main(sys.argv[1:])
