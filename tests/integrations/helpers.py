"""Starting processes that are watched, with the real analysis or with one of fakes/sitecustomize.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
CORPUS = REPOSITORY / "corpus"
BUGGY = CORPUS / "ptx" / "triton-3.7.0" / "store_tile_nofence.sm_90.ptx"
CLEAN = CORPUS / "ptx" / "triton-3.7.0" / "store_tile_fence.sm_90.ptx"
PRESENT = {"check": 0, "fix": 1}
FENCE = "fence.proxy.async"


def environment(fake: str = "", **changes: str) -> dict[str, str]:
    """An environment in which ptxfence can be imported and nothing of it is active yet."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PTXFENCE", "TRITON_"))}
    folders = [str(REPOSITORY), *([str(HERE / "fakes")] if fake else []), *changes.pop("PYTHONPATH", "").split(":")]
    plain["PYTHONPATH"] = ":".join(filter(None, folders))
    if fake:
        plain["PTXFENCE_TEST_FAKE"] = fake
    return {**plain, **changes}


def run(command: list[str], env: dict[str, str], timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False)


def watched(
    command: list[str], env: dict[str, str], *options: str, report: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`ptxfence run OPTIONS -- COMMAND`."""
    extra = ["--report", str(report)] if report else []
    return run([sys.executable, "-m", "ptxfence", "run", *options, *extra, "--", *command], env)


def read_report(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def script(path: Path, text: str) -> Path:
    """An executable file."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def fake_ptxas(folder: Path) -> Path:
    """A ptxas that copies its last input to its output and writes its arguments beside itself."""
    return script(
        folder / "real-ptxas",
        f"""#!{sys.executable}
import shutil, sys
from pathlib import Path
words = sys.argv[1:]
if "--version" in words:
    print("ptxas: NVIDIA (R) Ptx optimizing assembler\\nCuda compilation tools, release 13.0, V13.0.88")
    sys.exit(0)
Path(__file__).with_name("arguments").write_text("\\n".join(words))
if words[:1] == ["--options-file"]:
    import shlex
    words = shlex.split(Path(words[1]).read_text())
inputs = [word for word in words if word.endswith(".ptx")]
text = Path(inputs[-1]).read_text()
print("ptxas info    : compiling " + inputs[-1], file=sys.stderr)
if "this is no PTX" in text:
    print("ptxas " + inputs[-1] + ", line 1; fatal   : syntax error", file=sys.stderr)
    sys.exit(255)
if "-o" in words:
    shutil.copy(inputs[-1], words[words.index("-o") + 1])
sys.exit(int(text.partition("// exit ")[2].split()[0]) if "// exit " in text else 0)
""",
    )
