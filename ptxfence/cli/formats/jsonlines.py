"""JSON lines: the file objects of contract 4, one a line."""

from __future__ import annotations

import json

from ptxfence.cli.formats.run import Run
from ptxfence.triage.serial import to_json


def render(run: Run) -> str:
    return "".join(json.dumps(to_json(result)) + "\n" for result in run.results)
