"""Each row of the litmus tables, by the oracle, by ptxas and by the analysis."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import ptxfence
from tests.litmus.compare import differences, disagreements, expectations, observe
from tests.litmus.render import PAGE, page
from tests.litmus.rows import BY_NAME, ROWS
from tests.litmus.table import Row


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_oracle(row: Row) -> None:
    seen = observe(row.text, schedules=3)
    assert not seen.deadlocks
    assert disagreements(seen.hazards, expectations(row.text)) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_check(row: Row) -> None:
    assert differences(ptxfence.check(row.text), expectations(row.text)) == []


def _joined(rows: list[Row], target: str, version: str) -> str:
    """One module of many kernels; functions get the row's name."""
    parts = [f".version {version}", f".target {target}", ".address_size 64"]
    parts.append(".visible .global .align 128 .b8 scratch[4096];")
    for row in rows:
        text = row.text[row.text.index("scratch[4096];") + len("scratch[4096];") :]
        for name in set(re.findall(r"\.func (\w+)", text)):
            text = re.sub(rf"\b{name}\b", f"{name}_{row.name}", text)
        parts.append(text)
    return "\n".join(parts)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_rows_assemble(target: str, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row.assembles and f".target {target}\n" in row.text]
    assert rows
    (tmp_path / "rows.ptx").write_text(_joined(rows, target, "8.6"))
    command = ["ptxas", f"-arch={target}", "-O0", str(tmp_path / "rows.ptx"), "-o", str(tmp_path / "rows.cubin")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_page_is_current() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "run python -m tests.litmus.render"
