"""Programs of phases that two CTAs of a cluster run together: own and peer bytes, multicast, DSMEM."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle.generate import FENCES, Writer
from tests.oracle.kernels import BUFFERS

_WIDE = (("fence.proxy.async.shared::cluster;", 45), ("fence.proxy.async;", 10))


class Clusters:
    """Every phase ends with a cluster barrier, so that no CTA ends while the other still uses its bytes."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self.rng = writer.rng

    def program(self) -> None:
        w = self.w
        w.put(
            ".reg .pred first;",
            ".reg .b16 both;",
            ".reg .b32 rank, other, peer, there, signal;",
            "mov.u16 both, 3;",
            "mov.u32 rank, %cluster_ctarank;",
            "xor.b32 other, rank, 1;",
            "mapa.shared::cluster.u32 peer, mine, other;",
            "setp.eq.and.u32 first, rank, 0, lead;",
        )
        for k in range(BUFFERS):
            w.put(f"@lead mbarrier.init.shared::cta.b64 [bars+{8 * k}], 1;", f"mov.u32 ph{k}, 0;")
        if w.chance(w.features.ranks):
            self.ranks()
            return
        w.put("fence.mbarrier_init.release.cluster;")
        self.barrier(sure=True)
        for _ in range(self.rng.randint(1, 3)):
            self.phase()

    def barrier(self, sure: bool = False) -> None:
        w = self.w
        relaxed = not sure and w.chance(w.features.races)
        if relaxed and w.chance(0.5):
            w.put("fence.acq_rel.cluster;")
        w.put(f"barrier.cluster.arrive{'.relaxed' if relaxed else ''}.aligned;", "barrier.cluster.wait.aligned;")

    def fence(self, guard: str) -> None:
        forms = (*FENCES, *_WIDE)
        self.w.put(guard + self.rng.choices([f for f, _ in forms], [weight for _, weight in forms])[0])

    def phase(self) -> None:
        w, rng = self.w, self.rng
        k = rng.randrange(BUFFERS)
        self.generic(k if w.chance(0.8) else rng.randrange(BUFFERS))
        if w.chance(w.features.fences):
            self.fence("" if w.chance(0.8) else "@lead ")
        self.barrier()
        issuer = rng.choice(("lead", "first"))
        if w.chance(w.features.fences * 0.5):
            self.fence(f"@{issuer} " if w.chance(0.7) else "")
        self.operation(k, issuer)
        self.barrier(sure=True)

    def generic(self, k: int) -> None:
        w, draw = self.w, self.rng.random()
        if draw < 0.35:
            w.put(f"st.shared.u32 [mine+<S:{k}>], tid;")
        elif draw < 0.7:
            w.put(f"st.shared::cluster.u32 [peer+<S:{k}>], tid;")
        elif draw < 0.85:
            w.put(f"ld.shared.u32 v0, [mine+<S:{k}>];", "add.u32 acc, acc, v0;")
        else:
            w.put(f"ld.shared::cluster.u32 v0, [peer+<S:{k}>];", "add.u32 acc, acc, v0;")

    def operation(self, k: int, issuer: str) -> None:
        w, draw = self.w, self.rng.random()
        if draw < 0.4:
            w.put(
                f"@{issuer} cp.async.bulk.global.shared::cta.bulk_group [out], [buf+<S:{k}>], <S:1>;",
                f"@{issuer} cp.async.bulk.commit_group;",
                f"@{issuer} cp.async.bulk.wait_group 0;",
            )
            return
        w.put(f"@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+{8 * k}], <S:1>;")
        operation = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        if draw < 0.6:
            w.put(f"@lead {operation} [buf+<S:{k}>], [in], <S:1>, [bars+{8 * k}];")
        elif draw < 0.8:
            w.put(f"@first {operation}.multicast::cluster [buf+<S:{k}>], [in], <S:1>, [bars+{8 * k}], both;")
        else:
            source = (k + 1) % BUFFERS
            w.put(
                f"add.u32 there, buf, <S:{k}>;",
                "mapa.shared::cluster.u32 there, there, other;",
                f"add.u32 signal, bars, {8 * k};",
                "mapa.shared::cluster.u32 signal, signal, other;",
                "@lead cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], "
                f"[buf+<S:{source}>], <S:1>, [signal];",
            )
        w.wait(k, f"ph{k}")
        w.put(f"xor.b32 ph{k}, ph{k}, 1;")

    # --- a role for each rank ------------------------------------------------------------------------------------

    def ranks(self) -> None:
        """Rank 1 makes the generic accesses, rank 0 issues; they hand over through mbarriers in each other's CTA.

        `push`: rank 1 stores into rank 0, which copies out. Else rank 0 copies into rank 1, which reads. Object 24 is
        full where the waiter is, 32 empty.
        """
        w, push = self.w, self.w.chance(0.5)
        full, empty = ("<NT>", "1") if push else ("1", "<NT>")
        w.put(f"@lead mbarrier.init.shared::cta.b64 [bars+24], {full};", "setp.eq.u32 p39, rank, 0;")
        w.put(f"@lead mbarrier.init.shared::cta.b64 [bars+32], {empty};", "fence.mbarrier_init.release.cluster;")
        self.barrier(sure=True)
        w.put("mov.u32 i0, 0;", "add.u32 s0, bars, 24;", "add.u32 s1, bars, 32;")
        w.put("mapa.shared::cluster.u32 s0, s0, other;", "mapa.shared::cluster.u32 s1, s1, other;", "@p39 bra ISSUER;")
        limit = self.rng.choice(("n", "3"))
        self._loop("WORK", limit, lambda: self._worker(push))
        w.put("bra DONE;", "ISSUER:", "@!lead bra DONE;")
        self._loop("ISSUE", limit, lambda: self._issuer(push))
        w.put("DONE:")
        self.barrier(sure=True)

    def _loop(self, label: str, limit: str, body: Callable[[], None]) -> None:
        w, p = self.w, self.w.predicate()
        w.put(f"{label}:", f"setp.ge.u32 {p}, i0, {limit};", f"@{p} bra END{label};")
        w.put("and.b32 x0, i0, 1;", "xor.b32 x1, x0, 1;")
        body()
        w.put("add.u32 i0, i0, 1;", f"bra {label};", f"END{label}:")

    def _await(self, offset: int, phase: str) -> None:
        w, k, p = self.w, self.w.number(), self.w.predicate()
        w.put(f"WAIT{k}:", f"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 {p}, [bars+{offset}], {phase};")
        w.put(f"@!{p} bra WAIT{k};")

    def _tell(self, register: str) -> None:
        order = "relaxed" if self.w.chance(self.w.features.races) else "release"
        self.w.put(f"mbarrier.arrive.{order}.cluster.shared::cluster.b64 _, [{register}];")

    def _maybe(self, share: float) -> None:
        if self.w.chance(self.w.features.fences * share):
            self.fence("")

    def _worker(self, push: bool) -> None:
        w = self.w
        if push:
            self._await(32, "x1")
            self._maybe(0.2)
            w.put("st.shared::cluster.u32 [peer], tid;")
        else:
            w.put("@lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+24], <S:1>;")
            self._await(24, "x0")
            w.put("ld.shared.u32 v0, [mine];", "add.u32 acc, acc, v0;")
        self._maybe(1.0)
        self._tell("s0" if push else "s1")

    def _issuer(self, push: bool) -> None:
        w = self.w
        if push:
            self._await(24, "x0")
            self._maybe(0.5)
            w.put("cp.async.bulk.global.shared::cta.bulk_group [out], [buf], <S:1>;", "cp.async.bulk.commit_group;")
            w.put("cp.async.bulk.wait_group.read 0;")
            self._tell("s1")
            return
        self._await(32, "x1")
        self._maybe(0.4)
        w.put("mapa.shared::cluster.u32 there, buf, other;")
        w.put(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [buf+<S:1>], <S:1>, [s0];"
        )
