"""Rings of staging slots that bulk stores empty: which round waits, and who is told."""

from __future__ import annotations

from tests.litmus.table import Row, kernel

_RINGS = "rings of bulk stores"
_BAD = " // expect: PF120 error"


def _ring(name: str, about: str, wait: str, *, slots: int = 2, rounds: int = 2, bad: bool = False) -> Row:
    """`rounds` are added to the third parameter; each round fills the slot `round mod slots` and stores it."""
    body = f"""
        mov.u32 i, 0;
        add.u32 j, n, {rounds};
        LOOP:
        {wait}
        and.b32 u, i, {slots - 1};
        shl.b32 u, u, 11;
        add.u32 r1, mine, u;
        st.shared.u32 [r1], tid;{_BAD if bad else ""}
        FENCE
        BAR
        add.u32 r2, buf, u;
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [r2], 1024;
        @lead cp.async.bulk.commit_group;
        add.u32 i, i, 1;
        setp.lt.u32 p, i, j;
        @p bra LOOP;
        @lead cp.async.bulk.wait_group 0;"""
    return kernel(name, _RINGS, about, body)


ROWS: list[Row] = [
    _ring("ring_in_time", "Two slots; the issuer leaves one store in flight and tells by a barrier.",
          "@lead cp.async.bulk.wait_group.read 1;\nBAR"),
    _ring("ring_too_late", "Two slots; the issuer leaves both stores in flight.",
          "@lead cp.async.bulk.wait_group.read 2;\nBAR", bad=True),
    _ring("ring_untold", "The issuer leaves one in flight, but tells a round later only.",
          "@lead cp.async.bulk.wait_group.read 1;", bad=True),
    _ring("ring_told_later", "The issuer waits for all: the barrier of the round before has told.",
          "@lead cp.async.bulk.wait_group.read 0;"),
    _ring("ring_foreign_wait", "Another thread waits for groups of its own, of which there are none.",
          "setp.eq.u32 q, tid, 32;\n@q cp.async.bulk.wait_group.read 1;\nBAR", bad=True),
    _ring("ring_first_rounds", "No wait in the rounds that fill empty slots.",
          "setp.ge.u32 q, i, 2;\nand.pred q, q, lead;\n@q cp.async.bulk.wait_group.read 1;\nBAR"),
    _ring("ring_of_four", "Four slots; three stores stay in flight.",
          "@lead cp.async.bulk.wait_group.read 3;\nBAR", slots=4, rounds=4),
    _ring("ring_of_four_late", "Four slots; four stores stay in flight.",
          "@lead cp.async.bulk.wait_group.read 4;\nBAR", slots=4, rounds=4, bad=True),
]  # fmt: skip
