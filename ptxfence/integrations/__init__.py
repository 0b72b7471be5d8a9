"""Where PTX is made and loaded: Triton, ptxas, cuda-python. Each part is imported on first use."""

from __future__ import annotations

from typing import Any

_PARTS = ("loader", "ptxas", "triton")


def __getattr__(name: str) -> Any:
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"{__name__}.{name}")
