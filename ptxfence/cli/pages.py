"""A rule's page as Markdown: what `ptxfence explain` prints and `docs/rules` holds."""

from __future__ import annotations

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules.base import Rule


def page(rule: Rule) -> str:
    """The page of one rule."""
    parts = [
        f"# {rule.id} {rule.name}",
        rule.summary,
        f"Default severity: **{rule.severity.name.lower()}**{_extra(rule)}.",
        *([f"Otherwise {rule.conditions}"] if rule.conditions else []),
        "## Why",
        rule.why.strip(),
        "## Reported",
        _code(rule.bad),
        "## Clean",
        _code(rule.good),
        "`%p0` holds in thread 0, `%r3` is a thread's word of the shared array `tile`, `full` an initialised mbarrier.",
        "## How to fix",
        rule.how_to_fix.strip(),
        "## When to ignore",
        rule.when_to_ignore.strip(),
        f"Silence one place with a comment on or above its line: `// ptxfence: ignore[{rule.id}] reason`.",
        "## Sources",
        "\n".join(f"- {source}" for source in rule.sources),
    ]
    return "\n\n".join(parts) + "\n"


def index(rules: tuple[Rule, ...]) -> str:
    """The table of all rules."""
    rows = [
        f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.severity.name.lower()} | {rule.summary} |"
        for rule in rules
    ]
    head = ["# Rules", "", "| id | name | default | fires on |", "|---|---|---|---|"]
    return "\n".join((*head, *rows)) + "\n"


def _extra(rule: Rule) -> str:
    if rule.strict_severity is None:
        return ""
    prefix = " (not reported)" if rule.severity is Severity.OFF else ""
    return f"{prefix}; **{rule.strict_severity.name.lower()}** under `--strict`"


def _code(text: str) -> str:
    return f"```ptx\n{text.strip()}\n```"
