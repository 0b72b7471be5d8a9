"""All faults, in the order of the table (docs/faults.md)."""

from __future__ import annotations

from tests.faults import effects, flow, verdicts
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (*effects.FAULTS, *flow.FAULTS, *verdicts.FAULTS)
