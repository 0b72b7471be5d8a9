"""Insert the missing fences. Shows the difference and writes nothing, unless it is told where to.

Standard output carries the difference (or the text, for `-`); the report goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ptxfence.cli.gather import Gathered
from ptxfence.cli.options import add_paths, add_rule_options, require_one, resolver
from ptxfence.config import POLICIES
from ptxfence.errors import ConfigError, InputError

if TYPE_CHECKING:
    from ptxfence.batch.examine import Task
    from ptxfence.cli.patching import Patched
    from ptxfence.triage.result import FileResult

STDIN = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--diff", action="store_true", help="show the difference (the default)")
    group.add_argument("--write", action="store_true", help="patch the files in place, each in one step")
    group.add_argument("--output", "-o", type=Path, metavar="FILE|DIR", help="write the patched text there")
    group.add_argument("--check", action="store_true", help="write nothing; exit 1 if a patch is needed")
    patch = parser.add_argument_group("patch")
    patch.add_argument("--fix-level", choices=("error", "warning"), help="repair findings from here (default: error)")
    patch.add_argument("--policy", choices=POLICIES, help="where fences go (default: writer-side)")
    patch.add_argument(
        "--optimize",
        action="store_true",
        default=None,
        help="also narrow, hoist and remove fences that are proven unnecessary",
    )
    patch.add_argument(
        "--assemble",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="re-assemble with ptxas and compare before anything is written (default: where ptxas is found)",
    )
    patch.add_argument("--kernel", metavar="NAME", help="patch this kernel only")
    patch.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit per kernel")
    patch.add_argument("--allow-empty", action="store_true", default=None, help="finding no kernel is no failure")
    patch.add_argument("--baseline", metavar="FILE", help="leave the findings listed there alone")
    add_rule_options(parser)


def run(arguments: argparse.Namespace) -> int:
    require_one(("write", "output", "check", "diff"), arguments)
    if arguments.write and STDIN in arguments.paths:
        raise ConfigError("--write cannot write to standard input")
    started = time.perf_counter()
    gathered = Gathered(resolver(arguments))
    outcomes = [_one(task, gathered, arguments) for task in gathered.tasks(arguments.paths)]
    status = _status(outcomes, gathered, arguments)
    _report(outcomes, gathered, started)
    return status


def _one(task: Task, gathered: Gathered, arguments: argparse.Namespace) -> Patched:
    from ptxfence.cli.patching import patch

    patched = patch(task, gathered.settings[task.path], assemble=arguments.assemble)
    try:
        _deliver(patched, arguments)
    except InputError as error:
        from dataclasses import replace

        from ptxfence.triage.result import failure

        return replace(patched, text=patched.before, result=failure(task.path, task.sha256, error.kind, str(error)))
    return patched


def _deliver(patched: Patched, arguments: argparse.Namespace) -> None:
    if arguments.check:
        return None
    if arguments.output is not None:
        return _write_copy(patched, arguments)
    if arguments.write:
        return _write_back(patched)
    if arguments.paths == [STDIN] and not arguments.diff:
        _print(patched.text)
    elif patched.changed:
        from ptxfence.rewrite.edits import diff

        _print(diff(patched.path, patched.before, patched.text))
    return None


def _write_back(patched: Patched) -> None:
    """Raises InputError where the file is no PTX text of its own, or has changed since it was read."""
    if not patched.changed:
        return
    from ptxfence.rewrite.atomic import read, replace

    snapshot = read(patched.path)
    if snapshot.data != _bytes(patched.before):
        raise InputError(f"{patched.path}: changed since it was read, or not a plain PTX file; not written")
    replace(snapshot, _bytes(patched.text))


def _write_copy(patched: Patched, arguments: argparse.Namespace) -> None:
    from ptxfence.rewrite.atomic import create

    if patched.result.failed:
        return
    target: Path = arguments.output
    several = len(arguments.paths) > 1 or Path(arguments.paths[0]).is_dir()
    if several or target.is_dir():
        target = _below(target, patched.path, arguments.paths)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{target.parent}: {error.strerror}") from None
    create(target, _bytes(patched.text))


def _below(folder: Path, path: str, roots: list[str]) -> Path:
    """Where the copy of a file goes: its path below the folder of the command line that it was found in."""
    if path == STDIN:
        return folder / "stdin.ptx"
    for root in roots:
        if Path(root).is_dir() and Path(path).is_relative_to(root):
            return folder / Path(path).relative_to(root)
    return folder / Path(path).name


def _status(outcomes: list[Patched], gathered: Gathered, arguments: argparse.Namespace) -> int:
    from ptxfence.triage.summary import BROKEN, FINDINGS, exit_status

    results = _results(outcomes, gathered)
    allowed = gathered.empty_allowed
    if not any(result.kernels or result.failed for result in results) and not allowed:
        print(f"ptxfence fix: {gathered.complaint()}", file=sys.stderr)
    status = exit_status(results, gathered.settings, allow_empty=allowed)
    if arguments.check and status != BROKEN and any(patched.changed for patched in outcomes):
        return FINDINGS
    return status


def _report(outcomes: list[Patched], gathered: Gathered, started: float) -> None:
    from ptxfence.cli.formats.run import Run
    from ptxfence.cli.formats.segments import Line, show
    from ptxfence.cli.formats.text import lines_of
    from ptxfence.triage.summary import summarise

    lines: list[Line] = []
    for patched in outcomes:
        if patched.changed:
            plural = "" if patched.inserted == 1 else "s"
            lines.append([(f"{patched.path}: ", "bold"), (f"{patched.inserted} edit{plural}", "green")])
        lines.extend([("    ptxas: ", "dim"), (remark, "dim")] for remark in patched.remarks)
    results = _results(outcomes, gathered)
    run = Run(results, summarise(results, time.perf_counter() - started), gathered.settings, Path.cwd())
    show([*lines, *lines_of(run)], sys.stderr)


def _results(outcomes: list[Patched], gathered: Gathered) -> tuple[FileResult, ...]:
    return (*(patched.result for patched in outcomes), *gathered.failures)


def _print(text: str) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(_bytes(text))
    sys.stdout.buffer.flush()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
