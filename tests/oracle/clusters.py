"""Programs of phases that two CTAs of a cluster run together: own and peer bytes, multicast, DSMEM."""

from __future__ import annotations

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
