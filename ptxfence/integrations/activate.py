"""Importing this module makes the process watch itself as `PTXFENCE=check|fix|error` says.

It is imported at interpreter start: by `ptxfence.pth` in site-packages, or by `startup/sitecustomize.py`, which
`ptxfence run` puts on `PYTHONPATH`. Until the program imports one of the modules below, nothing else of ptxfence is
loaded. An activation that fails says so on standard error and leaves the program alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

HOOKS = {
    "triton": "ptxfence.integrations.triton",
    "cuda.bindings.driver": "ptxfence.integrations.loader",
}
"""Module of the program -> our module, whose `install_from_environment` is called once it has been imported."""


class _AfterImport:
    """A finder that finds nothing itself: it wraps the loader of the modules in HOOKS until each has been imported.

    A search is not yet an import: torch asks `importlib.util.find_spec` for Triton long before it imports it.
    """

    def __init__(self) -> None:
        self._imported: set[str] = set()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in HOOKS or name in self._imported:
            return None
        spec = self._others(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, name, self._imported)
        return spec

    def _others(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        """What the finders find that are not ours."""
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                return spec
        return None


class _Loader(Loader):
    """The module's own loader, with our step behind it."""

    def __init__(self, loader: Any, name: str, imported: set[str]) -> None:
        self._loader = loader
        self._name = name
        self._imported = imported

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._imported.add(self._name)
        activate(HOOKS[self._name])


def activate(ours: str) -> None:
    """Calls our module's `install_from_environment`; only `error` mode lets a failure through."""
    try:
        import_module(ours).install_from_environment()
    except Exception as error:
        print(f"ptxfence: {ours.rpartition('.')[2]} is not watched: {error}", file=sys.stderr)
        if os.environ.get("PTXFENCE") == "error":
            raise


def start() -> None:
    """Waits for the modules of HOOKS; those already there are taken at once. Does nothing the second time."""
    if any(isinstance(finder, _AfterImport) for finder in sys.meta_path):
        return
    finder = _AfterImport()
    sys.meta_path.insert(0, finder)
    for name in HOOKS:
        if name in sys.modules:
            activate(HOOKS[name])


start()
