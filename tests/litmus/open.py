"""Rows that the analysis does not get right yet, with the reason. Each must fail: drop it here when it passes."""

from __future__ import annotations

_RACE = "issue 5: a plain race is not reported (cause unsynchronised)"
_FLIGHT = "issue 5: PF120 is not reported for a bulk load in flight"
_INIT = "issue 5: PF121 is not reported without a barrier in the same CTA"
_CAUSE = "issue 5: a fence before its thread's wait gets the cause no-fence, not off-path"

OPEN: dict[str, str] = {
    "load_unwaited": _FLIGHT,
    "load_store_unwaited": _FLIGHT,
    "mb_issuer_early": _CAUSE,
    "chain_middle_early": _CAUSE,
    "mb_relaxed": _RACE,
    "other_barrier": _RACE,
    "fenced_no_barrier": _RACE,
    "remote_relaxed": _RACE,
    "remote_arrive_cta": _RACE,
    "remote_relaxed_fenced": "issue 5: a thread fence before a relaxed arrival is a release (PTX ISA 8.8)",
    "init_unpublished": _INIT,
    "init_fence_only": _INIT,
    "tc_slot": "issue 5: the note for the write of tcgen05.alloc (PF102) is missing",
    "global_flag_none": "issue 5: PF112 does not follow release and acquire through a flag",
}
