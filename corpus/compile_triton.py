"""Compiles the kernels of kernels.py with one Triton wheel, without a GPU.

Run in its own interpreter: ``python -P compile_triton.py WHEEL_DIR OUT_DIR TABLE [NAME ...]``. TABLE is the module
with the KERNELS: kernels (the corpus), or farm.triton_variants, which stops at PTX because assembling costs most.
Prints one line a file: ``ok NAME.sm_90.ptx`` or ``failed NAME.sm_90.ptx REASON``.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def load_source(path: str) -> types.ModuleType:
    """Loads a kernel source so that its code objects carry the given relative path, the one the PTX will name."""
    name = "corpus_" + re.sub(r"\W", "_", path)
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), module.__dict__)
    return module


def compile_kernel(kernel: Any, arch: int) -> str:
    """Compiles one variant to PTX text.

    Raises whatever Triton raises where the language or the back end refuses the kernel.
    """
    triton = importlib.import_module("triton")
    compiler = importlib.import_module("triton.backends.compiler")
    function = getattr(load_source(kernel.source), kernel.entry)
    if kernel.gluon:
        source_class = importlib.import_module("triton.experimental.gluon._runtime").GluonASTSource
    else:
        source_class = importlib.import_module("triton.compiler").ASTSource
    names = list(function.arg_names)
    signature = {name: kernel.signature.get(name, "constexpr") for name in names}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in kernel.aligned}
    source = source_class(function, signature, constexprs=dict(kernel.constants), attrs=attrs)
    target = compiler.GPUTarget("cuda", arch, 32)
    return triton.compile(source, target=target, options={"num_warps": kernel.num_warps}).asm["ptx"]


def relative_files(text: str, wheel: Path) -> str:
    """Cuts machine paths out of ``.file`` directives: wheel files become relative to the wheel's folder."""
    text = text.replace(f'"{wheel}/', '"').replace(f'"{HERE}/', '"')
    return re.sub(r'(\.file\s+\d+ )"\./', r'\1"', text)


def main(arguments: list[str]) -> int:
    """Compiles into OUT_DIR; exit status 1 if any variant failed."""
    wheel, out = Path(arguments[0]).resolve(), Path(arguments[1]).resolve()
    wanted = set(arguments[3:])
    os.chdir(HERE)
    sys.path.insert(0, str(wheel))
    sys.path.append(str(HERE))
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-cache-")
    table = importlib.import_module(arguments[2])
    kernels = table.KERNELS
    if not getattr(table, "ASSEMBLE", True):
        backend = importlib.import_module("triton.backends.nvidia.compiler").CUDABackend
        backend.make_cubin = lambda *_: b""
    version = tuple(int(part) for part in importlib.import_module("triton").__version__.split(".")[:3])
    out.mkdir(parents=True, exist_ok=True)
    status = 0
    for kernel in kernels:
        if version < kernel.since or (wanted and kernel.name not in wanted):
            continue
        for arch in kernel.arches:
            name = f"{kernel.name}.sm_{arch}.ptx"
            try:
                text = compile_kernel(kernel, arch)
            except Exception as error:
                reason = " ".join(str(error.__cause__ or error).split())[-300:]
                print(f"failed {name} {type(error).__name__}: {reason}", flush=True)
                status = 1
                continue
            (out / name).write_text(relative_files(text, wheel), encoding="utf-8")
            print(f"ok {name}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
