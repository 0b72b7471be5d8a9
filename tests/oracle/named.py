"""Warp-specialised rings handed over through named barriers: `bar.arrive` on one side, `bar.sync` on the other.

Ids 1-2 are full, 3-4 empty, one per stage; every thread of the CTA takes part in each. A stage that is loaded
asynchronously becomes full on an mbarrier instead.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.generate import Writer


def named_ring(w: Writer) -> int:
    """Warp 0 copies the stages out or loads them, the others store or read them. Returns the number of warps."""
    push = w.chance(0.6)
    stages = w.rng.choice((1, 2))
    limit = w.rng.choice(("n", "3"))
    for stage in range(stages):
        w.put(f"@lead mbarrier.init.shared::cta.b64 [bars+{8 * stage}], 1;")
    w.put("bar.sync 0;", "@w0 bra ISSUER;")
    early = [f"bar.arrive {3 + stage}, <NT>;" for stage in range(stages)]  # the stages are empty at first
    w.put(*(early if not push else ()))
    _role(w, stages, limit, 1, lambda: _worker(w, push))
    w.put("bra DONE;", "ISSUER:", *(early if push else ()))
    _role(w, stages, limit, 0, lambda: _issuer(w, push))
    w.put("DONE:")
    return w.rng.choice((2, 3))


def _role(w: Writer, stages: int, limit: str, role: int, body: Callable[[], None]) -> None:
    """A loop over the stages: v1 offset of the bytes, v2 their address, s an id, x the parity, ph an mbarrier."""
    k, i, s, x, p = w.number(), f"i{role}", f"s{role}", f"x{role}", w.predicate()
    w.put(f"mov.u32 {i}, 0;", f"LOOP{k}:", f"setp.ge.u32 {p}, {i}, {limit};", f"@{p} bra END{k};")
    w.put(f"and.b32 {s}, {i}, {stages - 1};", f"mul.lo.u32 v1, {s}, <S:1>;")
    w.put("add.u32 v2, mine, v1;" if role else "add.u32 v2, buf, v1;")
    w.put(f"shr.u32 {x}, {i}, {stages - 1};", f"and.b32 {x}, {x}, 1;")
    w.put(f"shl.b32 ph{role}, {s}, 3;", f"add.u32 ph{role}, ph{role}, bars;", f"add.u32 {s}, {s}, 1;")
    body()
    w.put(f"add.u32 {i}, {i}, 1;", f"bra LOOP{k};", f"END{k}:")


def _maybe(w: Writer, share: float, guard: str = "") -> None:
    if w.chance(w.features.fences * share):
        w.fence(guard)


def _worker(w: Writer, push: bool) -> None:
    w.put("add.u32 x5, s1, 2;")
    if push:
        w.put("bar.sync x5, <NT>;")
        _maybe(w, 0.2)
        w.put("st.shared.u32 [v2], tid;")
        _maybe(w, 1.0)
        w.put("bar.arrive s1, <NT>;")
        _maybe(w, 0.15)
        return
    k, p = w.number(), w.predicate()
    w.put(f"WAIT{k}:", f"mbarrier.try_wait.parity.shared::cta.b64 {p}, [ph1], x1;", f"@!{p} bra WAIT{k};")
    w.put("ld.shared.u32 v0, [v2];", "add.u32 acc, acc, v0;")
    _maybe(w, 1.0)
    w.put("bar.arrive x5, <NT>;")
    _maybe(w, 0.15)


def _issuer(w: Writer, push: bool) -> None:
    w.put("add.u32 x4, s0, 2;")
    guard = w.rng.choice(("", "@lead "))
    if push:
        _maybe(w, 0.15)
        w.put("bar.sync s0, <NT>;")
        _maybe(w, 0.4, guard)
        w.put("@lead cp.async.bulk.global.shared::cta.bulk_group [out], [v2], <S:1>;")
        w.put("@lead cp.async.bulk.commit_group;")
        if not w.chance(w.features.unfinished):
            w.put("@lead cp.async.bulk.wait_group.read 0;")
        w.put("bar.warp.sync 0xffffffff;", "bar.arrive x4, <NT>;")
        return
    w.put("bar.sync x4, <NT>;")
    _maybe(w, 0.4, guard)
    w.put("@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [ph0], <S:1>;")
    w.put(
        "@lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [v2], [in], <S:1>, [ph0];",
        "bar.warp.sync 0xffffffff;",
    )
