"""`ptxfence-ptxas`: stands in for ptxas. Checks or patches the input, then runs the real ptxas with the same arguments.

    TRITON_PTXAS_PATH=$(which ptxfence-ptxas) PTXFENCE=fix python program.py
    ptxfence-ptxas --shadow-toolkit DIR [--toolkit CUDA_HOME]   # a CUDA toolkit of links with this ptxas in it

`PTXFENCE` is the mode (default `check`), `PTXFENCE_REAL_PTXAS` the ptxas to run (default: the newest one found).
Our part runs in a process of its own with a limit on time and memory. Should it fail, the real ptxas gets the
untouched input, and one line on standard error says so; in `error` mode nothing is assembled then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ptxfence.integrations.ptxas_inputs import Arguments, read_arguments

REAL_VARIABLE = "PTXFENCE_REAL_PTXAS"
INSIDE_VARIABLE = "PTXFENCE_INSIDE"
"""Set while we look for the real ptxas: a stand-in that is asked then is not it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs as ptxas with `argv`, without the program's name. Returns the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if os.environ.get(INSIDE_VARIABLE):
        return 1
    if "--shadow-toolkit" in words:
        from ptxfence.integrations.toolkit import command

        return command(words)
    real = real_ptxas()
    if real is None:
        _say(f"no ptxas found; {REAL_VARIABLE} names it")
        return 1
    if any(word in ("--version", "-V") for word in words):
        return _version(real, words)
    return _assemble(real, words)


def real_ptxas() -> str | None:
    """Path of the ptxas to run: the one that the environment names, else the newest that is not a stand-in."""
    if named := os.environ.get(REAL_VARIABLE):
        return named
    from ptxfence.errors import AssemblyError
    from ptxfence.rewrite.tools import find

    os.environ[INSIDE_VARIABLE] = "1"
    try:
        tools = find("ptxas")
    except AssemblyError:
        return None
    finally:
        del os.environ[INSIDE_VARIABLE]
    return tools[0].path if tools else None


def _mode() -> str:
    return os.environ.get("PTXFENCE", "").strip().lower() or "check"


def _version(real: str, words: list[str]) -> int:
    """What the real ptxas says and a line of ours: tools that cache by this text keep our results apart."""
    status = subprocess.run([real, *words], check=False).returncode
    try:
        from ptxfence.integrations.outcome import Mode, cache_key

        print(cache_key(Mode(_mode())), flush=True)
    except Exception as error:
        _say(f"inactive: {error}")
    return status


def _assemble(real: str, words: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="ptxfence-") as folder:
        try:
            arguments = read_arguments(words)
            patched, refusal = _examined(arguments, Path(folder))
            if arguments.strings:
                refusal = refusal or "PTX given as a string (--input-as-string) is not examined"
            command = arguments.replaced(patched, Path(folder)) if patched else words
        except Exception as error:
            patched, refusal, command = {}, f"{type(error).__name__}: {error}", words
        if refusal and (_mode() == "error"):
            _say(refusal)
            return 1
        if refusal:
            _say(f"ptxas works on the untouched input: {refusal}")
        if patched:
            status = _run_patched(real, command, patched)
            if status == 0:
                return 0
            _say("ptxas refused the patched input and works on the untouched one")
    return _become(real, words)


def _examined(arguments: Arguments, folder: Path) -> tuple[dict[str, Path], str]:
    """Input word -> patched file, for the inputs that are patched; and why something was not done, or empty."""
    if not arguments.inputs:
        return {}, ""
    from ptxfence.integrations.confined import run_confined

    return run_confined(arguments.inputs, folder, _mode())


def _run_patched(real: str, command: list[str], patched: dict[str, Path]) -> int:
    """Runs ptxas on patched files; its messages come through only on success, with the names of the originals."""
    process = subprocess.run([real, *command], check=False, capture_output=True)
    if process.returncode != 0:
        return process.returncode
    for stream, data in ((sys.stdout, process.stdout), (sys.stderr, process.stderr)):
        for original, path in patched.items():
            data = data.replace(os.fsencode(path), os.fsencode(original))
        stream.flush()
        stream.buffer.write(data)
        stream.flush()
    return 0


def _become(real: str, words: list[str]) -> int:
    """The real ptxas in our place; the status of one that cannot be started is a shell's."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(real, [real, *words])
    except OSError as error:
        _say(f"{real} cannot be run: {error.strerror}")
        return 126


def _say(text: str) -> None:
    print(f"ptxfence-ptxas: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    raise SystemExit(main())
