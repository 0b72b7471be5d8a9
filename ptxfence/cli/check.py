"""Find missing, misplaced and superfluous proxy fences. Never writes to what it checks."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ptxfence.cli.formats import NAMES
from ptxfence.cli.gather import Gathered
from ptxfence.cli.options import add_paths, add_rule_options, add_run_options, require_one, resolver
from ptxfence.errors import InputError

if TYPE_CHECKING:
    from ptxfence.batch.examine import Task
    from ptxfence.cli.formats.run import Run
    from ptxfence.config import Settings
    from ptxfence.triage.baseline import Baseline
    from ptxfence.triage.result import FileResult

_PARALLEL_FROM = 4  # files; below that a process pool costs more than it saves


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=NAMES, default="text")
    group.add_argument("--output", "-o", type=Path, metavar="FILE", help="write the report there")
    group.add_argument("--baseline", metavar="FILE", help="findings listed there do not fail")
    group.add_argument("--write-baseline", type=Path, metavar="FILE", help="list the present findings in a file")
    group.add_argument("--diff-against", metavar="FOLDER", help="report only what that other dump does not have")
    group.add_argument("--shard", type=_shard, metavar="I/N", help="check every N-th file only, starting with I")
    add_rule_options(parser)
    add_run_options(parser)


def run(arguments: argparse.Namespace) -> int:
    require_one(("diff_against", "baseline"), arguments)
    from ptxfence.triage.summary import exit_status

    report, gathered = check(arguments)
    if arguments.write_baseline is not None:
        from ptxfence.triage.baseline import dump

        _write(arguments.write_baseline, dump(report.results))
    _publish(report, arguments.format, arguments.output)
    allowed = gathered.empty_allowed or arguments.shard is not None
    if not report.summary.kernels and not report.summary.failed_files and not allowed:
        print(f"ptxfence check: {gathered.complaint()}", file=sys.stderr)
    return exit_status(report.results, report.settings, allow_empty=allowed)


def check(arguments: argparse.Namespace) -> tuple[Run, Gathered]:
    """Check the paths of a command line."""
    from ptxfence.cli.formats.run import Run
    from ptxfence.triage.settle import settle
    from ptxfence.triage.summary import summarise

    started = time.perf_counter()
    gathered = Gathered(resolver(arguments), keep_texts=arguments.format == "html")
    known = _reference(arguments) if arguments.diff_against else None
    raw, duplicates = _examine(gathered, arguments.paths, arguments)
    results = tuple(settle(result, gathered.settings[result.path]) for result in raw)
    results = known.apply(results) if known is not None else with_baselines(results, gathered.settings)
    summary = summarise(results, time.perf_counter() - started, duplicates)
    return Run(results, summary, gathered.settings, Path.cwd(), gathered.texts), gathered


def _examine(
    gathered: Gathered, paths: Iterable[str], arguments: argparse.Namespace
) -> tuple[list[FileResult], int]:
    from ptxfence.batch.pool import Runner, available_cores

    tasks = _sharded(gathered.tasks(paths), arguments.shard)
    first: list[Task] = []
    for task in tasks:
        first.append(task)
        if len(first) >= _PARALLEL_FROM:
            break
    jobs = gathered.resolver.command_line.jobs or (1 if len(first) < _PARALLEL_FROM else available_cores())
    with _cache(arguments) as cache:
        runner = Runner(jobs, cache)
        results = list(_watched(runner.run(_chain(first, tasks)), paths, len(first)))
    results.extend(gathered.failures)
    return results, runner.duplicates


def _reference(arguments: argparse.Namespace) -> Baseline:
    """The findings of the other dump, under the same settings."""
    from ptxfence.triage.baseline import of_results
    from ptxfence.triage.settle import settle

    gathered = Gathered(resolver(arguments))
    raw, _ = _examine(gathered, [arguments.diff_against], arguments)
    return of_results(settle(result, gathered.settings[result.path]) for result in raw)


def with_baselines(results: tuple[FileResult, ...], settings: Mapping[str, Settings]) -> tuple[FileResult, ...]:
    """The results with what their baselines know suppressed; each baseline is for all the files that name it."""
    groups: dict[Path, list[int]] = {}
    for number, result in enumerate(results):
        path = settings[result.path].baseline
        if path is not None:
            groups.setdefault(path, []).append(number)
    changed = list(results)
    for path, numbers in groups.items():
        from ptxfence.triage.baseline import load

        known = load(path).apply([results[number] for number in numbers])
        for number, result in zip(numbers, known, strict=True):
            changed[number] = result
    return tuple(changed)


def _cache(arguments: argparse.Namespace):
    if arguments.no_cache:
        return nullcontext()
    from ptxfence.batch.cache import ResultCache

    return ResultCache(arguments.cache_dir)


def _watched(results: Iterator[FileResult], paths: Iterable[str], count: int) -> Iterator[FileResult]:
    """The results behind a progress bar, where there is a person to see it and something to wait for."""
    if count < _PARALLEL_FROM or not sys.stderr.isatty():
        return results
    from ptxfence.cli.progress import watched

    return watched(results, paths)


def _sharded(tasks: Iterator[Task], shard: tuple[int, int] | None) -> Iterator[Task]:
    """This shard's part, chosen by the bytes' hash: equal files meet in one shard, whatever the order of the folder."""
    if shard is None:
        return tasks
    number, of = shard
    return (task for task in tasks if int(task.sha256[:16], 16) % of == number - 1)


def _chain(first: list[Task], rest: Iterator[Task]) -> Iterator[Task]:
    yield from first
    yield from rest


def _publish(report: Run, form: str, output: Path | None) -> None:
    from ptxfence.cli.formats import render

    if form == "text" and output is None:
        from ptxfence.cli.formats.segments import show
        from ptxfence.cli.formats.text import lines_of

        show(lines_of(report), sys.stdout)
        return
    text = render(form, report)
    if output is None:
        sys.stdout.write(text)
    else:
        _write(output, text)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r}: expected I/N with 1 <= I <= N")
    return int(number), int(of)
