"""Run a program with every kernel that it compiles checked or patched, in child processes too.

    ptxfence run --fix -- python train.py

The program's exit status and output are its own; the summary goes to standard error or to --report.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ptxfence.errors import ConfigError

if TYPE_CHECKING:
    from ptxfence.integrations.journal import Entry, Totals
    from ptxfence.integrations.process import Watched

_SHOWN = 20  # findings and failures in the summary; --report has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    modes = parser.add_mutually_exclusive_group()
    for mode, meaning in (
        ("check", "report what is found (default)"),
        ("fix", "insert the missing fences"),
        ("error", "refuse kernels with findings at or above fail-on"),
    ):
        modes.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode, help=meaning)
    parser.add_argument("--report", type=Path, metavar="FILE", help="write everything seen there, as JSON")
    parser.add_argument("--settings", type=Path, metavar="FILE", help="ptxfence.toml or pyproject.toml to use")
    parser.add_argument("--record", type=Path, metavar="DIR", help="record Triton launches for `ptxfence race`")
    parser.add_argument("--quiet", action="store_true", help="no summary")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM ARGS")


def run(arguments: argparse.Namespace) -> int:
    from ptxfence.integrations.outcome import mode_of
    from ptxfence.integrations.process import run_watched

    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise ConfigError("no program given: ptxfence run [--check|--fix|--error] -- PROGRAM ARGS")
    mode = mode_of(arguments.mode or "check")
    if arguments.record is not None:
        arguments.record.mkdir(parents=True, exist_ok=True)
    watched = run_watched(command, mode, settings=arguments.settings, record=arguments.record)
    if arguments.report is not None:
        from ptxfence.rewrite.atomic import create

        create(arguments.report, (json.dumps(_report(watched, command, mode), indent=1) + "\n").encode())
    if not arguments.quiet:
        print(_summary(watched), file=sys.stderr)
    return watched.status


def _report(watched: Watched, command: list[str], mode: str) -> dict[str, object]:
    from ptxfence import __version__
    from ptxfence.integrations.journal import totals

    return {
        "schema": 1,
        "tool": {"name": "ptxfence", "version": __version__},
        "command": command,
        "mode": mode,
        "status": watched.status,
        "seconds": round(watched.seconds, 3),
        "summary": asdict(totals(watched.entries)),
        "kernels": [asdict(entry) for entry in watched.entries],
    }


def _summary(watched: Watched) -> str:
    from ptxfence.integrations.journal import totals

    count = totals(watched.entries)
    lines = [f"ptxfence: {_counts(count)}"]
    lines += _limited([notice.sentence() for notice in _notices(watched.entries)], "findings")
    lines += _limited(_failures(watched.entries), "kernels left as they are")
    return "\n".join(lines)


def _counts(count: Totals) -> str:
    parts = [
        _number(count.kernels, "kernel"),
        _number(count.errors, "error"),
        _number(count.warnings, "warning"),
        f"{count.undecided} undecided",
        f"{count.patched} patched ({_number(count.fences, 'fence')})",
        f"{count.cached} from a cache",
        f"{count.seconds:.2f} s in ptxfence",
        _number(count.processes, "process", "processes"),
    ]
    if count.failures:
        parts.insert(4, f"{count.failures} not examined")
    return ", ".join(parts)


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _notices(entries: tuple[Entry, ...]):
    told = {notice: None for entry in entries for notice in entry.notices if notice.severity != "note"}
    return sorted(told, key=lambda notice: (notice.repaired, notice.source, notice.line))


def _failures(entries: tuple[Entry, ...]) -> list[str]:
    return list(dict.fromkeys(f"{entry.name} left as it is: {entry.failure}" for entry in entries if entry.failure))


def _limited(lines: list[str], what: str) -> list[str]:
    shown = [f"  {line}" for line in lines[:_SHOWN]]
    if len(lines) > _SHOWN:
        shown.append(f"  and {len(lines) - _SHOWN} more {what} (--report FILE has all)")
    return shown
