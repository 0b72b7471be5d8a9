"""Warp-specialised programs: rings of stages handed over through mbarriers or named barriers, with an optional relay.

Warp 0 issues asynchronous operations, the last warp may relay, the others touch the stages generically.
mbarriers: 0-1 full, 2-3 empty, 4-5 from the relay (one per stage).
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.oracle.generate import Writer


@dataclass(frozen=True, slots=True)
class Shape:
    """`push`: stored generically, copied out; else loaded asynchronously and read generically."""

    push: bool
    stages: int
    warps: int
    relay: bool
    elected: bool  # one lane of each warp arrives, after a warp barrier
    copies: str  # how a stage is filled when pushed: st, cp, cp_mbarrier
    limit: str

    @property
    def workers(self) -> int:
        return self.warps - 1 - self.relay


def ring(w: Writer) -> int:
    """Writes the program; returns the number of warps."""
    rng = w.rng
    relay = w.chance(0.25)
    copies = rng.choice(("st", "st", "st", "cp", "cp_mbarrier")) if w.features.cp_async else "st"
    push = w.chance(0.55)
    shape = Shape(
        push, rng.choice((1, 2)), 2 + rng.randint(0, 1) + relay, relay and push,
        w.chance(0.5) and copies != "cp_mbarrier", copies, rng.choice(("n", "3")),
    )  # fmt: skip
    arrivals = str(shape.workers) if shape.elected else f"<A:{shape.workers}>"
    _initialise(w, shape, arrivals)
    w.put("@w0 bra ISSUER;")
    if shape.relay:
        w.put(f"setp.eq.u32 p39, warp, {shape.warps - 1};", "@p39 bra RELAY;")
    _worker(w, shape)
    w.put("bra DONE;")
    if shape.relay:
        w.put("RELAY:")
        _relay(w, shape)
        w.put("bra DONE;")
    w.put("ISSUER:", "@!lead bra DONE;")
    _issuer(w, shape)
    w.put("DONE:")
    return shape.warps


def _initialise(w: Writer, shape: Shape, arrivals: str) -> None:
    full, empty = (arrivals, "1") if shape.push else ("1", arrivals)
    for stage in range(shape.stages):
        w.put(f"@lead mbarrier.init.shared::cta.b64 [bars+{8 * stage}], {full};")
        w.put(f"@lead mbarrier.init.shared::cta.b64 [bars+{16 + 8 * stage}], {empty};")
        if shape.relay:
            w.put(f"@lead mbarrier.init.shared::cta.b64 [bars+{32 + 8 * stage}], 1;")
    if w.chance(0.2):
        w.put("fence.mbarrier_init.release.cluster;")
    w.put("bar.sync 0;")


def _loop(w: Writer, shape: Shape, role: int) -> tuple[str, str]:
    """Head of a role's loop; returns the labels' number and the register of the stage's object offset."""
    k = str(w.number())
    i, s, x, p = f"i{role}", f"s{role}", f"x{role}", w.predicate()
    w.put(f"mov.u32 {i}, 0;", f"LOOP{k}:", f"setp.ge.u32 {p}, {i}, {shape.limit};", f"@{p} bra END{k};")
    if shape.stages == 2:
        w.put(f"and.b32 {s}, {i}, 1;", f"shr.u32 {x}, {i}, 1;", f"and.b32 {x}, {x}, 1;")
    else:
        w.put(f"mov.u32 {s}, 0;", f"and.b32 {x}, {i}, 1;")
    w.put(f"mul.lo.u32 v1, {s}, <S:1>;", f"shl.b32 {s}, {s}, 3;", f"add.u32 {s}, {s}, bars;")
    return k, i


def _end(w: Writer, k: str, i: str) -> None:
    w.put(f"add.u32 {i}, {i}, 1;", f"bra LOOP{k};", f"END{k}:")


