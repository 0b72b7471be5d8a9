"""Assembles PTX with ptxas: the newest one found that takes the file's `.version` and target."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ptxfence.errors import AssemblyError
from ptxfence.rewrite.tools import Outcome, Tool, find, run

DEFAULT_TIMEOUT = 600.0
"""Seconds that one run of ptxas may take."""

_TARGET = re.compile(r"^[^/\n\"]*?\.target\s+(?P<arch>sm_\w+)", re.MULTILINE)
# "ptxas a.ptx, line 58; error   : text", "ptxas fatal   : text", "ptxas info    : text"
_LINE = re.compile(r"^ptxas (?:.*?, line (?P<line>\d+); )?(?P<kind>error|fatal|warning|info)\s*: (?P<text>.*)$")
# Words of ptxas 12.9 to 13.5 for "this file is not for me": a newer or older copy may take it.
_NOT_FOR_ME = re.compile(r"Unsupported \.version|is not defined for option 'gpu-name'|Unsupported \.target")
_UNRESOLVED = "Unresolved extern function"
_PROPERTIES = re.compile(r"(?:Function properties for|Compiling entry function) '?(?P<name>[\w$.]+)'?")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True, slots=True)
class Resources:
    """What ptxas says a function uses; sizes in bytes. `registers` is None for a `.func` with its own ABI frame."""

    registers: int | None = None
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Assembly:
    """A cubin with what made it. `warnings` are ptxas's own lines, mapped to PTX lines."""

    cubin: bytes
    ptxas: Tool
    arch: str
    resources: Mapping[str, Resources]
    warnings: tuple[str, ...] = ()


def assemble(
    text: str, arch: str | None = None, *, filename: str = "<string>", timeout: float = DEFAULT_TIMEOUT
) -> bytes:
    """The cubin of PTX `text` for `arch` (default: its `.target`).

    Raises AssemblyError: no ptxas found, none takes the file, the text is wrong (`diagnostics` holds ptxas's own
    lines with `filename:line`), or it ran longer than `timeout` seconds.
    """
    return build(text, arch, filename=filename, timeout=timeout).cubin


def build(
    text: str,
    arch: str | None = None,
    *,
    filename: str = "<string>",
    timeout: float = DEFAULT_TIMEOUT,
    ptxas: Tool | None = None,
) -> Assembly:
    """As `assemble`, with everything known about the result. `ptxas` fixes the copy to use."""
    arch = arch or target_of(text)
    tools = (ptxas,) if ptxas else find("ptxas")
    if not tools:
        raise AssemblyError("no ptxas found: install nvidia-cuda-nvcc, put ptxas on PATH, or set PTXFENCE_PTXAS")
    refusals: list[str] = []
    for tool in tools:
        built, lines = _run_ptxas(tool, text, arch, filename, timeout)
        if built is not None:
            return built
        if not any(_NOT_FOR_ME.search(line) for line in lines):
            raise AssemblyError(f"{tool.name} refuses {filename}", lines)
        refusals += [f"{tool.name}: {line}" for line in lines[:1]]
    raise AssemblyError(f"no ptxas found takes {filename}", tuple(refusals))


def target_of(text: str) -> str:
    """The first architecture that the file's `.target` names, e.g. `sm_90a`; raises AssemblyError if there is none."""
    match = _TARGET.search(text)
    if match is None:
        raise AssemblyError("the text has no .target directive")
    return match["arch"]


def available() -> bool:
    """Whether a ptxas is there at all."""
    return bool(find("ptxas"))


def _run_ptxas(
    tool: Tool, text: str, arch: str, filename: str, timeout: float
) -> tuple[Assembly | None, tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="ptxfence-") as name:
        folder = Path(name)
        source, cubin = folder / "in.ptx", folder / "out.cubin"
        source.write_bytes(text.encode("utf-8", "surrogateescape"))
        command = [tool.path, "-v", f"-arch={arch}", source.name, "-o", cubin.name]
        outcome = _checked(tool, command, folder, timeout)
        if outcome.status != 0 and _UNRESOLVED in outcome.stderr:
            # A library: extern functions are found at link time. -c leaves them open.
            outcome = _checked(tool, [*command, "-c"], folder, timeout)
        lines = _messages(outcome, filename)
        if outcome.status < 0:
            return None, (f"{tool.name} was ended by signal {-outcome.status}", *lines)
        if outcome.status != 0:
            return None, lines or (f"{tool.name} failed with status {outcome.status} and no message",)
        if not cubin.is_file() or not (data := cubin.read_bytes()).startswith(b"\x7fELF"):
            return None, (f"{tool.name} reported success but wrote no cubin", *lines)
    return Assembly(data, tool, arch, _resources(outcome.stderr + outcome.stdout), lines), ()


def _checked(tool: Tool, command: list[str], folder: Path, timeout: float) -> Outcome:
    try:
        return run(command, timeout=timeout, folder=folder)
    except TimeoutError:
        raise AssemblyError(f"{tool.name} did not end within {timeout:g} s and was stopped") from None
    except OSError as error:
        raise AssemblyError(f"{tool.path} cannot be run: {os.strerror(error.errno or 0)}") from None


def _messages(outcome: Outcome, filename: str) -> tuple[str, ...]:
    """Errors and warnings, with the temporary file's name replaced by the real one."""
    lines: list[str] = []
    for raw in (outcome.stderr + outcome.stdout).splitlines():
        match = _LINE.match(raw)
        if match is None or match["kind"] == "info":
            continue
        place = f"{filename}:{match['line']}: " if match["line"] else ""
        lines.append(f"{place}{match['kind']}: {match['text']}")
    return tuple(lines)


def _resources(log: str) -> dict[str, Resources]:
    """Parses `-v`: an entry is announced, then its properties, then its registers."""
    result: dict[str, Resources] = {}
    name, frame = "", (0, 0, 0)
    for line in log.splitlines():
        if match := _PROPERTIES.search(line):
            name, frame = match["name"], (0, 0, 0)
        elif match := _SPILLS.search(line):
            frame = (int(match[1]), int(match[2]), int(match[3]))
            result[name] = Resources(None, *frame)
        elif match := _USED.search(line):
            shared = _SHARED.search(line)
            result[name] = Resources(int(match[1]), *frame, shared=int(shared[1]) if shared else 0)
    return result
