"""What a planted fault is, and how it gets into a copy of the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "ptxfence"


@dataclass(frozen=True, slots=True)
class Fault:
    """`old`, found exactly once in `module` (a path inside the package), becomes `new`.

    `caught` is a test that fails then; others may as well.
    """

    name: str
    module: str
    old: str
    new: str
    breaks: str
    caught: str


class StaleFault(Exception):
    """The text that a fault replaces is not there exactly once: the fault must follow the code."""


def planted(fault: Fault, package: Path = PACKAGE) -> str:
    """The module's text with the fault in it. Raises StaleFault."""
    text = (package / fault.module).read_text()
    found = text.count(fault.old)
    if found != 1:
        raise StaleFault(f"{fault.name}: {fault.module} holds its text {found} times")
    return text.replace(fault.old, fault.new)
