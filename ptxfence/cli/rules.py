"""List the rules: id, name, default severity, what each fires on."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(arguments: argparse.Namespace) -> int:
    from ptxfence.analysis.rules import all_rules

    rules = all_rules()
    if arguments.format == "json":
        import json

        rows = [
            {
                "id": rule.id,
                "name": rule.name,
                "severity": rule.severity.name.lower(),
                "strict_severity": rule.under_strict.name.lower(),
                "conditions": rule.conditions,
                "summary": rule.summary,
            }
            for rule in rules
        ]
        print(json.dumps(rows, indent=2))
        return 0
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        print(f"{rule.id}  {rule.name:<{width}}  {rule.severity.name.lower():<7}  {rule.summary}")
    return 0
