"""Found first on `PYTHONPATH` under `ptxfence run`: makes ptxfence importable, activates it, runs the next one.

`PTXFENCE_ROOTS` lists `NAME=FOLDER` pairs: where ptxfence and what it needs lie. They are found only by these names
and only where the program has no module of that name, so that nothing else of our installation gets into the program.
"""

from __future__ import annotations

import os
import sys


def _next_customization() -> None:
    """Runs the `sitecustomize` that this one hides.

    Our folder comes back to `sys.path` afterwards: torch starts its compile workers with `sys.path` as `PYTHONPATH`.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    listed = len(others) < len(sys.path)
    sys.path[:] = others
    ours = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours
    finally:
        if listed:
            sys.path.insert(0, here)


class _Roots:
    """A finder behind all others that knows the modules of `PTXFENCE_ROOTS`."""

    def __init__(self, pairs: str) -> None:
        self._folders = dict(pair.split("=", 1) for pair in pairs.split(os.pathsep) if "=" in pair)

    def find_spec(self, name: str, path: object = None, target: object = None):
        folder = self._folders.get(name)
        if folder is None:
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, [folder])


def _activate() -> None:
    sys.meta_path.append(_Roots(os.environ.get("PTXFENCE_ROOTS", "")))
    try:
        __import__("ptxfence.integrations.activate")
    except Exception as error:
        print(f"ptxfence: this Python program is not watched: {error}", file=sys.stderr)
        if os.environ.get("PTXFENCE") == "error":
            raise SystemExit(1) from None  # the interpreter swallows any other exception here


if os.environ.get("PTXFENCE"):
    _activate()
_next_customization()
