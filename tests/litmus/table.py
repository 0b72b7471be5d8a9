"""How a row of the tables becomes a kernel.

A row is a body of one instruction a line. Words in capitals that start a line (after an optional guard) are macros
for the instructions below; `// expect: RULE severity cause` stays on the first line of what they stand for. The frame
declares named registers: `tid`, `warp`, `lane`, `lead` (thread 0), `w0`, `w1` (warp 0, 1), `mine` (the thread's own 16
bytes of `tile`), `buf` (`tile`), `m0` to `m3` (mbarriers, initialised by `INITS`), `out`, `in`, `n` (parameters).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

STORE = "cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024;"
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [in], 1024, [m0];"
COMMIT, WAIT = "cp.async.bulk.commit_group;", "cp.async.bulk.wait_group 0;"
EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"

MACROS: dict[str, tuple[str, ...]] = {
    "ST": ("st.shared.u32 [mine], tid;",),
    "LD": ("ld.shared.u32 v, [mine];",),
    "PIN": ("st.global.u32 [gmine], v;",),
    "FENCE": ("fence.proxy.async.shared::cta;",),
    "FENCE_ALL": ("fence.proxy.async;",),
    "FENCE_CLUSTER": ("fence.proxy.async.shared::cluster;",),
    "FENCE_GLOBAL": ("fence.proxy.async.global;",),
    "BAR": ("bar.sync 0;",),
    "CLUSTER": ("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"),
    # a bulk store of the tile by the guarding thread, waited for
    "ISSUE": (STORE, COMMIT, WAIT),
    # a bulk load into the tile, expecting its bytes first, so that the line of the copy can carry the comment
    "RELOAD": (LOAD, EXPECT),
    "ARRIVE": ("mbarrier.arrive.shared::cta.b64 _, [m1];",),
    "ARRIVE2": ("mbarrier.arrive.shared::cta.b64 _, [m2];",),
    "ARRIVE3": ("mbarrier.arrive.shared::cta.b64 _, [m3];",),
    "AWAIT0": ("AW0_@: mbarrier.try_wait.parity.shared::cta.b64 done, [m0], 0;", "!done bra AW0_@;"),
    "AWAIT": ("AW1_@: mbarrier.try_wait.parity.shared::cta.b64 done, [m1], 0;", "!done bra AW1_@;"),
    "AWAIT2": ("AW2_@: mbarrier.try_wait.parity.shared::cta.b64 done, [m2], 0;", "!done bra AW2_@;"),
    "AWAIT3": ("AW3_@: mbarrier.try_wait.parity.shared::cta.b64 done, [m3], 0;", "!done bra AW3_@;"),
}

FRAME = """\
// {about}
.version {version}
.target {target}
.address_size 64

.visible .global .align 128 .b8 scratch[4096];
{functions}
.visible .entry {name}(
	.param .u64 {name}_param_0,
	.param .u64 {name}_param_1,
	.param .u32 {name}_param_2
)
.reqntid {threads}
{cluster}{{
	.reg .pred lead, w0, w1, w2, p, q, done;
	.reg .b32 tid, warp, lane, n, i, j, v, u, mine, buf, peer, rank, m0, m1, m2, m3, r<8>;
	.reg .b64 out, in, gmine, desc, wide<8>;
	.reg .f32 f<8>;
	.shared .align 1024 .b8 tile[16384];
	.shared .align 8 .b8 bars[32];
	ld.param.u64 out, [{name}_param_0];
	ld.param.u64 in, [{name}_param_1];
	ld.param.u32 n, [{name}_param_2];
	cvta.to.global.u64 out, out;
	cvta.to.global.u64 in, in;
	mov.u32 tid, %tid.x;
	shr.u32 warp, tid, 5;
	and.b32 lane, tid, 31;
	setp.eq.u32 lead, tid, 0;
	setp.eq.u32 w0, warp, 0;
	setp.eq.u32 w1, warp, 1;
	setp.eq.u32 w2, warp, 2;
	mov.u32 buf, tile;
	shl.b32 mine, tid, 4;
	add.u32 mine, buf, mine;
	mov.u32 m0, bars;
	add.u32 m1, m0, 8;
	add.u32 m2, m0, 16;
	add.u32 m3, m0, 24;
	mul.wide.u32 gmine, tid, 16;
	add.u64 gmine, out, gmine;
	add.u64 gmine, gmine, 65536;
{body}
	ret;
}}
"""

_LINE = re.compile(r"(@!?\w+\s+)?([A-Z][A-Z0-9_]*)\b(?!:)(.*)")
_INITS = re.compile(r"INITS((?:\s+\d+)+)")


@dataclass(frozen=True, slots=True)
class Row:
    """One litmus test. `text` is PTX with its expectations in comments."""

    name: str
    group: str
    about: str
    text: str

    @property
    def assembles(self) -> bool:
        """Whether ptxas 13.0 knows the version."""
        version = re.search(r"\.version (\d+)\.(\d+)", self.text)
        return version is not None and (int(version[1]), int(version[2])) <= (9, 0)


def _initialise(counts: list[str]) -> list[str]:
    lines = [f"@lead mbarrier.init.shared::cta.b64 [m{i}], {count};" for i, count in enumerate(counts)]
    return [*lines, "bar.sync 0;"]


def expand(body: str) -> str:
    lines: list[str] = []
    for number, raw in enumerate(body.strip().splitlines()):
        line = raw.strip()
        inits = _INITS.match(line)
        if inits is not None:
            lines += _initialise(inits[1].split())
            continue
        match = _LINE.match(line)
        macro = MACROS.get(match[2]) if match is not None else None
        if match is None or macro is None:
            lines.append(line)
            continue
        for position, text in enumerate(macro):
            lines.append(_guarded(match[1] or "", text.replace("@", str(number)), match[3] if position == 0 else ""))
    return "\n".join(line if re.match(r"\w+:$", line) else f"\t{line}" for line in lines)


def _guarded(guard: str, text: str, comment: str) -> str:
    if text.startswith("!done"):
        return f"@{text}"
    return f"{guard}{text}{comment and ' ' + comment.strip()}"


def kernel(
    name: str, group: str, about: str, body: str, *, threads: int = 64, cluster: int = 0, target: str = "sm_90a",
    version: str = "8.6", functions: str = "",
) -> Row:  # fmt: skip
    """A row from its body."""
    directive = f".explicitcluster\n.reqnctapercluster {cluster}, 1, 1\n" if cluster else ""
    text = FRAME.format(about=about, version=version, target=target, name=name, threads=threads, cluster=directive,
                        body=expand(body), functions=expand(functions) if functions else "")  # fmt: skip
    return Row(name, group, about, text)
