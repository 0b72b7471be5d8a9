"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from ptxfence.config import Resolver
from ptxfence.errors import ConfigError

_SETTINGS = (
    "select",
    "ignore",
    "fail_on",
    "strict",
    "allow_empty",
    "baseline",
    "timeout",
    "jobs",
    "kernel",
    "fix_level",
    "policy",
    "optimize",
)


def add_paths(parser: argparse.ArgumentParser, nargs: str = "+") -> None:
    parser.add_argument(
        "paths", nargs=nargs, metavar="PATH", help="file, folder (searched for *.ptx), or - for standard input"
    )


def add_rule_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("rules")
    group.add_argument("--select", metavar="RULES", help="report these rules only (ids or names, by comma)")
    group.add_argument("--ignore", metavar="RULES", help="do not report these rules")
    group.add_argument(
        "--severity",
        metavar="RULE=LEVEL",
        action="append",
        default=[],
        help="report a rule as error, warning or note, or turn it off (repeatable)",
    )
    group.add_argument(
        "--fail-on", choices=("error", "warning", "note", "never"), help="lowest severity that fails (default: error)"
    )
    group.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="an undecided kernel fails; rules that are off by default come on",
    )
    group.add_argument("--isolated", action="store_true", help="read no settings file")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("run")
    group.add_argument("--kernel", metavar="NAME", help="check this kernel only")
    group.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit per kernel")
    group.add_argument("--jobs", "-j", type=int, metavar="N", help="processes (default: one per core for many files)")
    group.add_argument("--allow-empty", action="store_true", default=None, help="finding no kernel is no failure")
    group.add_argument("--no-cache", action="store_true", help="neither use nor keep results of earlier runs")
    group.add_argument("--cache-dir", type=Path, metavar="DIR", help="folder of kept results")


def resolver(arguments: argparse.Namespace) -> Resolver:
    """The settings of a command line. Raises ConfigError."""
    given = vars(arguments)
    table: dict[str, object] = {name: given[name] for name in _SETTINGS if given.get(name) is not None}
    pairs: list[str] = given.get("severity") or []
    severities = dict(map(_pair, pairs))
    if severities:
        table["severity"] = severities
    if "baseline" in table:
        table["baseline"] = Path(str(table["baseline"])).absolute()
    return Resolver(table, isolated=bool(given.get("isolated")))


def _pair(text: str) -> tuple[str, str]:
    rule, equals, level = text.partition("=")
    if not equals:
        raise ConfigError(f"--severity {text}: expected RULE=LEVEL")
    return rule, level


def require_one(names: Iterable[str], arguments: argparse.Namespace) -> None:
    """Raise ConfigError where two options exclude each other. `names` are attribute names."""
    given = [name for name in names if getattr(arguments, name)]
    if len(given) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigError(f"{options} exclude each other")
