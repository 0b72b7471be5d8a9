"""The oracle itself: schedules, synchronisation, completion, and what it refuses."""

from __future__ import annotations

import pytest

from tests.litmus.rows import BY_NAME
from tests.litmus.table import kernel
from tests.oracle import run
from tests.oracle.kernels import ORACLE_WARP
from tests.oracle.program import OracleError
from tests.oracle.shadow import Hazard
from tests.oracle.sync import CLUSTER, CTA, Barrier, Deposit, Mbarrier


def _text(body: str, threads: int = 32) -> str:
    return kernel("k", "oracle", "A test.", body, threads=threads).text


def test_exhaustive_sees_both_orders_of_a_race() -> None:
    text = _text("setp.eq.u32 p, tid, 1;\n@p st.shared.u32 [buf], tid;\n@lead ISSUE")
    seen = run(text, warp=ORACLE_WARP, schedules=200, threads=2, exhaustive=True).hazards
    assert {(h.kind, h.unsynchronised) for h in seen} == {("RAW", True), ("INFLIGHT", True)}


def test_exhaustive_ends() -> None:
    text = _text("@lead st.shared.u32 [buf], tid;\nBAR")
    seen = run(text, warp=ORACLE_WARP, threads=2, schedules=100_000, exhaustive=True)
    assert 1 < seen.schedules < 1000
    assert not seen.hazards


def test_random_and_exhaustive_agree_on_small_rows() -> None:
    for name in ("mp_none", "mp_writer", "mp_issuer", "lead_fences", "war_none", "waw_none"):
        text = BY_NAME[name].text
        found = [run(text, warp=2, threads=2, schedules=60, exhaustive=e).hazards for e in (False, True)]
        assert found[0] == found[1], name


def test_deadlock_is_told() -> None:
    seen = run(_text("@lead bra DONE;\nBAR\nbar.sync 1, 32;\nDONE:"), schedules=1)
    assert len(seen.deadlocks) == 1
    assert "waiting for ever" in seen.deadlocks[0]


def test_endless_loop_is_told() -> None:
    seen = run(_text("LOOP:\nst.shared.u32 [mine], tid;\nbra LOOP;"), schedules=1, limit=1000)
    assert "no end" in seen.deadlocks[0]


def test_exited_threads_do_not_block_the_barrier() -> None:
    assert not run(_text("@!lead exit;\nBAR"), schedules=3).deadlocks


def test_outside_the_subset() -> None:
    with pytest.raises(OracleError, match="line 43"):
        run(_text("tex.2d.v4.f32.s32 {f0, f1, f2, f3}, [out, {tid, tid}];"))
    with pytest.raises(OracleError, match=r"no \.entry"):
        run(".version 8.6\n.target sm_90a\n")


def _goes_wrong(code: str, condition: str) -> bool:
    """Whether a thread sees `condition` (a setp without its destination) fail after `code`."""
    text = _text(f"{code}\nsetp.{condition};\n@p bra END;\nst.shared.u32 [mine], tid;\nEND:")
    wrong = text.splitlines().index("\tst.shared.u32 [mine], tid;") + 1
    return wrong in run(text, schedules=1).executed


def test_values_and_loops() -> None:
    loop = "mov.u32 i, 0;\nL:\nadd.u32 i, i, 3;\nsetp.lt.u32 p, i, 10;\n@p bra L;"
    assert not _goes_wrong(loop, "eq.u32 p, i, 12")
    assert _goes_wrong(loop, "eq.u32 p, i, 10")


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("shr.s32 r0, -8, 1;", 0xFFFFFFFC),
        ("shr.u32 r0, 8, 1;", 4),
        ("min.s32 r0, -1, 1;", 0xFFFFFFFF),
        ("rem.u32 r0, 7, 4;", 3),
        ("mad.lo.s32 r0, 3, 4, 5;", 17),
        ("bfe.u32 r0, 240, 4, 4;", 15),
        ("bfi.b32 r0, 3, 0, 4, 2;", 48),
        ("popc.b32 r0, 255;", 8),
        ("xor.b32 r0, 5, 1;", 4),
        ("mov.b64 wide0, {1, 2};\nmov.b64 {r1, r0}, wide0;", 2),
        ("cvt.u64.u32 wide0, 7;\ncvt.u32.u64 r0, wide0;", 7),
    ],
)
def test_arithmetic(code: str, result: int) -> None:
    assert not _goes_wrong(code, f"eq.u32 p, r0, {result}")


def test_scopes_of_deposits() -> None:
    deposit, known = Deposit(2), [0] * 6
    deposit.put([1, 0, 0, 0, 0, 0], 0, CTA)
    deposit.put([2, 0, 0, 0, 0, 0], 0, CLUSTER)
    deposit.take(known, 1, CTA)
    assert known[0] == 0
    deposit.take(known, 1, CLUSTER)
    assert known[0] == 2
    deposit.take(known, 0, CTA)
    assert known[0] == 3


def test_mbarrier_phases() -> None:
    barrier = Mbarrier(2, 1, 1, 1)
    assert barrier.over(1)
    barrier.pending -= 2
    barrier.bytes = 16
    assert not barrier.step()
    barrier.bytes = 0
    assert barrier.step()
    assert barrier.over(0)
    assert not barrier.over(1)
    assert barrier.pending == 2


def test_barrier_generations() -> None:
    barrier = Barrier(1)
    assert not barrier.arrive([1, 0, 0, 0, 0], 0, CTA, 2)
    assert barrier.arrive([2, 0, 0, 0, 0], 0, CTA, 2)
    known = [0] * 5
    barrier.done.take(known, 0, CTA)
    assert known[0] == 3
    assert barrier.generation == 1


def test_rules_of_hazards() -> None:
    assert Hazard(1, 2, "RAW").rule == "PF101"
    assert Hazard(1, 2, "RAW", narrow=True).rule == "PF111"
    assert Hazard(1, 2, "RAW", late=True).rule == "PF104"
    assert Hazard(1, 2, "RAW", "global").rule == "PF112"
    assert not Hazard(1, 2, "WAR", "global").rule
    assert Hazard(1, 2, "INFLIGHT").rule == "PF120"
