"""Rows that the analysis does not get right yet, with the reason. Each must fail: drop it here when it passes."""

from __future__ import annotations

OPEN: dict[str, str] = {
    "load_store_unwaited": "PF120 is not reported yet (issue 5)",
    "mb_issuer_early": "the cause off-path is not told yet (issue 5)",
    "mb_no_warp_sync": "not reported yet (issue 5)",
    "mb_relaxed": "not reported yet (issue 5)",
    "other_barrier": "not reported yet (issue 5)",
    "chain_middle_early": "the cause off-path is not told yet (issue 5)",
    "rotating_warp": "PF120 is not reported yet (issue 5)",
    "fenced_no_barrier": "not reported yet (issue 5)",
    "remote_owner": "an issuer-side fence for peer bytes is not accepted yet (issue 5)",
    "remote_relaxed": "not reported yet (issue 5)",
    "remote_arrive": "an issuer-side fence for peer bytes is not accepted yet (issue 5)",
    "remote_arrive_cta": "not reported yet (issue 5)",
    "st_async_consumer": "an issuer-side fence for peer bytes is not accepted yet (issue 5)",
    "multicast_issuer_wide": "an issuer-side fence for peer bytes is not accepted yet (issue 5)",
    "init_unpublished": "PF121 is not reported yet (issue 5)",
    "init_fence_only": "PF121 is not reported yet (issue 5)",
    "init_cluster_relaxed": "PF121 is not reported yet (issue 5)",
    "init_storage_reused": "not reported yet (issue 5)",
    "tc_slot": "not reported yet (issue 5)",
    "pair_issuer_wide": "an issuer-side fence for peer bytes is not accepted yet (issue 5)",
    "global_flag_none": "PF112 is not reported yet (issue 5)",
    "atomic_war": "not reported yet (issue 5)",
}
