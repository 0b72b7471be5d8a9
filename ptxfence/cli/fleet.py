"""Check a compile cache of any size on a Dask cluster; the results are Parquet tables.

    ptxfence fleet s3://bucket/triton-cache --output results/ --scheduler tcp://scheduler:8786
    ptxfence fleet /var/cache/triton --output results/ --workers 16

A run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ptxfence.cli.options import add_rule_options, require_one, resolver
from ptxfence.errors import ConfigError, InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", metavar="URL", help="folder or object store, anything that fsspec reads")
    parser.add_argument("--output", "-o", required=True, metavar="URL", help="folder for the Parquet tables")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="Dask scheduler to use")
    parser.add_argument("--workers", type=int, metavar="N", help="local worker processes (default: one per core)")
    parser.add_argument("--batch", type=int, default=200, metavar="N", help="files per task (default: 200)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit per kernel")
    parser.add_argument("--allow-empty", action="store_true", default=None, help="finding no kernel is no failure")
    add_rule_options(parser)


def run(arguments: argparse.Namespace) -> int:
    require_one(("scheduler", "workers"), arguments)
    if arguments.batch < 1 or (arguments.workers is not None and arguments.workers < 1):
        raise ConfigError("--batch and --workers need positive numbers")
    from ptxfence.fleet.libraries import library

    try:
        distributed, _, _ = map(library, ("distributed", "fsspec", "pyarrow"))
    except ImportError as error:
        raise ConfigError(f"{error}; install ptxfence[fleet]") from None
    with _client(distributed, arguments) as client:
        return _run(client, arguments)


def _run(client: Any, arguments: argparse.Namespace) -> int:
    from ptxfence.batch.cache import package_stamp
    from ptxfence.config import Settings
    from ptxfence.fleet.batches import cut, find
    from ptxfence.fleet.drive import drive, write_summary
    from ptxfence.fleet.libraries import absolute

    settings: Settings = resolver(arguments).of("-")
    if settings.baseline is not None:
        raise ConfigError("fleet knows no baseline; compare the tables by id")
    paths = list(find(arguments.paths))
    if not paths and not settings.allow_empty:
        raise InputError(f"no PTX below {', '.join(arguments.paths)}; --allow-empty accepts that")
    output = absolute(arguments.output)
    batches = list(cut(paths, arguments.batch, output, settings, package_stamp()))
    found = drive(client, batches, _progress(len(paths)))
    if not batches:
        return 0
    summary = write_summary(output, batches, found)
    print(f"{summary['files']} files, {summary['kernels']} kernels: {summary['verdicts']}, {summary['rules']}")
    return _status(summary, settings, output)


def _status(summary: dict[str, Any], settings: Any, output: str) -> int:
    from ptxfence.triage.summary import BROKEN, CLEAN, FINDINGS, UNDECIDED

    if summary["errors_by_kind"] or (not summary["kernels"] and not settings.allow_empty):
        return BROKEN
    if settings.fail_on is not None and _failing(output, settings.fail_on):
        return FINDINGS
    return UNDECIDED if settings.strict and summary["verdicts"].get("undecided") else CLEAN


def _failing(output: str, limit: Any) -> int:
    """How many active findings lie at or above a severity."""
    from ptxfence.analysis.report import Severity
    from ptxfence.fleet.libraries import library, store_at

    store, root = store_at(output)
    dataset = library("pyarrow.dataset")
    levels = [level.name.lower() for level in Severity if level >= limit]
    field = dataset.field
    table = dataset.dataset(f"{root}/findings", filesystem=store, format="parquet")
    return table.count_rows(filter=field("severity").isin(levels) & field("suppressed").is_null())


def _client(distributed: Any, arguments: argparse.Namespace) -> Any:
    if arguments.scheduler:
        try:
            return distributed.Client(arguments.scheduler, timeout=30)
        except (OSError, ValueError) as error:
            raise ConfigError(f"no scheduler at {arguments.scheduler}: {error}") from None
    from ptxfence.batch.pool import available_cores

    workers = arguments.workers or available_cores()
    return distributed.Client(n_workers=workers, threads_per_worker=1, dashboard_address=None)


def _progress(files: int) -> Any:
    """Plain lines in a log, one for every tenth of the files."""
    shown = 0

    def report(total: Any) -> None:
        nonlocal shown
        tenth = total.files * 10 // max(files, 1)
        if tenth > shown:
            shown = tenth
            print(f"{total.files} of {files} files, {total.errors} errors", file=sys.stderr)

    return report
