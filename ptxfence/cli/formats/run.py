"""What every format gets to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ptxfence.analysis.report import Severity
from ptxfence.config import Settings
from ptxfence.triage.result import FileResult
from ptxfence.triage.summary import Summary


@dataclass(frozen=True, slots=True)
class Run:
    """The settled results of a run in their order.

    `settings` are by path, `folder` is the working folder. `texts` holds the checked texts by path where the format
    draws them.
    """

    results: tuple[FileResult, ...]
    summary: Summary
    settings: Mapping[str, Settings]
    folder: Path
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def fail_on(self, path: str) -> Severity | None:
        """The lowest severity that fails in this file; None for never."""
        return self.settings[path].fail_on
