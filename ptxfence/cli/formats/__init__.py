"""Output formats. Each is a module with `render(run) -> str`, imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from ptxfence.cli.formats.run import Run

_MODULES = {
    "text": "text",
    "json": "jsonfile",
    "jsonl": "jsonlines",
    "sarif": "sarif",
    "github": "github",
    "junit": "junit",
    "html": "html",
}
NAMES = tuple(_MODULES)


def render(name: str, run: Run) -> str:
    """The run in the format of that name, with a final line end."""
    return import_module(f"ptxfence.cli.formats.{_MODULES[name]}").render(run)
