"""Draw kernels as one HTML page with SVG: blocks, accesses, barriers, the path of each hazard, the proposed fence."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ptxfence.cli.options import add_paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument("--output", "-o", type=Path, metavar="FILE", help="write the page there (default: stdout)")
    parser.add_argument("--kernel", metavar="NAME", help="this kernel only")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit per kernel")
    parser.add_argument("--addresses", action="store_true", help="list what is known of every address instead")
    parser.add_argument("--isolated", action="store_true", help="read no settings file")


def run(arguments: argparse.Namespace) -> int:
    if arguments.addresses:
        from ptxfence.cli.addresses import run as addresses

        return addresses(arguments)
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
