"""The process of one variant in a race: launches it through cuda-python and compares its outputs.

Reads a job from standard input (rewrite/launch.py) and writes its answer to the file that its argument names.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ptxfence.errors import DeviceError
from ptxfence.rewrite.launch_spec import TYPES, Argument, Buffer, Launch, TensorMap, grid_size

NOISE_BYTES = 256 << 20
"""A copy of this size runs beside every second launch."""
_MAP_TYPES = {
    "u8": "UINT8", "i8": "UINT8", "u16": "UINT16", "i16": "UINT16", "u32": "UINT32", "i32": "INT32", "u64": "UINT64",
    "i64": "INT64", "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64",
}  # fmt: skip


def main() -> int:
    """Runs the job; whatever goes wrong is part of the answer."""
    job = json.load(sys.stdin)
    answer: dict[str, Any]
    device = None
    try:
        device = Device(job["device"])
        answer = Variant(device, _launch(job["launch"]), job).run()
    except (DeviceError, OSError, ValueError, ImportError) as error:
        answer = {"error": str(error), "ran": device is not None}
    Path(sys.argv[1]).write_text(json.dumps(answer), encoding="utf-8")
    return 0


def _launch(data: dict[str, Any]) -> Launch:
    data["buffers"] = {name: Buffer(**_tuples(value)) for name, value in data["buffers"].items()}
    data["tensormaps"] = {name: TensorMap(**_tuples(value)) for name, value in data["tensormaps"].items()}
    data["arguments"] = tuple(Argument(**value) for value in data["arguments"])
    return Launch(**_tuples(data))


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists only."""
    return {name: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for name, value in data.items()}


