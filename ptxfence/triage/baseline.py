"""Baselines: findings that are known already and do not fail a check.

The file is JSON, sorted, one finding a line, so that a change of it reads well in a review. A finding is known by its
id; where several files have a finding of one id (variants of a kernel), each occurrence in the baseline excuses one,
first in the file of the same path, then in one of the same name, then anywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ptxfence.analysis.report import Finding
from ptxfence.errors import ConfigError
from ptxfence.triage.result import FileResult

SCHEMA = 1

_Key = tuple[str, str]  # id of a finding, path of its file


def _by_path(key: _Key) -> _Key:
    return key


def _by_name(key: _Key) -> _Key:
    return key[0], key[1].replace("\\", "/").rsplit("/", 1)[-1]


def _by_id(key: _Key) -> _Key:
    return key[0], ""


_ROUNDS: tuple[Callable[[_Key], _Key], ...] = (_by_path, _by_name, _by_id)


class Baseline:
    """Known findings, used up as they are met again."""

    def __init__(self, occurrences: Counter[_Key]) -> None:
        self._left = Counter(occurrences)

    @property
    def gone(self) -> int:
        """How many known findings have not been met (fixed since, or not part of the run)."""
        return self._left.total()

    def apply(self, results: Sequence[FileResult]) -> tuple[FileResult, ...]:
        """The results with their known findings suppressed, those that nothing else suppresses."""
        known: set[tuple[int, int]] = set()
        for likeness in _ROUNDS:
            self._round(results, known, likeness)
        return tuple(
            replace(
                result,
                findings=tuple(
                    replace(finding, suppressed="baseline") if (number, at) in known else finding
                    for at, finding in enumerate(result.findings)
                ),
            )
            for number, result in enumerate(results)
        )

    def _round(
        self, results: Sequence[FileResult], known: set[tuple[int, int]], likeness: Callable[[_Key], _Key]
    ) -> None:
        left: dict[_Key, list[_Key]] = {}
        for key in self._left.elements():
            left.setdefault(likeness(key), []).append(key)
        for number, result in enumerate(results):
            for at, finding in enumerate(result.findings):
                if finding.suppressed is not None or (number, at) in known:
                    continue
                alike = left.get(likeness((finding.id, result.path)))
                if alike:
                    self._left[alike.pop()] -= 1
                    known.add((number, at))


def of_results(results: Iterable[FileResult]) -> Baseline:
    """The findings of another run as a baseline, for `--diff-against`."""
    return Baseline(Counter((f.id, result.path) for result in results for f in result.findings if _counts(f)))


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
        return Baseline(Counter({(str(e["id"]), str(e["path"])): int(e["count"]) for e in entries}))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"baseline {path}: malformed entry ({error!r})") from None


def dump(results: Iterable[FileResult]) -> str:
    """The text of a baseline that knows every finding of the results, except those silenced by other means."""
    counts: Counter[_Key] = Counter()
    about: dict[_Key, Finding] = {}
    for result in results:
        for finding in result.findings:
            if _counts(finding):
                key = (finding.id, result.path)
                counts[key] += 1
                about.setdefault(key, finding)
    entries = [
        json.dumps({"id": key[0], "count": counts[key], "rule": item.rule, "kernel": item.kernel, "path": key[1]})
        for key, item in sorted(about.items(), key=lambda pair: (pair[0][1], pair[1].rule, pair[0][0]))
    ]
    body = "".join(f"\n    {entry}," for entry in entries).rstrip(",")
    return f'{{\n  "schema": {SCHEMA},\n  "findings": [{body}\n  ]\n}}\n'


def _counts(finding: Finding) -> bool:
    return finding.suppressed in (None, "baseline")
