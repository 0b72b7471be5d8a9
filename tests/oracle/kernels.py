"""Generated kernels: one text per warp size, line for line the same.

The analysis sees warps of 32 threads, the oracle runs warps of 4: constants that depend on the warp size are written
as `<...>` and filled in last. `<NT>` threads, `<W>` warp size, `<SHIFT>` its logarithm, `<S:k>` k times the bytes of a
buffer (16 for every thread), `<H:k>` k halves of one, `<A:k>` the
threads of k warps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

ORACLE_WARP = 4
BUFFERS = 3

_FRAME = """\
.version 8.6
.target sm_90a
.address_size 64
{functions}
.visible .entry generated(
	.param .u64 generated_param_0,
	.param .u64 generated_param_1,
	.param .u32 generated_param_2,
	.param .u32 generated_param_3
)
.reqntid <NT>
{cluster}{{
	.reg .pred lead, lead1, w0, w1, half, p<40>, done;
	.reg .b32 tid, warp, lane, n, flags, mine, buf, bars, acc, v<4>, ph<8>, i<12>, s<12>, x<12>;
	.reg .b64 out, in, gmine;
	.shared .align 128 .b8 tile[<S:{buffers}>];
	.shared .align 8 .b8 objects[64];
	ld.param.u64 out, [generated_param_0];
	ld.param.u64 in, [generated_param_1];
	ld.param.u32 n, [generated_param_2];
	ld.param.u32 flags, [generated_param_3];
	cvta.to.global.u64 out, out;
	cvta.to.global.u64 in, in;
	mov.u32 tid, %tid.x;
	shr.u32 warp, tid, <SHIFT>;
	and.b32 lane, tid, <LANES>;
	setp.eq.u32 lead, tid, 0;
	setp.eq.u32 lead1, tid, <W>;
	setp.eq.u32 w0, warp, 0;
	setp.eq.u32 w1, warp, 1;
	setp.lt.u32 half, tid, <HALF>;
	mov.u32 buf, tile;
	shl.b32 mine, tid, 4;
	add.u32 mine, buf, mine;
	mov.u32 bars, objects;
	mul.wide.u32 gmine, tid, 16;
	add.u64 gmine, out, gmine;
	add.u64 gmine, gmine, 1048576;
	mov.u32 acc, 0;
{body}
	st.global.u32 [gmine+8], acc;
	ret;
}}
"""

_TOKEN = re.compile(r"<([A-Z]+)(?::(\d+))?>")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated program. `body` lines carry the `<...>` constants."""

    warps: int
    body: tuple[str, ...]
    functions: tuple[str, ...] = ()
    flags: int = 0  # bits of the fourth parameter that steer branches
    ctas: int = 1  # in a cluster

    def text(self, warp: int = 32) -> str:
        """PTX for a warp size."""
        return _text(self, warp)

    @property
    def trips(self) -> tuple[int, ...]:
        """Values of the third parameter worth running."""
        return (2, 0, 1, 3) if any(re.search(r"\bn[,;)]", line) for line in self.body) else (2,)

    @property
    def oracle_text(self) -> str:
        return self.text(ORACLE_WARP)

    def without(self, index: int) -> Kernel:
        return replace(self, body=self.body[:index] + self.body[index + 1 :])

    def with_line(self, index: int, line: str) -> Kernel:
        return replace(self, body=(*self.body[:index], line, *self.body[index:]))


@lru_cache(maxsize=64)
def _text(kernel: Kernel, warp: int) -> str:
    threads = warp * kernel.warps
    values = {"NT": threads, "W": warp, "SHIFT": warp.bit_length() - 1, "LANES": warp - 1, "HALF": threads // 2}

    def fill(match: re.Match[str]) -> str:
        name, factor = match[1], match[2]
        if name == "S":
            return str(int(factor) * threads * 16)
        if name == "A":
            return str(int(factor) * warp)
        if name == "H":
            return str(int(factor) * threads * 8)
        return str(values[name])

    body = "\n".join(line if line.endswith(":") else f"\t{line}" for line in kernel.body)
    cluster = f".explicitcluster\n.reqnctapercluster {kernel.ctas}, 1, 1\n" if kernel.ctas > 1 else ""
    whole = _FRAME.format(functions="\n".join(kernel.functions), body=body, buffers=BUFFERS, cluster=cluster)
    return _TOKEN.sub(fill, whole)
