"""Prints the CUDA source that TileLang makes of one kernel: ``python tilelang_emit.py ARCH FUNCTION ARGUMENTS``.

Run by tilelang_kernels.py in an environment with tilelang; ARGUMENTS is a Python literal tuple.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
import ast
import sys

import tilelang
import tilelang_sources

target, function, arguments = sys.argv[1:4]
kernel = getattr(tilelang_sources, function)(*ast.literal_eval(arguments))
chosen = tilelang.tvm.target.Target({"kind": "cuda", "arch": target})
with chosen:
    source = tilelang.lower(kernel, target=chosen).kernel_source
print("// tilelang source")
print(source)
