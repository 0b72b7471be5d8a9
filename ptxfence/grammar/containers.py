"""PTX inside fat binaries, cubins, objects and libraries, through cuobjdump (CUDA toolkit)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib import util
from pathlib import Path

from ptxfence.errors import InputError

_MAGIC = (b"\x7fELF", b"\x50\xed\x55\xba", b"MZ")  # ELF (cubin, .o, .so), fat binary, Windows
_SECONDS = 120


def is_container(data: bytes) -> bool:
    """Whether a file's bytes are of a kind that can hold PTX beside machine code."""
    return data.startswith(_MAGIC)


def cuobjdump() -> str | None:
    """cuobjdump on PATH, of a CUDA toolkit, or of the package nvidia-cuda-cuobjdump."""
    found = shutil.which("cuobjdump")
    if found is not None:
        return found
    package = util.find_spec("nvidia")
    folders = [Path(folder) for folder in (package.submodule_search_locations or [])] if package else []
    for path in [*(tool for folder in folders for tool in folder.glob("*/bin/cuobjdump")), _TOOLKIT]:
        if path.is_file():
            return str(path)
    return None


_TOOLKIT = Path("/usr/local/cuda/bin/cuobjdump")


def extract(path: Path) -> list[tuple[str, bytes]]:
    """(name, text) of every PTX module in the file. Raises InputError where cuobjdump is missing or fails."""
    tool = cuobjdump()
    if tool is None:
        raise InputError(f"{path}: PTX inside a binary needs cuobjdump (CUDA toolkit, or pip: nvidia-cuda-cuobjdump)")
    with tempfile.TemporaryDirectory() as folder:
        command = [tool, "-xptx", "all", str(path.resolve())]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"{path}: cuobjdump failed: {error}") from error
        found = [(item.name, item.read_bytes()) for item in sorted(Path(folder).glob("*.ptx"))]
    said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    if done.returncode != 0 and not found and "does not contain" not in said:
        raise InputError(f"{path}: cuobjdump failed: {said or done.returncode}")
    return found
