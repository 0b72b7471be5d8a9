"""The kernel around the short examples of the rules, so that each of them is a PTX file that ptxas takes."""

from __future__ import annotations

# 128 threads. %r3 is the calling thread's word of `tile`, %rd1 its word of `data`, %p0 holds in thread 0 only;
# `full` is an initialised mbarrier. Registers from %r4, %rd4 and %p1 on are free.
_FRAME = """\
.version 8.7
.target {arch}
.address_size 64

.shared .align 1024 .b8 tile[4096];
.shared .align 8 .b64 full;
.shared .align 8 .b64 ready;

.extern .func helper();

.visible .entry example(
    .param .u64 .ptr .global .align 1024 data,
    .param .u64 .ptr .global .align 1024 out,
    .param .u64 .ptr .global .align 128 map,
    .param .u32 count
)
.reqntid 128, 1, 1
{{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;

    ld.param.u64 %rd0, [data];
    cvta.to.global.u64 %rd0, %rd0;
    ld.param.u64 %rd2, [out];
    cvta.to.global.u64 %rd2, %rd2;
    ld.param.u64 %rd3, [map];
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p0, %r0, 0;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, tile;
    add.u32 %r3, %r2, %r1;
    cvt.u64.u32 %rd1, %r1;
    add.u64 %rd1, %rd0, %rd1;
    @%p0 mbarrier.init.shared.b64 [full], 1;
    bar.sync 0;

{body}
    ret;
}}
"""


def kernel(statements: str, arch: str = "sm_90a") -> str:
    """The statements of an example as a complete PTX text."""
    body = "\n".join(f"    {line}" for line in statements.strip("\n").splitlines())
    return _FRAME.format(arch=arch, body=body)
