"""A shadow of a CUDA toolkit: a folder of links in which `bin/ptxas` is our stand-in.

nvcc puts the folder that it was started from first on PATH (its `nvcc.profile`), so a stand-in elsewhere on PATH is
never seen by it. Started as `SHADOW/bin/nvcc`, a link, it takes `SHADOW` for its toolkit (nvcc 12.0 to 13.4).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from ptxfence.errors import InputError

_MODULES = ("ptxfence", "lark", "networkx")
"""What a watched process must be able to import; everything else that ptxfence uses is for people."""
_EXEC = re.compile(r"^exec\s+(/\S+/nvcc)\b", re.MULTILINE)


def command(words: Sequence[str]) -> int:
    """`ptxfence-ptxas --shadow-toolkit DIR [--toolkit ROOT]`; returns the exit status."""
    parser = argparse.ArgumentParser(prog="ptxfence-ptxas", description=__doc__)
    parser.add_argument("--shadow-toolkit", type=Path, required=True, metavar="DIR", help="the folder to make")
    parser.add_argument("--toolkit", type=Path, metavar="ROOT", help="the toolkit to shadow (default: that of nvcc)")
    arguments = parser.parse_args(words)
    root = arguments.toolkit or find_toolkit()
    if root is None:
        print("ptxfence-ptxas: no nvcc found; --toolkit names the CUDA toolkit", file=sys.stderr)
        return 2
    try:
        shadow(root, arguments.shadow_toolkit)
    except (InputError, OSError) as error:
        print(f"ptxfence-ptxas: {error}", file=sys.stderr)
        return 2
    print(arguments.shadow_toolkit.resolve())
    return 0


def find_toolkit() -> Path | None:
    """The root of the toolkit that `nvcc` on PATH, `CUDA_HOME` or `CUDA_PATH` belongs to."""
    found = shutil.which("nvcc")
    candidates = [] if found is None else [_behind(Path(found))]
    candidates += [Path(home) / "bin" / "nvcc" for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    for nvcc in candidates:
        if (nvcc.parent / "nvcc.profile").is_file() and (nvcc.parent / "ptxas").exists():
            return nvcc.parent.parent
    return None


def _behind(path: Path) -> Path:
    """The nvcc behind links and a one-line wrapper script."""
    real = path.resolve()
    with real.open("rb") as file:
        head = file.read(4096)
    script = _EXEC.search(head.decode("utf-8", "replace")) if head.startswith(b"#!") else None
    return Path(script[1]).resolve() if script else real


def shadow(root: Path, folder: Path) -> None:
    """Makes the shadow of toolkit `root` at `folder`, which must not exist or be empty.

    Raises InputError for a folder in use or a root without `bin/ptxas`, OSError.
    """
    root = root.resolve()
    if not (root / "bin" / "ptxas").exists():
        raise InputError(f"{root}: no bin/ptxas there")
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder}: not empty")
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    for entry in root.iterdir():
        if entry.name != "bin":
            (folder / entry.name).symlink_to(entry)
    for entry in (root / "bin").iterdir():
        if entry.name != "ptxas":
            (folder / "bin" / entry.name).symlink_to(entry)
    write_stand_in(folder / "bin" / "ptxas", root / "bin" / "ptxas")


def write_stand_in(path: Path, real: Path | None) -> None:
    """Writes an executable that stands in for `real` (None: whatever is found), independent of the environment."""
    roots = sorted({str(folder) for folder in module_roots().values()})
    start = f"import sys; sys.path.extend({roots!r}); from ptxfence.integrations.ptxas import main; sys.exit(main())"
    # Not `:=` but `=`: this stand-in belongs to this toolkit.
    setting = f"PTXFENCE_REAL_PTXAS={shlex.quote(str(real))} " if real is not None else ""
    path.write_text(f'#!/bin/sh\n{setting}exec {shlex.quote(sys.executable)} -c {shlex.quote(start)} "$@"\n')
    path.chmod(0o755)


def module_roots() -> dict[str, Path]:
    """Where the modules that a watched process needs were found: name -> folder to search."""
    from importlib.util import find_spec

    roots: dict[str, Path] = {}
    for name in _MODULES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            roots[name] = Path(spec.origin).resolve().parent.parent
    return roots
