"""Records Triton launches for `ptxfence race`: the first launch of each kernel, with the contents of its buffers.

`ptxfence run --record DIR -- PROGRAM` makes DIR/NAME-HASH/{kernel.ptx, launch.toml, *.npy}. Every buffer that the
kernel gets is recorded before the launch and marked as an output; which ones it writes is not known. Two arguments
that share memory become two buffers.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ptxfence.rewrite.launch_spec import SWIZZLES

MAX_BYTES = 4 << 30
"""Launches with larger buffers are not recorded."""
_TORCH_TYPES = {
    "torch.float16": "f16", "torch.bfloat16": "bf16", "torch.float32": "f32", "torch.float64": "f64",
    "torch.int8": "i8", "torch.uint8": "u8", "torch.int16": "i16", "torch.int32": "i32", "torch.int64": "i64",
}  # fmt: skip
_SCALARS = {
    "i1": "u8", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u1": "u8", "u8": "u8", "u16": "u16",
    "u32": "u32", "u64": "u64", "fp16": "f16", "fp32": "f32", "fp64": "f64", "f32": "f32", "f64": "f64",
}  # fmt: skip


def install(folder: Path) -> None:
    """Starts recording into `folder`; a launch that cannot be recorded is named on standard error, and launched."""
    compiler: Any = import_module("triton.compiler.compiler")
    original = compiler.CompiledKernel.launch_metadata
    seen: set[str] = set()

    def launch_metadata(kernel: Any, grid: Sequence[int], stream: Any, *arguments: Any) -> Any:
        if kernel.hash not in seen:
            seen.add(kernel.hash)
            try:
                Recording(kernel, grid, arguments).write(folder)
            except Exception as error:
                print(f"ptxfence: launch of {kernel.name} not recorded: {error}", file=sys.stderr)
        return original(kernel, grid, stream, *arguments)

    compiler.CompiledKernel.launch_metadata = launch_metadata


class Recording:
    """One launch, taken apart."""

    def __init__(self, kernel: Any, grid: Sequence[int], arguments: Sequence[Any]) -> None:
        self._kernel = kernel
        self._grid = [*grid, 1, 1][:3]
        self._tensors: dict[str, tuple[str, Any]] = {}
        self._maps: dict[str, dict[str, object]] = {}
        self._words: list[str] = []
        metas = iter(getattr(kernel.metadata, "tensordesc_meta", None) or ())
        for name, argument, kind in self._parameters(arguments):
            self._add(name, argument, kind, metas)
        self._add_scratch()

    def _parameters(self, arguments: Sequence[Any]) -> Iterator[tuple[str, Any, str]]:
        """Name, value and type of what the kernel really takes; tuples are taken apart."""
        for (name, kind), argument in zip(self._kernel.src.signature.items(), arguments, strict=False):
            yield from _leaves(name, argument, kind)

    def _add(self, name: str, argument: Any, kind: str, metas: Iterator[Mapping[str, Any]]) -> None:
        if kind.startswith("tensordesc"):
            self._add_descriptor(name, argument, next(metas))
        elif kind.startswith("*"):
            self._words.append(self._buffer(name, argument))
        elif kind in _SCALARS:
            self._words.append(f"{{ type = {_quoted(_SCALARS[kind])}, value = {_number(argument)} }}")
        else:
            raise ValueError(f"parameter {name} of type {kind}")

    def _add_descriptor(self, name: str, descriptor: Any, meta: Mapping[str, Any]) -> None:
        if meta.get("fp4_padded") or meta.get("is_im2col"):
            raise ValueError(f"tensor descriptor {name} is not a plain tiled one")
        buffer = self._buffer(f"{name}_data", descriptor.base)
        size = descriptor.base.element_size()
        self._maps[name] = {
            "buffer": buffer.strip('"'),
            "type": self._tensors[buffer.strip('"')][0],
            "shape": [int(extent) for extent in descriptor.shape],
            "strides": [int(stride) * size for stride in descriptor.strides[:-1]],
            "box": [int(extent) for extent in meta["block_size"]],
            "swizzle": SWIZZLES[meta["swizzle"]],
            "nan_fill": descriptor.padding == "nan",
        }
        self._words.append(_quoted(name))
        self._words += [f'{{ type = "i32", value = {int(extent)} }}' for extent in descriptor.shape]
        self._words += [f'{{ type = "i64", value = {int(stride)} }}' for stride in descriptor.strides]

    def _buffer(self, name: str, tensor: Any) -> str:
        if tensor is None:
            return '{ type = "u64", value = 0 }'
        kind = _TORCH_TYPES.get(str(tensor.dtype))
        if kind is None:
            raise ValueError(f"parameter {name} is a tensor of {tensor.dtype}")
        self._tensors[name] = (kind, _flat(tensor))
        return _quoted(name)

    def _add_scratch(self) -> None:
        """Triton's own parameters behind the program's: addresses of scratch memory, null where there is none."""
        text = str(self._kernel.asm["ptx"])
        match = re.search(rf"\.entry\s+{re.escape(self._kernel.name)}\s*\((.*?)\)", text, re.DOTALL)
        missing = (match[1].count(".param") if match else 0) - len(self._words)
        if getattr(self._kernel.metadata, "global_scratch_size", 0) > 0:
            raise ValueError("it needs scratch memory of Triton's")
        self._words += ['{ type = "u64", value = 0 }'] * max(0, missing)

    def write(self, folder: Path) -> None:
        """Writes the recording to a folder of its own."""
        if sum(array.nbytes for _, array in self._tensors.values()) > MAX_BYTES:
            raise ValueError(f"its buffers are larger than {MAX_BYTES >> 30} GiB")
        place = folder / f"{self._kernel.name[:100]}-{self._kernel.hash[:8]}"
        place.mkdir(parents=True, exist_ok=True)
        numpy: Any = import_module("numpy")
        for name, (_, array) in self._tensors.items():
            numpy.save(place / f"{name}.npy", array)
        (place / "kernel.ptx").write_text(self._kernel.asm["ptx"], encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            (place / "launch.toml").write_text(self._toml(), encoding="utf-8")

    def _toml(self) -> str:
        metadata = self._kernel.metadata
        ctas = int(getattr(metadata, "num_ctas", 1))
        # Triton counts clusters; the driver's grid counts CTAs.
        lines = [
            f"kernel = {_quoted(self._kernel.name)}",
            f"grid = [{int(self._grid[0]) * ctas}, {int(self._grid[1])}, {int(self._grid[2])}]",
            f"block = [{int(metadata.num_warps) * int(getattr(metadata, 'warp_size', 32))}]",
            f"cluster = [{ctas}]",
            f"shared = {int(metadata.shared)}",
            "arguments = [",
            *(f"  {word}," for word in self._words),
            "]",
        ]
        for name, (kind, array) in self._tensors.items():
            lines += ["", f"[buffers.{_quoted(name)}]", f"type = {_quoted(kind)}", f"shape = [{array.size}]"]
            lines += [f"fill = {_quoted(f'file:{name}.npy')}", "output = true"]
        for name, entries in self._maps.items():
            lines += ["", f"[tensormaps.{_quoted(name)}]", *(f"{key} = {json.dumps(v)}" for key, v in entries.items())]
        return "\n".join(lines) + "\n"


def _leaves(name: str, argument: Any, kind: Any) -> Iterator[tuple[str, Any, str]]:
    if isinstance(kind, tuple):
        kinds = cast("tuple[Any, ...]", kind)
        for number, (part, its_kind) in enumerate(zip(argument, kinds, strict=True)):
            yield from _leaves(f"{name}_{number}", part, its_kind)
    elif kind != "constexpr":
        yield name, argument, str(kind)


def _flat(tensor: Any) -> Any:
    """The tensor's memory from its first element to the end of its storage: strides reach beyond a view."""
    torch: Any = import_module("torch")
    storage = tensor.untyped_storage()
    count = storage.nbytes() // tensor.element_size() - tensor.storage_offset()
    flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage, tensor.storage_offset(), (count,))
    if str(tensor.dtype) == "torch.bfloat16":
        return flat.view(torch.int16).cpu().numpy().view("uint16")
    return flat.cpu().numpy()


def _number(value: Any) -> str:
    return repr(int(value)) if isinstance(value, bool) else repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text)
