"""Hand-offs between ordinary shared-memory accesses and the copy engine; the fence on no, one or the other side."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma

# Triton 3.9 renamed both.
tma_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
tma_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


@gluon.jit
def tile_offsets(BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, layout: gl.constexpr):
    """Row-major offsets of one tile."""
    rows = gl.arange(0, BLOCK_M, gl.SliceLayout(1, layout))
    cols = gl.arange(0, BLOCK_N, gl.SliceLayout(0, layout))
    return rows[:, None] * BLOCK_N + cols[None, :]


@gluon.jit
def store_tile(in_ptr, out_desc, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, FENCE: gl.constexpr):
    """Writes a tile to shared memory with ordinary stores, then stores it to global memory by TMA."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    value = gl.load(in_ptr + tile_offsets(BLOCK_M, BLOCK_N, layout))
    tile = gl.allocate_shared_memory(out_desc.dtype, [BLOCK_M, BLOCK_N], out_desc.layout)
    tile.store(value)
    if FENCE:
        fence_async_shared()
    tma_store(out_desc, [0, 0], tile)
    tma.store_wait(0)


@gluon.jit
def ws_producer(in_ptr, tile, full, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, FENCE: gl.constexpr):
    """Role that writes the tile and signals it."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    tile.store(gl.load(in_ptr + tile_offsets(BLOCK_M, BLOCK_N, layout)))
    if FENCE == 1:
        fence_async_shared()
    mbarrier.arrive(full, count=1)


@gluon.jit
def ws_consumer(out_desc, tile, full, FENCE: gl.constexpr):
    """Role that waits for the tile and stores it by TMA."""
    mbarrier.wait(full, 0)
    if FENCE == 2:
        fence_async_shared()
    tma_store(out_desc, [0, 0], tile)
    tma.store_wait(0)


@gluon.jit
def ws_store(in_ptr, out_desc, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, FENCE: gl.constexpr):
    """One tile handed from four writing warps to one storing warp. FENCE: 0 on no side, 1 producer, 2 consumer."""
    tile = gl.allocate_shared_memory(out_desc.dtype, [BLOCK_M, BLOCK_N], out_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    gl.warp_specialize(
        [
            (ws_producer, (in_ptr, tile, full, BLOCK_M, BLOCK_N, FENCE)),
            (ws_consumer, (out_desc, tile, full, FENCE)),
        ],
        [1],
        [24],
    )


@gluon.jit
def ring_producer(
    in_ptr, ring, full, empty, count, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, SLOTS: gl.constexpr,
    FENCE: gl.constexpr,
):  # fmt: skip
    """Role that fills slot after slot of the ring."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    offsets = tile_offsets(BLOCK_M, BLOCK_N, layout)
    for i in range(count):
        slot = i % SLOTS
        phase = (i // SLOTS) & 1
        mbarrier.wait(empty.index(slot), phase ^ 1)
        ring.index(slot).store(gl.load(in_ptr + i * BLOCK_M * BLOCK_N + offsets))
        if FENCE == 1:
            fence_async_shared()
        mbarrier.arrive(full.index(slot), count=1)


@gluon.jit
def ring_consumer(
    out_desc, ring, full, empty, count, BLOCK_M: gl.constexpr, SLOTS: gl.constexpr, FENCE: gl.constexpr
):  # fmt: skip
    """Role that stores slot after slot by TMA and gives it back."""
    for i in range(count):
        slot = i % SLOTS
        phase = (i // SLOTS) & 1
        mbarrier.wait(full.index(slot), phase)
        if FENCE == 2:
            fence_async_shared()
        tma_store(out_desc, [i * BLOCK_M, 0], ring.index(slot))
        tma.store_wait(0)
        mbarrier.arrive(empty.index(slot), count=1)


@gluon.jit
def ws_ring(
    in_ptr, out_desc, count, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, SLOTS: gl.constexpr, FENCE: gl.constexpr
):  # fmt: skip
    """The hand-off of ``ws_store`` in a loop over a ring of slots."""
    ring = gl.allocate_shared_memory(out_desc.dtype, [SLOTS, BLOCK_M, BLOCK_N], out_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(SLOTS):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=1)
    gl.warp_specialize(
        [
            (ring_producer, (in_ptr, ring, full, empty, count, BLOCK_M, BLOCK_N, SLOTS, FENCE)),
            (ring_consumer, (out_desc, ring, full, empty, count, BLOCK_M, SLOTS, FENCE)),
        ],
        [1],
        [24],
    )


@gluon.jit
def reload_loop(in_desc, out_ptr, count, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, FENCE: gl.constexpr):
    """Loads a tile by TMA, reads it with ordinary loads, and loads the next one into the same bytes."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(in_desc.dtype, [BLOCK_M, BLOCK_N], in_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    offsets = tile_offsets(BLOCK_M, BLOCK_N, layout)
    for i in range(count):
        mbarrier.expect(full, in_desc.block_type.nbytes)
        tma_load(in_desc, [i * BLOCK_M, 0], full, tile)
        mbarrier.wait(full, i & 1)
        value = tile.load(layout)
        gl.store(out_ptr + i * BLOCK_M * BLOCK_N + offsets, value)
        if FENCE:
            fence_async_shared()
    mbarrier.invalidate(full)


@gluon.jit
def overwrite(in_desc, out_ptr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr):
    """Clears a tile with ordinary stores, then lets a TMA load overwrite it."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    other: gl.constexpr = gl.BlockedLayout([1, 4], [2, 16], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(in_desc.dtype, [BLOCK_M, BLOCK_N], in_desc.layout)
    full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(full, count=1)
    tile.store(gl.zeros([BLOCK_M, BLOCK_N], in_desc.dtype, layout))
    mbarrier.expect(full, in_desc.block_type.nbytes)
    tma_load(in_desc, [0, 0], full, tile)
    mbarrier.wait(full, 0)
    gl.store(out_ptr + tile_offsets(BLOCK_M, BLOCK_N, other), tile.load(other))
    mbarrier.invalidate(full)
