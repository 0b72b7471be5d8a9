"""Rows that the analysis does not get right yet, with the reason. Each must fail: drop it here when it passes."""

from __future__ import annotations

_CAUSE = "issue 5: a fence before its thread's wait gets the cause no-fence, not off-path"

OPEN: dict[str, str] = {
    "mb_issuer_early": _CAUSE,
    "chain_middle_early": _CAUSE,
    "tc_slot": "issue 5: the note for the write of tcgen05.alloc (PF102) is missing",
}
