"""A driver made up for tests: device memory is host memory, and a kernel is what its code says in a comment.

`// fake: copy` copies the first buffer to the second; `// fake: skip N` spoils word N of it in every second launch;
`// fake: hang` and `// fake: fail` do that.
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from typing import Any

MEMORY: dict[int, Any] = {}
LAUNCHES: list[tuple[Any, ...]] = []
OPTIONS: dict[Any, str] = {}


class _Names:
    def __getattr__(self, name: str) -> str:
        return name


CUdevice_attribute = CUstream_flags = CUfunction_attribute = CUlaunchAttributeID = _Names()
CUtensorMapDataType = CUtensorMapInterleave = CUtensorMapSwizzle = CUtensorMapL2promotion = _Names()
CUtensorMapFloatOOBfill = _Names()
cuuint64_t = cuuint32_t = int


class _Struct:
    """Takes any attribute, nested ones too."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        child = _Struct()
        setattr(self, name, child)
        return child


CUlaunchAttribute = CUlaunchConfig = _Struct


def cuInit(flags: int) -> tuple[int]:
    return (100,) if os.environ.get("FAKE_CUDA") == "none" else (0,)


def cuGetErrorString(status: int) -> tuple[int, bytes]:
    return 0, {100: b"no CUDA-capable device is detected", 1: b"invalid argument"}.get(status, b"unknown")


def cuDeviceGet(number: int) -> tuple[int, int]:
    return 0, number


def cuDeviceGetAttribute(attribute: str, device: int) -> tuple[int, int]:
    major = 8 if os.environ.get("FAKE_CUDA") == "old" else 9
    return 0, major if "MAJOR" in attribute else 132


def cuDevicePrimaryCtxRetain(device: int) -> tuple[int, int]:
    return 0, 1


def cuCtxSetCurrent(context: int) -> tuple[int]:
    return (0,)


def cuCtxSynchronize() -> tuple[int]:
    return (0,)


def cuMemAlloc(size: int) -> tuple[int, int]:
    memory = ctypes.create_string_buffer(max(1, min(size, 1 << 24)))
    MEMORY[ctypes.addressof(memory)] = memory
    return 0, ctypes.addressof(memory)


def cuMemcpyHtoD(target: int, source: int, size: int) -> tuple[int]:
    ctypes.memmove(target, source, size)
    return (0,)


cuMemcpyDtoH = cuMemcpyHtoD


def cuMemcpyDtoDAsync(target: int, source: int, size: int, stream: Any) -> tuple[int]:
    return (0,)


def cuStreamCreate(flags: Any) -> tuple[int, int]:
    return 0, 1


def cuEventCreate(flags: int) -> tuple[int, int]:
    return 0, 1


def cuEventRecord(event: Any, stream: Any) -> tuple[int]:
    return (0,)


def cuEventElapsedTime(begin: Any, end: Any) -> tuple[int, float]:
    return 0, 0.5


def _load(image: bytes) -> tuple[int, Any]:
    return (0, image) if b"refused by the driver" not in image else (1, None)


def cuModuleLoadData(image: bytes) -> tuple[int, Any]:
    return _load(image)


def cuModuleLoadDataEx(image: bytes, number: int, options: Any, values: Any) -> tuple[int, Any]:
    return _load(image)


def cuLibraryLoadData(image: bytes, *options: Any) -> tuple[int, Any]:
    return _load(image)


def cuModuleLoadFatBinary(image: bytes) -> tuple[int, Any]:
    return 0, image


def cuModuleLoad(name: Any) -> tuple[int, Any]:
    with open(name, "rb") as file:
        return 0, b"file:" + file.read()


def cuLinkAddData(state: Any, kind: int, data: bytes, size: int, *rest: Any) -> tuple[int]:
    MEMORY[0] = data[:size]
    return (0,)


def cuModuleGetFunction(module: bytes, name: bytes) -> tuple[int, Any]:
    return (0, module.decode()) if name in module else (500, None)


def cuFuncSetAttribute(function: Any, attribute: Any, value: int) -> tuple[int]:
    OPTIONS[attribute] = str(value)
    return (0,)


def cuTensorMapEncodeTiled(*arguments: Any) -> tuple[int, Any]:
    class Map:
        def __init__(self) -> None:
            self.memory = ctypes.create_string_buffer(repr(arguments[1:6]).encode(), 256)

        def getPtr(self) -> int:
            return ctypes.addressof(self.memory)

    return 0, Map()


def cuLaunchKernel(function: str, *words: Any) -> tuple[int]:
    LAUNCHES.append(words)
    parameters = ctypes.cast(words[8], ctypes.POINTER(ctypes.c_void_p))
    command = re.search(r"// fake: (\w+) ?(\d*)", function)
    assert command is not None
    if command[1] == "hang":
        time.sleep(60)
    if command[1] == "fail":
        return (1,)
    source, target = (ctypes.cast(parameters[n], ctypes.POINTER(ctypes.c_uint64))[0] for n in (0, 1))
    count = ctypes.cast(parameters[2], ctypes.POINTER(ctypes.c_int32))[0]
    ctypes.memmove(target, source, 4 * count)
    if command[1] == "skip" and len(LAUNCHES) % 2 == 0:
        ctypes.cast(target, ctypes.POINTER(ctypes.c_uint32))[int(command[2])] ^= 1
    return (0,)


def cuLaunchKernelEx(config: Any, function: str, parameters: int, extra: int) -> tuple[int]:
    cluster = config.attrs[0].value.clusterDim
    assert (cluster.x, cluster.y, cluster.z) == (2, 1, 1)
    return cuLaunchKernel(function, 0, 0, 0, 0, 0, 0, 0, 0, parameters, extra)
