"""ptxas for the tests of the front end: the newest one that is there, and what it says of a text."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from enum import Enum
from functools import cache
from importlib import util
from pathlib import Path


class Verdict(Enum):
    ACCEPTED = "accepted"
    SYNTAX = "syntax error"
    SEMANTIC = "other error"


@cache
def ptxas() -> str | None:
    """The ptxas of the package nvidia-cuda-nvcc, else the one on PATH."""
    found = util.find_spec("nvidia")
    for folder in (found.submodule_search_locations or []) if found else []:
        for path in sorted(Path(folder).glob("*/bin/ptxas"), reverse=True):
            return str(path)
    return shutil.which("ptxas")


def assemble(text: str, arch: str) -> tuple[Verdict, str]:
    """What ptxas says of `text`, and its first error line."""
    tool = ptxas()
    assert tool is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.ptx")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        command = [tool, "-arch", arch, "-O0", str(path), "-o", str(Path(folder, "k.cubin"))]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return Verdict.ACCEPTED, ""
    said = (done.stdout + done.stderr).replace(str(path), "k.ptx").splitlines()
    errors = [line for line in said if "error" in line or "fatal" in line] or ["no message"]
    syntax = [line for line in errors if "Parsing error" in line or "Unexpected non-ASCII" in line]
    return (Verdict.SYNTAX, syntax[0]) if syntax else (Verdict.SEMANTIC, errors[0])
