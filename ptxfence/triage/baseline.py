"""Baselines: findings that are known already and do not fail a check.

The file is JSON, sorted, one finding a line, so that a change of it reads well in a review. Each id stands with the
number of times it was found; further ones are new.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from ptxfence.analysis.report import Finding
from ptxfence.errors import ConfigError
from ptxfence.triage.result import FileResult

SCHEMA = 1


class Baseline:
    """Known findings, used up as they are met again."""

    def __init__(self, counts: Counter[str]) -> None:
        self._left = Counter(counts)

    def take(self, finding: Finding) -> bool:
        """Whether the finding is known; each known occurrence counts once."""
        if self._left[finding.id] < 1:
            return False
        self._left[finding.id] -= 1
        return True

    @property
    def gone(self) -> int:
        """How many known findings were not met (fixed since, or not part of this run)."""
        return self._left.total()


def of_results(results: Iterable[FileResult]) -> Baseline:
    """The findings of another run as a baseline, for `--diff-against`."""
    return Baseline(Counter(finding.id for result in results for finding in result.findings if _counts(finding)))


def load(path: Path) -> Baseline:
    """Read a baseline file. Raises ConfigError if it is missing or is not one."""
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"baseline {path}: {error}") from None
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("schema") != SCHEMA:
        raise ConfigError(f"baseline {path}: not a baseline of ptxfence (schema {SCHEMA})")
    try:
        entries = cast("list[dict[str, Any]]", document["findings"])
        return Baseline(Counter({str(entry["id"]): int(entry["count"]) for entry in entries}))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"baseline {path}: malformed entry ({error!r})") from None


def dump(results: Iterable[FileResult]) -> str:
    """The text of a baseline that knows every finding of the results, except those silenced by other means."""
    counts: Counter[str] = Counter()
    about: dict[str, Finding] = {}
    for result in results:
        for finding in result.findings:
            if _counts(finding):
                counts[finding.id] += 1
                about.setdefault(finding.id, finding)
    entries = [
        json.dumps({"id": key, "count": counts[key], "rule": item.rule, "kernel": item.kernel})
        for key, item in sorted(about.items(), key=lambda pair: (pair[1].rule, pair[1].kernel, pair[0]))
    ]
    body = "".join(f"\n    {entry}," for entry in entries).rstrip(",")
    return f'{{\n  "schema": {SCHEMA},\n  "findings": [{body}\n  ]\n}}\n'


def _counts(finding: Finding) -> bool:
    return finding.suppressed in (None, "baseline")