class Device:
    """A GPU through cuda.bindings. Raises DeviceError where there is none of compute capability 9.0 or newer."""

    def __init__(self, number: int) -> None:
        try:
            driver: Any = import_module("cuda.bindings.driver")
        except ImportError as error:
            raise DeviceError(f"no GPU can be used: cuda.bindings is missing ({error})") from None
        self.driver = driver
        try:
            self.call("cuInit", 0)
            handle = self.call("cuDeviceGet", number)
        except (DeviceError, RuntimeError) as error:
            reason = str(error).partition(". Ensure")[0]
            raise DeviceError(f"no GPU: {reason}") from None
        attribute = driver.CUdevice_attribute
        major = self.call("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle)
        if major < 9:
            raise DeviceError(f"no GPU of compute capability 9.0 or newer: device {number} has {major}.x")
        self.sms: int = self.call("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle)
        self.call("cuCtxSetCurrent", self.call("cuDevicePrimaryCtxRetain", handle))

    def call(self, name: str, *arguments: Any) -> Any:
        """A driver function's result. Raises DeviceError with the driver's own words."""
        status, *result = getattr(self.driver, name)(*arguments)
        if int(status):
            _, text = self.driver.cuGetErrorString(status)
            raise DeviceError(f"{name}: {text.decode() if text else status}")
        return result[0] if len(result) == 1 else result


class Variant:
    """One kernel with its buffers on the device."""

    def __init__(self, device: Device, launch: Launch, job: dict[str, Any]) -> None:
        import numpy

        self.np: Any = numpy
        self.device = device
        self.launch = launch
        self.job = job
        self.folder = Path(job["folder"])
        self.first = {name: self._filled(name, buffer) for name, buffer in launch.buffers.items()}
        self.memory = {name: device.call("cuMemAlloc", array.nbytes) for name, array in self.first.items()}
        self.outputs = [name for name, buffer in launch.buffers.items() if buffer.output]
        self.keep: list[Any] = []
        self.parameters = self._parameters()
        self.function = self._function(Path(job["code"]).read_bytes())

    def run(self) -> dict[str, Any]:
        expected, against = self._expected()
        for name in self.first:
            self._upload(name)
        words = sum(self._words(self.first[name]).size for name in self.outputs)
        return {"words": words, "against": against, "runs": self._runs(expected)}

    def _runs(self, expected: dict[str, Any]) -> list[dict[str, Any]]:
        call, driver = self.device.call, self.device.driver
        stream = call("cuStreamCreate", driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        other = call("cuStreamCreate", driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
        begin, end = call("cuEventCreate", 0), call("cuEventCreate", 0)
        scratch = [call("cuMemAlloc", NOISE_BYTES) for _ in range(2)] if self.launch.noise else []
        # The first launch loads code and warms caches: it counts for results, not for time.
        results: list[dict[str, Any]] = []
        for number in range(self.launch.runs + 1):
            noisy = bool(scratch) and number % 2 == 1
            for name, buffer in self.launch.buffers.items():
                if buffer.output or buffer.reset:
                    self._upload(name)
            call("cuCtxSynchronize")
            if noisy:
                for _ in range(4):
                    call("cuMemcpyDtoDAsync", scratch[0], scratch[1], NOISE_BYTES, other)
            call("cuEventRecord", begin, stream)
            self._start(stream)
            call("cuEventRecord", end, stream)
            call("cuCtxSynchronize")
            result = {**self._compare(expected), "milliseconds": call("cuEventElapsedTime", begin, end), "noisy": noisy}
            results.append(result)
        if len(results) > 1 and not results[0]["wrong"]:
            del results[0]
        return results

    def _start(self, stream: Any) -> None:
        launch, driver = self.launch, self.device.driver
        grid = [grid_size(size, self.device.sms) for size in launch.grid]
        if launch.cluster == (1, 1, 1):
            self.device.call(
                "cuLaunchKernel", self.function, *grid, *launch.block, launch.shared, stream, self.parameters, 0
            )
            return
        attribute = driver.CUlaunchAttribute()
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = launch.cluster
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
        config.sharedMemBytes = launch.shared
        config.hStream = stream
        config.attrs = [attribute]
        config.numAttrs = 1
        self.device.call("cuLaunchKernelEx", config, self.function, self.parameters, 0)

    def _function(self, code: bytes) -> Any:
        call, driver, name = self.device.call, self.device.driver, self.launch.kernel
        if self.job["route"] == "cuda-core":
            core: Any = import_module("cuda.core")
            if not hasattr(core, "ObjectCode"):  # before cuda.core 0.5
                core = import_module("cuda.core.experimental")
            core.Device(self.job["device"]).set_current()
            self.keep.append(core.ObjectCode.from_ptx(code).get_kernel(name))
            handle = getattr(self.keep[-1], "handle", None) or self.keep[-1]._handle
            function = call("cuKernelGetFunction", driver.CUkernel(int(handle)))
        else:
            module = call("cuModuleLoadData", code + b"\0")
            function = call("cuModuleGetFunction", module, name.encode())
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        if self.launch.shared > 48 * 1024:
            call("cuFuncSetAttribute", function, limit, self.launch.shared)
        if self.launch.cluster[0] * self.launch.cluster[1] * self.launch.cluster[2] > 8:
            allowed = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            call("cuFuncSetAttribute", function, allowed, 1)
        return function

    def _parameters(self) -> int:
        """The address of the array of parameter addresses; what it points to is kept alive with the object."""
        addresses: list[int] = []
        for argument in self.launch.arguments:
            if argument.tensormap:
                value = self._tensor_map(self.launch.tensormaps[argument.tensormap])
                addresses.append(int(value.getPtr()))
            else:
                pointer = argument.buffer and int(self.memory[argument.buffer])
                kind = "uint64" if argument.buffer else TYPES[argument.type]
                value = self.np.array([pointer if argument.buffer else argument.value], dtype=kind)
                addresses.append(value.ctypes.data)
            self.keep.append(value)
        array = self.np.array(addresses or [0], dtype="uint64")
        self.keep.append(array)
        return array.ctypes.data

    def _tensor_map(self, tensor: TensorMap) -> Any:
        driver = self.device.driver
        size = self.np.dtype(TYPES[tensor.type]).itemsize
        strides = list(tensor.strides) or [
            size * int(self.np.prod(tensor.shape[dimension + 1 :])) for dimension in range(len(tensor.shape) - 1)
        ]
        fill = "NAN_REQUEST_ZERO_FMA" if tensor.nan_fill else "NONE"
        return self.device.call(
            "cuTensorMapEncodeTiled",
            getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_MAP_TYPES[tensor.type]}"),
            len(tensor.shape),
            int(self.memory[tensor.buffer]),
            [driver.cuuint64_t(extent) for extent in reversed(tensor.shape)],
            [driver.cuuint64_t(stride) for stride in reversed(strides)],
            [driver.cuuint32_t(extent) for extent in reversed(tensor.box)],
            [driver.cuuint32_t(1) for _ in tensor.shape],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{tensor.swizzle.upper()}"),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            getattr(driver.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill}"),
        )

    def _filled(self, name: str, buffer: Buffer) -> Any:
        np = self.np
        kind = np.dtype(TYPES[buffer.type])
        fill, _, rest = buffer.fill.partition(":")
        if fill == "file":
            array = np.ascontiguousarray(np.load(Path(self.launch.folder) / rest))
            if array.dtype != kind or array.shape != buffer.shape:
                raise DeviceError(f"{rest}: holds {array.dtype}{array.shape}, not {kind}{buffer.shape}")
            return array
        if fill == "byte":
            return np.full(int(np.prod(buffer.shape)) * kind.itemsize, int(rest, 0), np.uint8).view(kind).reshape(
                buffer.shape
            )
        if fill == "sequence":
            return np.arange(np.prod(buffer.shape)).astype(kind).reshape(buffer.shape)
        generator = np.random.default_rng([buffer.seed, *name.encode()])
        if fill == "integers":
            low, high = (int(part) for part in rest.split(":"))
            return generator.integers(low, high, buffer.shape).astype(kind)
        if fill == "random" and kind.kind == "f":
            return generator.random(buffer.shape).astype(kind)
        if fill == "random":
            return np.frombuffer(
                generator.bytes(int(np.prod(buffer.shape)) * kind.itemsize), kind
            ).reshape(buffer.shape)
        return np.zeros(buffer.shape, kind)

    def _upload(self, name: str) -> None:
        array = self.first[name]
        self.device.call("cuMemcpyHtoD", self.memory[name], array.ctypes.data, array.nbytes)

    def _expected(self) -> tuple[dict[str, Any], str]:
        """Outputs by name: of the reference, else of the patched variant's first run."""
        if self.launch.reference:
            path, _, function = self.launch.reference.rpartition(":")
            scope: dict[str, Any] = {}
            source = (Path(self.launch.folder) / path).read_text(encoding="utf-8")
            exec(compile(source, path, "exec"), scope)
            made = scope[function]({name: array.copy() for name, array in self.first.items()})
            return {name: self._like(name, made[name]) for name in self.outputs if name in made}, "reference"
        if self.job["variant"] == "patched":
            return {}, "its first run"
        stored = {name: self.np.load(self.folder / f"{name}.npy") for name in self.outputs}
        return stored, "the patched kernel"

    def _like(self, name: str, array: Any) -> Any:
        first = self.first[name]
        return self.np.ascontiguousarray(array, dtype=first.dtype).reshape(first.shape)

    def _compare(self, expected: dict[str, Any]) -> dict[str, Any]:
        wrong, first = 0, None
        for name in self.outputs:
            found = self.np.empty_like(self.first[name])
            self.device.call("cuMemcpyDtoH", found.ctypes.data, self.memory[name], found.nbytes)
            if name not in expected:
                expected[name] = found
                self.np.save(self.folder / f"{name}.npy", found)
                continue
            have, want = self._words(found), self._words(expected[name])
            different = self.np.flatnonzero(have != want)
            wrong += int(different.size)
            if different.size and first is None:
                word = int(different[0])
                first = {"output": name, "word": word, "found": int(have[word]), "expected": int(want[word])}
        return {"wrong": wrong, "first": first}

    def _words(self, array: Any) -> Any:
        """The array's bytes as 4-byte words, zeros behind the last ones."""
        raw = array.reshape(-1).view(self.np.uint8)
        rest = -raw.size % 4
        return (self.np.concatenate([raw, self.np.zeros(rest, self.np.uint8)]) if rest else raw).view(self.np.uint32)


if __name__ == "__main__":
    raise SystemExit(main())
