"""Draw kernels as one HTML page with SVG: blocks, accesses, barriers, the path of each hazard, the proposed fence."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ptxfence.cli.gather import Gathered
from ptxfence.cli.options import add_paths, resolver

_ADDRESSES = "ptxfence.cli.addresses"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help="write the page there (default: stdout)")
    parser.add_argument("--kernel", metavar="NAME", help="this kernel only")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit per kernel")
    if find_spec(_ADDRESSES) is not None:
        parser.add_argument("--addresses", action="store_true", help="list what is known of every address instead")
    parser.add_argument("--isolated", action="store_true", help="read no settings file")


def run(arguments: argparse.Namespace) -> int:
    if getattr(arguments, "addresses", False):
        return _addresses(arguments)
    from ptxfence.cli.check import check
    from ptxfence.cli.formats import render
    from ptxfence.triage.summary import BROKEN

    defaults = argparse.Namespace(
        format="html",
        baseline=None,
        diff_against=None,
        shard=None,
        no_cache=False,
        cache_dir=None,
        select=None,
        ignore=None,
        severity=[],
        fail_on="never",
        strict=None,
        jobs=None,
        allow_empty=None,
        **vars(arguments),
    )
    report, _ = check(defaults)
    text = render("html", report)
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        from ptxfence.rewrite.atomic import create

        create(arguments.output, text.encode("utf-8", "replace"))
    return BROKEN if report.summary.failed_files or not report.summary.kernels else 0


def _addresses(arguments: argparse.Namespace) -> int:
    """The values of every address as text, module by module."""
    from ptxfence.grammar import parse, validate
    from ptxfence.triage.summary import BROKEN

    view: Any = import_module(_ADDRESSES)
    gathered = Gathered(resolver(arguments))
    status = 0
    for task in gathered.tasks(arguments.paths):
        file = parse(task.text, task.path)
        if errors := validate(file):
            print(errors[0], file=sys.stderr)
            status = BROKEN
            continue
        sys.stdout.write("".join(view.render(module) for module in file.modules))
    for result in gathered.failures:
        print(result.errors[0].message, file=sys.stderr)
        status = BROKEN
    return status
