"""A thin layer over the CUDA driver: load PTX, hold buffers, launch, time, count different words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cuda.bindings import driver

Array = np.ndarray[Any, np.dtype[Any]]


class GpuError(Exception):
    """The driver refused something."""


def call(result: tuple[Any, ...]) -> Any:
    """The value of a driver call; raises GpuError with the driver's own name for what went wrong."""
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise GpuError(str(result[0]))
    return result[1] if len(result) == 2 else result[1:]


class Kernel:
    """One entry of one PTX text, compiled by the driver."""

    def __init__(self, text: str, entry: str, shared: int = 0) -> None:
        self._module = call(driver.cuModuleLoadData(text.encode("utf-8", "surrogateescape") + b"\0"))
        self.function = call(driver.cuModuleGetFunction(self._module, entry.encode()))
        self.shared = shared
        if shared > 48 * 1024:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call(driver.cuFuncSetAttribute(self.function, attribute, shared))

    def launch(self, grid: int, block: int, arguments: Sequence[np.generic]) -> None:
        """Starts the kernel; `arguments` are NumPy scalars of the parameters' sizes."""
        values = [np.array([argument]) for argument in arguments]
        pointers = np.array([value.ctypes.data for value in values], dtype=np.uint64)
        call(driver.cuLaunchKernel(self.function, grid, 1, 1, block, 1, 1, self.shared, 0, pointers.ctypes.data, 0))


class Buffer:
    """Global memory of `size` bytes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.address = call(driver.cuMemAlloc(size))

    @classmethod
    def of(cls, values: Array) -> Buffer:
        plain = np.ascontiguousarray(values)
        buffer = cls(plain.nbytes)
        call(driver.cuMemcpyHtoD(buffer.address, plain.ctypes.data, plain.nbytes))
        return buffer

    def fill(self, byte: int) -> None:
        call(driver.cuMemsetD8(self.address, byte, self.size))

    def read(self, dtype: type[np.generic]) -> Array:
        values = np.empty(self.size // np.dtype(dtype).itemsize, dtype)
        call(driver.cuMemcpyDtoH(values.ctypes.data, self.address, self.size))
        return values

    def free(self) -> None:
        call(driver.cuMemFree(self.address))

    @property
    def argument(self) -> np.generic:
        return np.uint64(int(self.address))


class Gpu:
    """The first GPU of the machine, with a context of its own."""

    def __init__(self) -> None:
        try:
            call(driver.cuInit(0))
        except RuntimeError as error:
            raise GpuError(f"no NVIDIA driver: {error}") from None
        device = call(driver.cuDeviceGet(0))
        call(driver.cuCtxSetCurrent(call(driver.cuDevicePrimaryCtxRetain(device))))
        attribute = driver.CUdevice_attribute
        self.name: str = call(driver.cuDeviceGetName(128, device)).split(b"\0")[0].decode()
        self.multiprocessors: int = self._get(attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)
        self.capability = (
            self._get(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
            self._get(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
        )
        version = call(driver.cuDriverGetVersion())
        self.driver = f"{version // 1000}.{version % 1000 // 10}"
        self._count = Kernel(Path(__file__).with_name("count_different.ptx").read_text(), "count_different")
        self._counter = Buffer(8)

    @staticmethod
    def _get(attribute: Any, device: Any) -> int:
        return int(call(driver.cuDeviceGetAttribute(attribute, device)))

    def different(self, left: Buffer, right: Buffer) -> int:
        """How many 4-byte words differ; waits for the kernels before."""
        self._counter.fill(0)
        arguments = (left.argument, right.argument, np.uint64(left.size // 4), self._counter.argument)
        self._count.launch(self.multiprocessors * 8, 256, arguments)
        self.wait()
        return int(self._counter.read(np.uint64)[0])

    @staticmethod
    def wait() -> None:
        """Waits for everything; raises GpuError if a kernel failed."""
        call(driver.cuCtxSynchronize())

    def seconds(self, kernel: Kernel, grid: int, block: int, arguments: Sequence[np.generic], repeats: int) -> float:
        """Time of one launch, over `repeats` launches in a row."""
        begin, end = call(driver.cuEventCreate(0)), call(driver.cuEventCreate(0))
        call(driver.cuEventRecord(begin, 0))
        for _ in range(repeats):
            kernel.launch(grid, block, arguments)
        call(driver.cuEventRecord(end, 0))
        call(driver.cuEventSynchronize(end))
        elapsed: float = call(driver.cuEventElapsedTime(begin, end))
        call(driver.cuEventDestroy(begin))
        call(driver.cuEventDestroy(end))
        return elapsed / 1000 / repeats
