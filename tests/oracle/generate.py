"""Random kernels whose paths are all feasible and which never deadlock, with fences that may be missing or misplaced.

All threads run the same code in phases (generic accesses, hand-off, asynchronous operation, completion), nested in
uniform loops and branches; roles.py and named.py add warp-specialised rings, clusters.py programs of two CTAs.
Synchronisation is mostly right, fences are drawn.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.oracle.kernels import BUFFERS, Kernel

GUARDS = ("", "@w0 ", "@w1 ", "@half ", "@lead ", "@lead1 ")
FENCES = (
    ("fence.proxy.async.shared::cta;", 70),
    ("fence.proxy.async;", 8),
    ("fence.proxy.async.shared::cluster;", 4),
    ("fence.proxy.async.global;", 6),
    ("fence.acq_rel.cta;", 6),
    ("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;", 4),
    ("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;", 2),
)


@dataclass(frozen=True, slots=True)
class Features:
    """What a generated program may contain; probabilities where they are floats."""

    loops: bool = True
    branches: bool = True
    calls: bool = True
    cp_async: bool = True
    races: float = 0.04  # a hand-off left out
    unfinished: float = 0.04  # a completion left out or too weak
    roles: float = 0.4  # a warp-specialised program
    named: float = 0.25  # of those: handed over through named barriers
    clusters: float = 0.15  # a program of two CTAs
    ranks: float = 0.25  # of those: a role for each rank
    fences: float = 0.5  # each place where one might stand


@dataclass(slots=True)
class Writer:
    """Lines under construction."""

    rng: random.Random
    features: Features
    lines: list[str] = field(default_factory=list[str])
    functions: dict[str, str] = field(default_factory=dict[str, str])
    numbers: int = 0
    predicates: int = 0
    flags: int = 0

    def put(self, *lines: str) -> None:
        self.lines.extend(lines)

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def predicate(self) -> str:
        self.predicates = (self.predicates + 1) % 40
        return f"p{self.predicates}"

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def flag(self) -> None:
        """v3 = a bit of the flags that nothing else uses, so that every combination of branches is feasible."""
        self.put(f"and.b32 v3, flags, {1 << self.flags};")
        self.flags += 1

    def fence(self, guard: str | None = None) -> None:
        form = self.rng.choices([f for f, _ in FENCES], [w for _, w in FENCES])[0]
        if guard is None:
            guard = "" if self.chance(0.75) else self.rng.choice(GUARDS)
        if self.features.calls and not guard and self.chance(0.1):
            name = "fenced" if self.chance(0.7) else "perhaps"
            self.functions[name] = _FUNCTIONS[name]
            if name == "perhaps":
                self.flag()
            self.put("call fenced;" if name == "fenced" else "call perhaps, (v3);")
            return
        self.put(guard + form)

    def sync(self) -> None:
        if not self.chance(self.features.races):
            self.put("bar.sync 0;")

    def wait(self, barrier: int, phase: str, guard: str = "") -> None:
        """An mbarrier wait of every thread, or of those under `guard`."""
        k, p = self.number(), self.predicate()
        if guard:
            self.put(f"@!{guard} bra SKIP{k};")
        self.put(f"WAIT{k}:")
        self.put(f"mbarrier.try_wait.parity.shared::cta.b64 {p}, [bars+{8 * barrier}], {phase};", f"@!{p} bra WAIT{k};")
        if guard:
            self.put(f"SKIP{k}:")


_FUNCTIONS = {
    "fenced": ".func fenced\n{\n\tfence.proxy.async.shared::cta;\n\tret;\n}",
    "perhaps": (
        ".func perhaps(.reg .b32 flag)\n{\n\t.reg .pred q;\n\tsetp.eq.u32 q, flag, 0;\n\t@q bra SKIP;\n"
        "\tfence.proxy.async.shared::cta;\nSKIP:\n\tret;\n}"
    ),
    "put": ".func put(.reg .b32 at, .reg .b32 what)\n{\n\tst.shared.u32 [at], what;\n\tret;\n}",
}


class Phases:
    """A program of phases that all threads run together."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self.rng = writer.rng
        self.depth = 0
        self.counter = ""  # the innermost loop counter

    def program(self) -> None:
        w = self.w
        for k in range(BUFFERS):
            w.put(f"@lead mbarrier.init.shared::cta.b64 [bars+{8 * k}], 1;", f"mov.u32 ph{k}, 0;")
        w.put("bar.sync 0;")
        self.block(self.rng.randint(1, 3))

    def block(self, count: int) -> None:
        for _ in range(count):
            draw = self.rng.random()
            if self.depth < 2 and draw < 0.18 and self.w.features.loops:
                self.loop()
            elif self.depth < 2 and draw < 0.32 and self.w.features.branches:
                self.branch()
            else:
                self.phase()

    def loop(self) -> None:
        w, k = self.w, self.w.number()
        limit = self.rng.choice(("n", "n", "2", "3"))  # both parities of the counter happen
        outer, self.counter = self.counter, f"i{self.depth}"
        counter, p = self.counter, w.predicate()
        zero_trip = limit == "n" and self.rng.random() < 0.7
        w.put(f"mov.u32 {counter}, 0;")
        if zero_trip:
            w.put(f"setp.ge.u32 {p}, {counter}, {limit};", f"@{p} bra END{k};")
        w.put(f"LOOP{k}:")
        self.depth += 1
        self.block(self.rng.randint(1, 2))
        self.depth -= 1
        w.put(f"add.u32 {counter}, {counter}, 1;", f"setp.lt.u32 {p}, {counter}, {limit};", f"@{p} bra LOOP{k};")
        if zero_trip:
            w.put(f"END{k}:")
        self.counter = outer

    def branch(self) -> None:
        w, k, p = self.w, self.w.number(), self.w.predicate()
        if self.counter and self.rng.random() < 0.5:
            w.put(f"and.b32 v3, {self.counter}, 1;", f"setp.eq.u32 {p}, v3, 0;")
        else:
            w.flag()
            w.put(f"setp.eq.u32 {p}, v3, 0;")
        w.put(f"@{p} bra ELSE{k};")
        self.depth += 1
        self._arm()
        if self.rng.random() < 0.5:
            w.put(f"bra JOIN{k};", f"ELSE{k}:")
            self._arm()
            w.put(f"JOIN{k}:")
        else:
            w.put(f"ELSE{k}:")
        self.depth -= 1

    def _arm(self) -> None:
        draw = self.rng.random()
        if draw < 0.3:
            self.w.fence()
        elif draw < 0.6:
            self.generic(self.rng.randrange(BUFFERS))
        else:
            self.phase()

    def phase(self) -> None:
        w, rng = self.w, self.rng
        buffers = [rng.randrange(BUFFERS) for _ in range(rng.randint(1, 2))]
        if w.chance(w.features.fences * 0.2):
            w.fence()
        for k in buffers:
            self.generic(k)
        if w.chance(w.features.fences):
            w.fence()
        w.sync()
        issuer = rng.choice(("lead", "lead", "lead1"))
        if w.chance(w.features.fences * 0.3):
            w.fence(rng.choice(("", f"@{issuer} ", "@w1 ", "@lead1 ")))
            if w.chance(0.3):
                w.sync()
        self.asynchronous(buffers[0] if w.chance(0.8) else rng.randrange(BUFFERS), issuer)
        w.sync()

    def generic(self, k: int) -> None:
        w, rng = self.w, self.rng
        guard = "" if w.chance(0.7) else rng.choice(GUARDS)
        place = f"[mine+<S:{k}>]"
        draw = rng.random()
        if draw < 0.3:
            w.put(f"{guard}st.shared.u32 {place}, tid;")
        elif draw < 0.4:
            w.put(f"{guard}st.shared.v4.u32 {place}, {{tid, tid, tid, tid}};")
        elif draw < 0.47:
            w.put(f"{guard}red.shared.add.u32 {place}, 1;")
        elif draw < 0.55 and w.features.calls and not guard:
            w.functions["put"] = _FUNCTIONS["put"]
            w.put(f"add.u32 v2, mine, <S:{k}>;", "call put, (v2, tid);")
        elif draw < 0.65 and w.features.cp_async:
            self._copy(place, guard)
        elif draw < 0.8:
            w.put(f"{guard}ld.shared.u32 v0, {place};", f"{guard}st.global.u32 [gmine], v0;")
        else:
            w.put("mov.u32 v0, 0;", f"{guard}ld.shared.u32 v0, {place};", "add.u32 acc, acc, v0;")

    def _copy(self, place: str, guard: str) -> None:
        w = self.w
        w.put(f"{guard}cp.async.ca.shared.global {place}, [gmine], 16;", "cp.async.commit_group;")
        if w.chance(0.15):
            w.fence()
        w.put("cp.async.wait_group 1;" if w.chance(w.features.unfinished) else "cp.async.wait_group 0;")

    def asynchronous(self, k: int, issuer: str) -> None:
        w, rng = self.w, self.rng
        offset, size = (f"<S:{k}>", "<S:1>")
        if w.chance(0.15):
            size = "<H:1>"
        if w.chance(0.55):
            w.put(f"@{issuer} cp.async.bulk.global.shared::cta.bulk_group [out], [buf+{offset}], {size};")
            w.put(f"@{issuer} cp.async.bulk.commit_group;")
            if not w.chance(w.features.unfinished):
                w.put(f"@{issuer} cp.async.bulk.wait_group{rng.choice(('', '.read'))} 0;")
            return
        w.put(
            f"@{issuer} mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+{8 * k}], {size};",
            f"@{issuer} cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf+{offset}], [in], "
            f"{size}, [bars+{8 * k}];",
        )
        if w.chance(0.15):
            w.wait(k, f"ph{k}", guard=issuer)
        else:
            w.wait(k, f"ph{k}")
        w.put(f"xor.b32 ph{k}, ph{k}, 1;")


def generate(seed: int, features: Features | None = None) -> Kernel:
    """The kernel of a seed."""
    from tests.oracle.clusters import Clusters
    from tests.oracle.named import named_ring
    from tests.oracle.roles import ring

    features = features or Features()
    writer = Writer(random.Random(seed), features)
    if writer.chance(features.clusters):
        Clusters(writer).program()
        return Kernel(1, tuple(writer.lines), ctas=2)
    if writer.chance(features.roles):
        warps = named_ring(writer) if writer.chance(features.named) else ring(writer)
    else:
        warps = writer.rng.choice((2, 2, 3))
        Phases(writer).program()
    return Kernel(warps, tuple(writer.lines), tuple(writer.functions.values()), writer.flags)