def _await(w: Writer, role: int, base: int, inverted: bool = False) -> None:
    """Waits for the stage's object at `base`; `inverted` passes at once the first time round."""
    k, p = w.number(), w.predicate()
    phase = f"x{role}"
    if inverted:
        w.put(f"xor.b32 v3, {phase}, 1;")
        phase = "v3"
    w.put(f"WAIT{k}:", f"mbarrier.try_wait.parity.shared::cta.b64 {p}, [s{role}+{base}], {phase};")
    w.put(f"@!{p} bra WAIT{k};")


def _arrive(w: Writer, shape: Shape, role: int, base: int) -> None:
    """The workers' arrival. A fence may stand with the elected lane, before or after the arrival."""
    guard = ""
    if shape.elected:
        p = w.predicate()
        w.put("bar.warp.sync 0xffffffff;", f"elect.sync _|{p}, 0xffffffff;")
        guard = f"@{p} "
        if w.chance(w.features.fences * 0.2):
            w.fence(guard)
    relaxed = ".relaxed.cta" if w.chance(w.features.races) else ""
    w.put(f"{guard}mbarrier.arrive{relaxed}.shared::cta.b64 _, [s{role}+{base}];")
    if w.chance(w.features.fences * 0.15):
        w.fence("")


def _worker(w: Writer, shape: Shape) -> None:
    k, i = _loop(w, shape, 1)
    w.put("add.u32 v2, mine, v1;")
    _await(w, 1, 16 if shape.push else 0, inverted=shape.push)
    if w.chance(w.features.fences * 0.2):
        w.fence("")
    if not shape.push:
        w.put("ld.shared.u32 v0, [v2];")
        w.put("st.global.u32 [gmine], v0;" if w.chance(0.3) else "add.u32 acc, acc, v0;")
    elif shape.copies == "st":
        w.put("st.shared.v4.u32 [v2], {tid, tid, tid, tid};" if w.chance(0.5) else "st.shared.u32 [v2], tid;")
    else:
        w.put("cp.async.ca.shared.global [v2], [gmine], 16;")
        if shape.copies == "cp_mbarrier":
            if w.chance(0.2):
                w.fence("")
            w.put("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [s1];")
            _end(w, k, i)
            return
        w.put("cp.async.commit_group;")
        if w.chance(0.2):
            w.fence("")
        w.put("cp.async.wait_group 0;")
    if w.chance(w.features.fences):
        w.fence("")
    _arrive(w, shape, 1, 0 if shape.push else 16)
    _end(w, k, i)


def _relay(w: Writer, shape: Shape) -> None:
    w.put("setp.ne.u32 p38, lane, 0;", "@p38 bra DONE;")
    k, i = _loop(w, shape, 2)
    if w.chance(w.features.fences * 0.2):
        w.fence("")
    _await(w, 2, 0)
    if w.chance(w.features.fences * 0.5):
        w.fence("")
    w.put("mbarrier.arrive.shared::cta.b64 _, [s2+32];")
    _end(w, k, i)


def _issuer(w: Writer, shape: Shape) -> None:
    k, i = _loop(w, shape, 0)
    w.put("add.u32 v2, buf, v1;")
    if w.chance(w.features.fences * 0.15):
        w.fence("")
    if shape.push:
        _await(w, 0, 32 if shape.relay else 0)
        if w.chance(w.features.fences * 0.4):
            w.fence("")
        w.put("cp.async.bulk.global.shared::cta.bulk_group [out], [v2], <S:1>;", "cp.async.bulk.commit_group;")
        if not w.chance(w.features.unfinished):
            w.put("cp.async.bulk.wait_group.read 0;")
        w.put("mbarrier.arrive.shared::cta.b64 _, [s0+16];")
    else:
        _await(w, 0, 16, inverted=True)
        if w.chance(w.features.fences * 0.4):
            w.fence("")
        w.put(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [s0], <S:1>;",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [v2], [in], <S:1>, [s0];",
        )
    _end(w, k, i)
