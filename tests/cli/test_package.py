"""What an installed package must hold besides its modules."""

from __future__ import annotations

from importlib.resources import files

import pytest

DATA = ("py.typed", "grammar/ptx.lark", "grammar/ptx.tables", "schema/report.schema.json", "cli/formats/page.css")


@pytest.mark.parametrize("name", DATA)
def test_data_file(name: str) -> None:
    assert files("ptxfence").joinpath(name).is_file()
