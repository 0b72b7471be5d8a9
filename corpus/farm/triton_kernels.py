"""Compiles triton_variants.py with every Triton release: ``python triton_kernels.py OUT TOOLS [RELEASE ...]``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from common import Farm, install

CORPUS = Path(__file__).resolve().parents[1]
RELEASES = ("3.5.1", "3.6.0", "3.7.0", "3.7.1", "3.8.0", "3.9.0")


def main() -> int:
    """Command line."""
    out, tools = Path(sys.argv[1]), Path(sys.argv[2])
    status = 0
    for release in sys.argv[3:] or RELEASES:
        wheel = install([f"triton=={release}"], tools / f"triton-{release}")
        farm = Farm(out, f"triton-variants-{release}")
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-P", str(CORPUS / "compile_triton.py"), str(wheel), folder]
            result = subprocess.run(
                [*command, "farm.triton_variants"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=False,
            )
            for line in result.stdout.splitlines():
                state, name, *reason = line.split(" ", 2)
                if state == "ok":
                    text = (Path(folder) / name).read_text(encoding="utf-8")
                    farm.add(name.removesuffix(".ptx"), text, f"triton {release}: farm/triton_variants.py")
                else:
                    farm.fail(name, " ".join(reason))
        status |= farm.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
