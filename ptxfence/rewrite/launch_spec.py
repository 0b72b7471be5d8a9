"""How a kernel is launched for `ptxfence race`: buffers, tensor maps, arguments and sizes, read from TOML.

The file's grammar is in docs/integrations.md. Shapes, boxes and strides are outermost dimension first.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from ptxfence.errors import ConfigError, InputError

TYPES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "f16": "float16", "bf16": "uint16", "f32": "float32", "f64": "float64",
}  # fmt: skip
"""Element types and their NumPy names; bf16 is kept as its bits."""
SWIZZLES = ("none", "32B", "64B", "128B")
DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Buffer:
    """Global memory. `fill`: zero, random, sequence, byte:N, integers:LOW:HIGH or file:NAME.npy.

    An `output` is compared after each run; it, and a buffer with `reset`, gets its first content back before each.
    """

    type: str
    shape: tuple[int, ...]
    fill: str = "zero"
    seed: int = 0
    output: bool = False
    reset: bool = False


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tiled tensor map over a buffer; `strides` in bytes for all dimensions but the innermost, empty: dense."""

    buffer: str
    type: str
    shape: tuple[int, ...]
    box: tuple[int, ...]
    strides: tuple[int, ...] = ()
    swizzle: str = "none"
    nan_fill: bool = False


@dataclass(frozen=True, slots=True)
class Argument:
    """One kernel parameter: the address of a buffer, a tensor map by value, or a scalar of `type`."""

    buffer: str = ""
    tensormap: str = ""
    type: str = ""
    value: float = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch. A grid size may be `"sms"` or `"4*sms"`; `shared` counts dynamic bytes, `timeout` seconds in all.

    `reference` is `FILE.py:FUNCTION`: called with the buffers' first contents by name, it returns the expected
    contents of outputs by name. `folder` is where relative paths count from.
    """

    kernel: str
    grid: tuple[int | str, int | str, int | str]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    buffers: Mapping[str, Buffer]
    tensormaps: Mapping[str, TensorMap] = field(default_factory=dict[str, TensorMap])
    cluster: tuple[int, int, int] = (1, 1, 1)
    shared: int = 0
    runs: int = 10
    noise: bool = True
    timeout: float = DEFAULT_TIMEOUT
    reference: str = ""
    folder: str = "."


def read_launch(path: Path) -> Launch:
    """Reads a launch file. Raises InputError if it cannot be read, ConfigError for anything wrong in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    try:
        return parse_launch(tomllib.loads(text), str(path.parent))
    except (tomllib.TOMLDecodeError, ConfigError) as error:
        raise ConfigError(f"{path}: {error}") from None


def parse_launch(table: Mapping[str, object], folder: str = ".") -> Launch:
    """A launch from a TOML document. Raises ConfigError."""
    known = {"kernel", "grid", "block", "cluster", "shared", "runs", "noise", "timeout", "reference"}
    _require_known(table, known | {"buffers", "tensormaps", "arguments"}, "the file")
    buffers = {name: _buffer(name, value) for name, value in _tables(table, "buffers").items()}
    maps = {name: _tensormap(name, value, buffers) for name, value in _tables(table, "tensormaps").items()}
    listed = table.get("arguments", [])
    if not isinstance(listed, list):
        raise ConfigError("arguments: expected an array")
    arguments = tuple(_argument(value, buffers, maps) for value in cast("list[object]", listed))
    return Launch(
        kernel=_text(table, "kernel", ""),
        grid=_three(table, "grid", sizes=True),
        block=cast("tuple[int, int, int]", _three(table, "block")),
        cluster=cast("tuple[int, int, int]", _three(table, "cluster")),
        arguments=arguments,
        buffers=buffers,
        tensormaps=maps,
        shared=_integer(table, "shared", 0),
        runs=_integer(table, "runs", 10, least=1),
        noise=_flag(table, "noise", True),
        timeout=float(_integer(table, "timeout", int(DEFAULT_TIMEOUT), least=1)),
        reference=_text(table, "reference", ""),
        folder=folder,
    )


def _buffer(name: str, table: Mapping[str, object]) -> Buffer:
    where = f"buffers.{name}"
    _require_known(table, {"type", "shape", "fill", "seed", "output", "reset"}, where)
    fill = _text(table, "fill", "zero")
    if fill.partition(":")[0] not in ("zero", "random", "sequence", "byte", "integers", "file"):
        raise ConfigError(f"{where}.fill: {fill!r} is no filling")
    return Buffer(
        type=_type(table, where),
        shape=_sizes(table, "shape", where),
        fill=fill,
        seed=_integer(table, "seed", 0),
        output=_flag(table, "output", False),
        reset=_flag(table, "reset", False),
    )


