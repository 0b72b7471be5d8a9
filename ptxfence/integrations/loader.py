"""cuda-python: PTX is checked or patched on its way into the driver.

    from ptxfence.integrations import loader

    code = loader.patched(program.compile("ptx"))       # cuda.core: ObjectCode in, ObjectCode out
    error, module = loader.cuModuleLoadData(ptx)        # in place of cuda.bindings.driver.cuModuleLoadData
    loader.install("fix")                               # all of cuda.bindings.driver, until uninstall()

Everything that is not PTX (cubins, fat binaries, LTO-IR) passes through untouched.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from ptxfence.errors import DeviceError
from ptxfence.integrations.outcome import MODE_VARIABLE, Examine, Mode, mode_of
from ptxfence.integrations.watch import Watch

_MAGICS = (b"\x7fELF", b"\x50\xed\x55\xba", b"\xb1\x43\x62\x46")
"""First bytes of a cubin, a fat binary and a fat binary wrapper (little endian)."""
_WRAPPED = ("cuModuleLoadData", "cuModuleLoadDataEx", "cuLibraryLoadData", "cuModuleLoadFatBinary")
_CU_JIT_INPUT_PTX = 1

_originals: dict[str, Callable[..., Any]] = {}


def patched(code: Any, mode: str | Mode = Mode.FIX) -> Any:
    """The same `cuda.core.ObjectCode` of PTX with the missing fences in; one of another kind is returned as it is.

    Raises ConfigError for an unknown mode, HazardError in `error` mode.
    """
    if code.code_type != "ptx":
        return code
    image = _watch(mode_of(mode)).text(_text(_bytes(code.code)), code.name or "object code")
    make = code.from_ptx
    return make(image.encode(), name=code.name, symbol_mapping=code.symbol_mapping)


def patched_image(image: Any, mode: str | Mode = Mode.FIX) -> Any:
    """What to hand to the driver in place of `image`: bytes, a buffer or the address of a NUL-terminated PTX text.

    A `str`, which numba-cuda gives and the driver's bindings refuse, becomes bytes. Raises as `patched` does.
    """
    plain = image.encode("utf-8", "surrogateescape") + b"\0" if isinstance(image, str) else image
    return _replaced(plain, _watch(mode_of(mode)))


def cuModuleLoadData(image: Any, mode: str | Mode = Mode.FIX) -> Any:
    """`cuda.bindings.driver.cuModuleLoadData` for PTX with the missing fences in."""
    return _original("cuModuleLoadData")(patched_image(image, mode))


def cuModuleLoadDataEx(image: Any, *arguments: Any, mode: str | Mode = Mode.FIX) -> Any:
    """`cuda.bindings.driver.cuModuleLoadDataEx` for PTX with the missing fences in."""
    return _original("cuModuleLoadDataEx")(patched_image(image, mode), *arguments)


def cuLibraryLoadData(code: Any, *arguments: Any, mode: str | Mode = Mode.FIX) -> Any:
    """`cuda.bindings.driver.cuLibraryLoadData` for PTX with the missing fences in."""
    return _original("cuLibraryLoadData")(patched_image(code, mode), *arguments)


def install(mode: str | Mode = Mode.FIX, *, examiner: Examine | None = None) -> None:
    """Makes the loading functions of `cuda.bindings.driver` check or patch PTX; a second call changes the mode.

    Code that imported the functions by name before keeps the old ones. Raises DeviceError without cuda-python.
    """
    driver = _driver()
    watch = Watch(mode_of(mode), "loader", examiner=examiner)
    uninstall()
    for name in (*_WRAPPED, "cuModuleLoad", "cuLinkAddData"):
        _originals[name] = getattr(driver, name)
    for name in _WRAPPED:
        setattr(driver, name, _on_image(_originals[name], watch))
    driver.cuModuleLoad = _on_file(_originals["cuModuleLoad"], _originals["cuModuleLoadData"], watch)
    driver.cuLinkAddData = _on_link(_originals["cuLinkAddData"], watch)


def uninstall() -> None:
    """Puts the driver's own functions back."""
    driver = sys.modules.get("cuda.bindings.driver")
    while _originals:
        name, function = _originals.popitem()
        setattr(driver, name, function)


def install_from_environment() -> None:
    """Called after `cuda.bindings.driver` was imported where `PTXFENCE` is set."""
    if word := os.environ.get(MODE_VARIABLE):
        install(word)


def _on_image(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def load(image: Any, *arguments: Any, **named: Any) -> Any:
        after = _replaced(image, watch)
        result = original(after, *arguments, **named)
        if after is not image and int(result[0]):
            watch.failed(_text(_bytes(image)), "module", f"the driver refuses the patched text: {result[0]}")
            return original(image, *arguments, **named)
        return result

    return load


def _on_file(original: Callable[..., Any], load_data: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def load(name: Any) -> Any:
        try:
            with open(name, "rb") as file:
                image = file.read()
        except (OSError, ValueError, TypeError):
            return original(name)  # the driver knows how to say what is wrong
        after = _replaced(image, watch)
        result = original(name) if after is image else load_data(after)
        return original(name) if after is not image and int(result[0]) else result

    return load


def _on_link(original: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def add(state: Any, kind: Any, data: Any, size: int, *arguments: Any) -> Any:
        if int(kind) != _CU_JIT_INPUT_PTX:
            return original(state, kind, data, size, *arguments)
        after = _replaced(data, watch)
        return original(state, kind, after, size if after is data else len(after), *arguments)

    return add


def _replaced(image: Any, watch: Watch) -> Any:
    """The patched image with a NUL behind it, or `image` itself where there is nothing to patch."""
    raw = _bytes(image)
    if not raw or raw.startswith(_MAGICS) or b".version" not in raw:
        return image
    text = _text(raw)
    after = watch.text(text, "module")
    return image if after == text else after.encode("utf-8", "surrogateescape") + b"\0"


def _bytes(image: Any) -> bytes:
    """The content of an image; empty if it is of a kind that we cannot read."""
    if isinstance(image, bytes):
        return image
    if isinstance(image, str):
        return image.encode()
    if isinstance(image, int):
        return _at(image)
    try:
        return bytes(memoryview(image).cast("B"))
    except (TypeError, ValueError):
        return b""


def _at(address: int) -> bytes:
    """The text at an address. The driver takes anything without a known magic for NUL-terminated text, and so do we."""
    if not address or ctypes.string_at(address, 4) in _MAGICS:
        return b""
    return ctypes.string_at(address)


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("utf-8", "surrogateescape")


@lru_cache(maxsize=4)
def _watch(mode: Mode) -> Watch:
    return Watch(mode, "loader")


def _driver() -> Any:
    try:
        return import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DeviceError(f"cuda.bindings cannot be imported: {error}") from None


def _original(name: str) -> Callable[..., Any]:
    return _originals.get(name) or getattr(_driver(), name)
