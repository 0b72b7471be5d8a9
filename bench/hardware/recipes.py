"""The recipes of docs/integrations.md, run on a GPU: each loads the unfenced transpose kernel patched, and checks it.

    python3 recipes.py [NAME ...]     cuda-core driver load nvrtc cupy numba

Prints one line each: right, WRONG, FAILED, or what is missing. Exit status 1 if one was wrong or failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent.parent / "corpus"
PTX = CORPUS / "ptx" / "nvcc-13.0" / "transpose_bulk_store.nofence.sm_90.ptx"
SOURCE = CORPUS / "cuda" / "transpose_bulk_store.cu"
NAME = "transpose_store"
TILES = 4096


def values() -> Any:
    return np.random.default_rng(5).integers(0, 2**31, (TILES, 64, 64), dtype=np.int32)


def launch(function: Any) -> int:
    """Launches a driver function; the number of wrong words."""
    from cuda.bindings import driver

    def call(result: tuple[Any, ...]) -> Any:
        if int(result[0]):
            raise RuntimeError(str(result[0]))
        return result[1] if len(result) > 1 else None

    tiles = values()
    out = np.full_like(tiles, -1)
    memory = [call(driver.cuMemAlloc(tiles.nbytes)) for _ in range(2)]
    for pointer, array in zip(memory, (tiles, out), strict=True):
        call(driver.cuMemcpyHtoD(pointer, array.ctypes.data, array.nbytes))
    arguments = [np.array([int(pointer)], np.uint64) for pointer in memory] + [np.array([TILES], np.int32)]
    addresses = np.array([argument.ctypes.data for argument in arguments], np.uint64)
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    sms = call(driver.cuDeviceGetAttribute(attribute, 0))
    call(driver.cuLaunchKernel(function, sms, 1, 1, 256, 1, 1, 0, 0, addresses.ctypes.data, 0))
    call(driver.cuCtxSynchronize())
    call(driver.cuMemcpyDtoH(out.ctypes.data, memory[1], out.nbytes))
    for pointer in memory:
        call(driver.cuMemFree(pointer))
    return int((out != tiles.transpose(0, 2, 1)).sum())


def context() -> Any:
    from cuda.bindings import driver

    driver.cuInit(0)
    driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
    return driver


def of_object_code(code: Any) -> int:
    driver = context()
    kernel = code.get_kernel(NAME)
    handle = int(getattr(kernel, "handle", None) or kernel._handle)
    return launch(driver.cuKernelGetFunction(driver.CUkernel(handle))[1])


def core() -> Any:
    try:
        from cuda.core import Device, ObjectCode, Program, ProgramOptions
    except ImportError:
        from cuda.core.experimental import Device, ObjectCode, Program, ProgramOptions
    Device(0).set_current()
    return ObjectCode, Program, ProgramOptions


def source() -> str:
    """The kernel's source without what NVRTC brings itself."""
    types = "using uint32_t = unsigned; using uint64_t = unsigned long;"
    return SOURCE.read_text().replace("#include <cstdint>", types)


def cuda_core() -> int:
    from ptxfence.integrations import loader

    _, program, options = core()
    compiled = program(source(), "c++", options(arch="sm_90a", std="c++17")).compile("ptx")
    return of_object_code(loader.patched(compiled))


def plain_driver() -> int:
    from ptxfence.integrations import loader

    driver = context()
    _, module = loader.cuModuleLoadData(PTX.read_bytes())
    return launch(driver.cuModuleGetFunction(module, NAME.encode())[1])


def load() -> int:
    import ptxfence

    core()
    return of_object_code(ptxfence.load(PTX.read_text()))


def nvrtc() -> int:
    from cuda.bindings import nvrtc as compiler

    from ptxfence.integrations import loader

    driver = context()
    _, program = compiler.nvrtcCreateProgram(source().encode(), b"k.cu", 0, [], [])
    options = [b"--gpu-architecture=compute_90a", b"--std=c++17"]
    compiler.nvrtcCompileProgram(program, len(options), options)
    _, size = compiler.nvrtcGetPTXSize(program)
    ptx = b" " * size
    compiler.nvrtcGetPTX(program, ptx)
    _, module = loader.cuModuleLoadData(ptx)
    return launch(driver.cuModuleGetFunction(module, NAME.encode())[1])


def cupy() -> int:
    import tempfile

    import cupy as cp

    import ptxfence

    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptxfence.fix(PTX.read_text()).text)
        file.flush()
        kernel = cp.RawModule(path=file.name).get_function(NAME)
        tiles = cp.asarray(values())
        out = cp.full_like(tiles, -1)
        kernel((cp.cuda.Device().attributes["MultiProcessorCount"],), (256,), (tiles, out, np.int32(TILES)))
        return int((out != tiles.transpose(0, 2, 1)).sum())


def numba() -> int:
    """numba-cuda makes PTX itself; what it makes goes through the loader like any other."""
    from numba import cuda, types

    from ptxfence.integrations import loader

    def double(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = 2 * x[i]

    ptx, _ = cuda.compile_ptx(double, (types.int32[::1], types.int32[::1]), cc=(9, 0))
    context()
    _, module = loader.cuModuleLoadData(ptx)
    return 0 if module is not None else 1


RECIPES: dict[str, Callable[[], int]] = {
    "cuda-core": cuda_core,
    "driver": plain_driver,
    "load": load,
    "nvrtc": nvrtc,
    "cupy": cupy,
    "numba": numba,
}


def main(words: list[str]) -> int:
    status = 0
    for name in words or RECIPES:
        try:
            wrong = RECIPES[name]()
        except ImportError as error:
            print(f"{name}: not here: {error}", flush=True)
            continue
        except Exception as error:  # the other recipes run all the same
            print(f"{name}: FAILED: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
            status = 1
            continue
        print(f"{name}: {'right' if not wrong else f'WRONG: {wrong} words'}", flush=True)
        status |= wrong > 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
