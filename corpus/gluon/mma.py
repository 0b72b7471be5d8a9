"""Tensor-core operands placed in shared memory by ordinary stores and by ``cp.async`` (sm_90: wgmma)."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, warpgroup_mma

# Triton 3.9 renamed it.
copy_in = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared


@gluon.jit
def square_offsets(SIZE: gl.constexpr, layout: gl.constexpr):
    """Row-major offsets of a square tile."""
    rows = gl.arange(0, SIZE, gl.SliceLayout(1, layout))
    cols = gl.arange(0, SIZE, gl.SliceLayout(0, layout))
    return rows[:, None] * SIZE + cols[None, :]


@gluon.jit
def staged_wgmma(a_ptr, b_ptr, c_ptr, SIZE: gl.constexpr, FENCE: gl.constexpr):
    """C = A @ B for one square tile; both operands written to shared memory by ordinary stores."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    result: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    offsets = square_offsets(SIZE, layout)
    a = gl.allocate_shared_memory(gl.float16, [SIZE, SIZE], shared)
    b = gl.allocate_shared_memory(gl.float16, [SIZE, SIZE], shared)
    a.store(gl.load(a_ptr + offsets))
    b.store(gl.load(b_ptr + offsets))
    if FENCE:
        fence_async_shared()
    acc = warpgroup_mma(a, b, gl.zeros([SIZE, SIZE], gl.float32, result))
    gl.store(c_ptr + square_offsets(SIZE, result), acc.to(gl.float16))


@gluon.jit
def copy_producer(a_ptr, b_ptr, a_ring, b_ring, full, empty, count, SIZE: gl.constexpr, SLOTS: gl.constexpr):
    """Role that copies tiles by ``cp.async`` and lets each copy's completion arrive on the slot's barrier."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    offsets = square_offsets(SIZE, layout)
    for i in range(count):
        slot = i % SLOTS
        phase = (i // SLOTS) & 1
        mbarrier.wait(empty.index(slot), phase ^ 1)
        copy_in(a_ring.index(slot), a_ptr + i * SIZE * SIZE + offsets)
        copy_in(b_ring.index(slot), b_ptr + i * SIZE * SIZE + offsets)
        async_copy.mbarrier_arrive(full.index(slot), increment_count=False)


@gluon.jit
def mma_consumer(
    c_ptr, a_ring, b_ring, full, empty, count, SIZE: gl.constexpr, SLOTS: gl.constexpr, FENCE: gl.constexpr
):
    """Role that multiplies slot after slot."""
    result: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    acc = gl.zeros([SIZE, SIZE], gl.float32, result)
    for i in range(count):
        slot = i % SLOTS
        phase = (i // SLOTS) & 1
        mbarrier.wait(full.index(slot), phase)
        if FENCE:
            fence_async_shared()
        acc = warpgroup_mma(a_ring.index(slot), b_ring.index(slot), acc)
        mbarrier.arrive(empty.index(slot), count=1)
    gl.store(c_ptr + square_offsets(SIZE, result), acc.to(gl.float16))


@gluon.jit
def ws_copy_wgmma(a_ptr, b_ptr, c_ptr, count, SIZE: gl.constexpr, SLOTS: gl.constexpr, FENCE: gl.constexpr):
    """C = sum of A_i @ B_i; four copying warps, four multiplying warps, hand-over by ``cp.async.mbarrier.arrive``."""
    shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    a_ring = gl.allocate_shared_memory(gl.float16, [SLOTS, SIZE, SIZE], shared)
    b_ring = gl.allocate_shared_memory(gl.float16, [SLOTS, SIZE, SIZE], shared)
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(SLOTS):
        mbarrier.init(full.index(i), count=128)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize(
        [
            (mma_consumer, (c_ptr, a_ring, b_ring, full, empty, count, SIZE, SLOTS, FENCE)),
            (copy_producer, (a_ptr, b_ptr, a_ring, b_ring, full, empty, count, SIZE, SLOTS)),
        ],
        [4],
        [40],
    )
