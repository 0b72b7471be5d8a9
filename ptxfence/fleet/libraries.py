"""The untyped libraries of the extra `fleet`, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def store_at(url: str) -> tuple[Any, str]:
    """The fsspec file system behind a URL or path, and the path in it. Raises what fsspec raises."""
    core: Any = import_module("fsspec.core")
    store, root = core.url_to_fs(url)
    return store, str(root)


def absolute(url: str) -> str:
    """The URL of a path or URL, the same wherever it is used."""
    store, root = store_at(url)
    return str(store.unstrip_protocol(root))


def library(name: str) -> Any:
    """A module, without types."""
    return import_module(name)
