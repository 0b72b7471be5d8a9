"""JSON: one document, contract 4. Its schema ships as `ptxfence/schema/report.schema.json`."""

from __future__ import annotations

import json
from typing import Any

from ptxfence import __version__
from ptxfence.cli.formats.run import Run
from ptxfence.triage.serial import to_json
from ptxfence.triage.summary import Summary

SCHEMA = 1


def render(run: Run) -> str:
    """A file object a line: indentation would keep `json` from using its fast encoder."""
    head = json.dumps({"schema": SCHEMA, "tool": {"name": "ptxfence", "version": __version__}})
    files = ",\n".join(json.dumps(to_json(result)) for result in run.results)
    return f'{head[:-1]},\n"files": [\n{files}\n],\n"summary": {json.dumps(summary_json(run.summary))}}}\n'


def summary_json(summary: Summary) -> dict[str, Any]:
    """The summary object of contract 4."""
    return {
        "files": summary.files,
        "kernels": summary.kernels,
        "errors": summary.errors,
        "warnings": summary.warnings,
        "notes": summary.notes,
        "undecided": summary.undecided,
        "failed_files": summary.failed_files,
        "suppressed": summary.suppressed,
        "duplicates": summary.duplicates,
        "seconds": round(summary.seconds, 6),
    }
