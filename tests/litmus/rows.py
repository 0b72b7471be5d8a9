"""Every row of the tables."""

from __future__ import annotations

from tests.litmus import basic, cluster, handoffs, units
from tests.litmus.table import Row

ROWS: list[Row] = [*basic.ROWS, *handoffs.ROWS, *cluster.ROWS, *units.ROWS]
BY_NAME: dict[str, Row] = {row.name: row for row in ROWS}
