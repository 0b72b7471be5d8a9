"""Print a rule's page: why it exists, an example that fires, one that does not, how to fix it, when to ignore it."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rule", metavar="RULE", help="id or name, such as PF101 or missing-fence-raw")


def run(arguments: argparse.Namespace) -> int:
    from ptxfence.analysis.rules import rule
    from ptxfence.cli.pages import page

    text = page(rule(arguments.rule))
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        print(text, end="")
    return 0
