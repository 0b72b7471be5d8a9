"""Every row of the tables."""

from __future__ import annotations

from tests.litmus import basic, cluster, handoffs, memory, rings, scenarios, units, walks
from tests.litmus.table import Row

ROWS: list[Row] = [
    row
    for module in (basic, rings, handoffs, walks, cluster, units, memory, scenarios)
    for row in module.ROWS
]
BY_NAME: dict[str, Row] = {row.name: row for row in ROWS}
