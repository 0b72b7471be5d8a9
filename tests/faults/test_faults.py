"""Every planted fault still applies, and three of them, others each day, are noticed; docs/faults.md has them all."""

from __future__ import annotations

import ast
from datetime import date
from pathlib import Path

import pytest

from tests.faults.fault import Fault, StaleFault, planted
from tests.faults.faults import FAULTS
from tests.faults.run import PAGE, ROOT, run, workplace

SAMPLE = 3


def _today() -> list[Fault]:
    first = date.today().toordinal() * SAMPLE
    return [FAULTS[(first + i) % len(FAULTS)] for i in range(SAMPLE)]


def test_every_fault_applies() -> None:
    for fault in FAULTS:
        ast.parse(planted(fault))


def test_a_fault_that_does_not_apply_is_told(tmp_path: Path) -> None:
    fault = FAULTS[0]
    module = tmp_path / fault.module
    module.parent.mkdir(parents=True)
    for text, times in (("", 0), (fault.old * 2, 2)):
        module.write_text(text)
        with pytest.raises(StaleFault, match=f"{fault.name}.* {times} times"):
            planted(fault, tmp_path)


def test_every_fault_names_a_test_and_stands_on_the_page() -> None:
    page = PAGE.read_text()
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 100
    for fault in FAULTS:
        assert (ROOT / fault.caught.partition("::")[0]).is_file(), fault.name
        assert f"| `{fault.name}` |" in page, fault.name


def test_some_faults_are_noticed(tmp_path: Path) -> None:
    package = workplace(tmp_path)
    for fault in _today():
        assert run(fault, package, [(fault.caught,)]).caught, fault.name


def test_the_copy_without_a_fault_passes(tmp_path: Path) -> None:
    """Else every fault would seem to be noticed."""
    package = workplace(tmp_path)
    (package / "nothing.py").write_text("A = 1\n")
    nothing = Fault("nothing", "nothing.py", "A = 1", "A = 2", "", "")
    tests = tuple({fault.caught for fault in _today()})
    assert run(nothing, package, [tests]).caught == ""