def _tensormap(name: str, table: Mapping[str, object], buffers: Mapping[str, Buffer]) -> TensorMap:
    where = f"tensormaps.{name}"
    _require_known(table, {"buffer", "type", "shape", "box", "strides", "swizzle", "nan_fill"}, where)
    buffer = _text(table, "buffer", "")
    if buffer not in buffers:
        raise ConfigError(f"{where}: no buffer {buffer!r}")
    swizzle = _text(table, "swizzle", "none")
    if swizzle not in SWIZZLES:
        raise ConfigError(f"{where}.swizzle: expected one of {', '.join(SWIZZLES)}")
    shape = _sizes(table, "shape", where) if "shape" in table else buffers[buffer].shape
    box = _sizes(table, "box", where)
    strides = _sizes(table, "strides", where) if "strides" in table else ()
    if len(box) != len(shape) or len(strides) not in (0, len(shape) - 1):
        raise ConfigError(f"{where}: box and strides do not fit {len(shape)} dimensions")
    type_ = _type(table, where) if "type" in table else buffers[buffer].type
    return TensorMap(buffer, type_, shape, box, strides, swizzle, _flag(table, "nan_fill", False))


def _argument(value: object, buffers: Mapping[str, Buffer], maps: Mapping[str, TensorMap]) -> Argument:
    if isinstance(value, str):
        if value in buffers:
            return Argument(buffer=value)
        if value in maps:
            return Argument(tensormap=value)
        raise ConfigError(f"arguments: no buffer or tensor map {value!r}")
    table = _table(value, "arguments")
    _require_known(table, {"type", "value"}, "arguments")
    number = table.get("value", 0)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ConfigError(f"arguments: expected a number, found {number!r}")
    return Argument(type=_type(table, "arguments"), value=number)


def _require_known(table: Mapping[str, object], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise ConfigError(f"{where}: unknown entry {unknown[0]!r}; known: {', '.join(sorted(known))}")


def _tables(table: Mapping[str, object], name: str) -> dict[str, Mapping[str, object]]:
    return {key: _table(value, f"{name}.{key}") for key, value in _table(table.get(name, {}), name).items()}


def _table(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: expected a table, found {value!r}")
    return cast("Mapping[str, object]", value)


def _text(table: Mapping[str, object], name: str, default: str) -> str:
    value = table.get(name, default)
    if not isinstance(value, str):
        raise ConfigError(f"{name}: expected a text, found {value!r}")
    return value


def _flag(table: Mapping[str, object], name: str, default: bool) -> bool:
    value = table.get(name, default)
    if not isinstance(value, bool):
        raise ConfigError(f"{name}: expected true or false, found {value!r}")
    return value


def _integer(table: Mapping[str, object], name: str, default: int, least: int = 0) -> int:
    value = table.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name}: expected a whole number from {least}, found {value!r}")
    return value


def _type(table: Mapping[str, object], where: str) -> str:
    value = table.get("type")
    if value not in TYPES:
        raise ConfigError(f"{where}.type: expected one of {', '.join(TYPES)}, found {value!r}")
    return cast(str, value)


def _sizes(table: Mapping[str, object], name: str, where: str) -> tuple[int, ...]:
    value = table.get(name)
    sizes = cast("list[object]", value) if isinstance(value, list) else []
    if not sizes or not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes):
        raise ConfigError(f"{where}.{name}: expected positive whole numbers, found {value!r}")
    return tuple(cast("list[int]", sizes))


def _three(table: Mapping[str, object], name: str, *, sizes: bool = False) -> tuple[int | str, int | str, int | str]:
    value = table.get(name, 1)
    given = cast("list[object]", value) if isinstance(value, list) else [value]
    for size in given:
        good = isinstance(size, int) and not isinstance(size, bool) and size > 0
        if not good and not (sizes and isinstance(size, str) and _per_sm(size)):
            raise ConfigError(f"{name}: expected up to three positive whole numbers, found {value!r}")
    if not 1 <= len(given) <= 3:
        raise ConfigError(f"{name}: expected up to three numbers, found {value!r}")
    padded = [*cast("list[int | str]", given), 1, 1][:3]
    return padded[0], padded[1], padded[2]


def _per_sm(size: str) -> bool:
    factor, _, unit = size.rpartition("*")
    return unit.strip() == "sms" and (not factor or factor.strip().isdigit())


def grid_size(size: int | str, sms: int) -> int:
    """A grid size on a GPU with that many multiprocessors."""
    if isinstance(size, int):
        return size
    factor = size.rpartition("*")[0].strip()
    return int(factor or 1) * sms
