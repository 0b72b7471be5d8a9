"""Rows of async-proxy instructions and of tensor memory."""

from __future__ import annotations

import re

from ptxfence.analysis.effects import (
    Access,
    Box,
    Bytes,
    BytesOf,
    Completion,
    Copy,
    Effect,
    Fence,
    FenceKind,
    Group,
    GroupKind,
    Matrix,
    Mode,
    Order,
    Proxy,
    Role,
    Scope,
    Space,
    Sync,
    SyncKind,
)
from ptxfence.analysis.isa_form import Form, Row, mbarrier, words
from ptxfence.analysis.isa_operations import type_width

_REDUCE = "add min max inc dec and or xor noftz u32 s32 u64 s64 b32 b64 f16 bf16 f32 f64"
_TENSOR = (
    "1d 2d 3d 4d 5d tile tile::gather4 tile::scatter4 im2col im2col::w im2col::w::128 im2col_no_offs L2::cache_hint"
)
_BULK = "mbarrier::complete_tx::bytes bulk_group L2::cache_hint"
_SHARED = (Space.CTA, Space.CLUSTER)

# --- bulk copies -------------------------------------------------------------------------------------------------


def _bulk(form: Form) -> Effect | None:
    """cp.async.bulk and cp.reduce.async.bulk without a tensor map; the mbarrier is the third address."""
    if len(form.spaces()) != 2:
        return None
    target, source = form.spaces()
    reduces = form.family == "cp.reduce.async.bulk"
    mode = Mode.BOTH if reduces else Mode.WRITE
    if target is Space.GLOBAL and source is Space.CTA and form.has("bulk_group"):
        group = Completion.BULK_GROUP
        return form.effect(
            Access(0, Proxy.ASYNC, mode, target, BytesOf(2), completion=group, atomic=reduces),
            Access(1, Proxy.ASYNC, Mode.READ, source, BytesOf(2), completion=group),
        )
    if target not in _SHARED or source not in (Space.GLOBAL, Space.CTA) or not form.has("mbarrier::complete_tx::bytes"):
        return None
    signal = form.address(2, 3)
    cast = form.has("multicast::cluster")
    done = Completion.MBARRIER
    return form.effect(
        Access(
            0,
            Proxy.ASYNC,
            mode,
            target,
            BytesOf(2),
            completion=done,
            mbarrier=signal,
            multicast=cast,
            atomic=reduces,
        ),
        Access(1, Proxy.ASYNC, Mode.READ, source, BytesOf(2), completion=done, mbarrier=signal),
        mbarrier(signal, target, cast),
    )


def _multimem_bulk(form: Form) -> Effect | None:
    """multimem.cp{.reduce}.async.bulk: shared memory to a multimem address (PTX ISA 9.1)."""
    if form.spaces() != (Space.GLOBAL, Space.CTA):
        return None
    reduces = form.family == "multimem.cp.reduce.async.bulk"
    mode = Mode.BOTH if reduces else Mode.WRITE
    group = Completion.BULK_GROUP
    return form.effect(
        Access(0, Proxy.ASYNC, mode, Space.GLOBAL, BytesOf(2), completion=group, atomic=reduces),
        Access(1, Proxy.ASYNC, Mode.READ, Space.CTA, BytesOf(2), completion=group),
    )


def _prefetch(form: Form) -> Effect | None:
    return form.effect(Access(0, Proxy.ASYNC, Mode.READ, Space.GLOBAL, BytesOf(1), completion=Completion.NONE))


def _map(operand: int, completion: Completion, signal: int | None = None) -> Access:
    """The read of the 128-byte tensor map; its address is a generic one."""
    return Access(
        operand,
        Proxy.TENSORMAP,
        Mode.READ,
        Space.ANY,
        Bytes(128),
        role=Role.TENSOR_MAP,
        completion=completion,
        mbarrier=signal,
    )


def _tensor(form: Form) -> Effect | None:
    if len(form.spaces()) != 2:
        return None
    target, source = form.spaces()
    if target is Space.GLOBAL:
        return _tensor_store(form) if source is Space.CTA else None
    if source is not Space.GLOBAL or form.family != "cp.async.bulk.tensor":
        return None
    return _tensor_load(form, target)


def _tensor_load(form: Form, target: Space) -> Effect | None:
    if not form.has("mbarrier::complete_tx::bytes"):
        return None
    signal = form.address(2, 2)
    cast = form.has("multicast::cluster")
    done = Completion.MBARRIER
    return form.effect(
        Access(0, Proxy.ASYNC, Mode.WRITE, target, Box(), completion=done, mbarrier=signal, multicast=cast),
        Access(1, Proxy.ASYNC, Mode.READ, Space.TENSOR, Box(), completion=done, mbarrier=signal),
        _map(1, done, signal),
        mbarrier(signal, target, cast),
    )


def _tensor_store(form: Form) -> Effect | None:
    if not form.has("bulk_group"):
        return None
    reduces = form.family == "cp.reduce.async.bulk.tensor"
    mode = Mode.BOTH if reduces else Mode.WRITE
    group = Completion.BULK_GROUP
    return form.effect(
        Access(0, Proxy.ASYNC, mode, Space.TENSOR, Box(), completion=group, atomic=reduces),
        Access(1, Proxy.ASYNC, Mode.READ, Space.CTA, Box(), completion=group),
        _map(0, group),
    )


def _tensor_prefetch(form: Form) -> Effect | None:
    return form.effect(
        Access(0, Proxy.ASYNC, Mode.READ, Space.TENSOR, Box(), completion=Completion.NONE), _map(0, Completion.NONE)
    )


def _bulk_commit(form: Form) -> Effect | None:
    return form.effect(group=Group(GroupKind.COMMIT, Completion.BULK_GROUP))


def _bulk_wait(form: Form) -> Effect | None:
    return form.effect(group=Group(GroupKind.WAIT, Completion.BULK_GROUP, pending=0, read=form.has("read")))


# --- wgmma ---------------------------------------------------------------------------------------------------------

_WGMMA_SHAPE = re.compile(r"m64n(\d+)k\d+")
_WGMMA_SHAPES = frozenset(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32, 64, 256))
_TRANSPOSABLE = ("f16", "bf16")  # the other types are K-major only (PTX ISA, wgmma.mma_async)


def _wgmma(form: Form) -> Effect | None:
    """K is 32 bytes of a row for every type; a sparse A is compressed, so its B has 64 (PTX ISA, wgmma)."""
    shape = next((match for word in form.words if (match := _WGMMA_SHAPE.fullmatch(word))), None)
    types = [word for word in form.words if type_width(word)]
    if shape is None or len(types) < 2:
        return None
    bits = type_width(types[-1])
    registers = form.is_vector(1)
    last = form.count() - 1
    transposes = types[-1] in _TRANSPOSABLE and form.kinds is not None
    wide = 64 if form.has("sp") else 32
    b = Matrix("wgmma", "b", int(shape[1]), wide, bits, mn_major=last if transposes else None)
    operands = [_wgmma_operand(2, b)]
    if not registers:
        a = Matrix("wgmma", "a", 64, 32, bits, mn_major=last - 1 if transposes else None)
        operands.insert(0, _wgmma_operand(1, a))
    return form.effect(*operands)


def _wgmma_operand(operand: int, matrix: Matrix) -> Access:
    return Access(operand, Proxy.ASYNC, Mode.READ, Space.CTA, matrix, completion=Completion.WGMMA)


def _wgmma_fence(form: Form) -> Effect | None:
    return form.effect(fence=Fence(FenceKind.WGMMA))


def _wgmma_commit(form: Form) -> Effect | None:
    return form.effect(group=Group(GroupKind.COMMIT, Completion.WGMMA))


def _wgmma_wait(form: Form) -> Effect | None:
    return form.effect(group=Group(GroupKind.WAIT, Completion.WGMMA, pending=0))


# --- tcgen05 -------------------------------------------------------------------------------------------------------

_CTA_GROUP = "cta_group::1 cta_group::2"
_KINDS = {
    "kind::f16": 16,
    "kind::tf32": 32,
    "kind::f8f6f4": 8,  # 4- and 6-bit elements take a byte each in shared memory
    "kind::i8": 8,
    "kind::mxf8f6f4": 8,
    "kind::mxf4": 4,
    "kind::mxf4nvf4": 4,
}
_K96 = ("kind::mxf4", "kind::mxf4nvf4")  # the instruction descriptor may ask for K = 96: 48 bytes
_COLLECTOR = tuple(
    f"collector::{buffer}::{use}"
    for buffer in ("a", "b0", "b1", "b2", "b3")
    for use in ("fill", "use", "lastuse", "discard")
)
_COPIES = {"128x256b": (128, 32), "4x256b": (4, 32), "128x128b": (128, 16), "64x128b": (64, 16), "32x128b": (32, 16)}


def _mma(form: Form) -> Effect | None:
    """A is a descriptor or, in brackets, tensor memory. Sparse forms have the metadata before the descriptor."""
    kind = next((word for word in form.words if word in _KINDS), None)
    if kind is None or not form.has("cta_group::1", "cta_group::2"):
        return None
    sparse = form.has("sp")
    idesc = 4 if sparse else 3
    row = 48 if kind in _K96 else 32
    pair = form.has("cta_group::2")
    operands: list[Access] = []
    for position, which, row_bytes in ((1, "a", row), (2, "b", 2 * row if sparse else row)):
        if form.is_address(position):
            continue
        matrix = Matrix("tcgen05", which, None, row_bytes, _KINDS[kind], idesc=idesc, ctas=2 if pair else 1)
        operands.append(_tcgen05_operand(position, matrix, pair))
    return form.effect(*operands)


def _tcgen05_operand(operand: int, footprint: Matrix | Copy, pair: bool) -> Access:
    return Access(
        operand,
        Proxy.ASYNC,
        Mode.READ,
        Space.CTA,
        footprint,
        completion=Completion.TCGEN05,
        both_ctas=pair,
    )


def _tensor_copy(form: Form) -> Effect | None:
    """tcgen05.cp. Padded 4- and 6-bit sources are as wide as 8-bit ones (`.b4x16_p64`, `.b6x16_p32`)."""
    shape = next((_COPIES[word] for word in form.words if word in _COPIES), None)
    if shape is None:
        return None
    rows, row_bytes = shape
    pair = form.has("cta_group::2")
    return form.effect(_tcgen05_operand(1, Copy(rows * row_bytes, rows, row_bytes, ctas=2 if pair else 1), pair))


def _alloc(form: Form) -> Effect | None:
    """Writes the tensor memory address, a weak store in order with the thread's own (PTX ISA 9.7.16.7)."""
    return form.effect(Access(0, Proxy.GENERIC, Mode.WRITE, form.space(), Bytes(4), role=Role.TMEM_SLOT))


def _commit(form: Form) -> Effect | None:
    space = form.space()
    cast = form.has("multicast::cluster")
    sync = Sync(SyncKind.TCGEN05_COMMIT, Scope.CLUSTER, Order.RELEASE, address=0, space=space, multicast=cast)
    return form.effect(mbarrier(0, space, cast), sync=sync)


def _thread_sync(form: Form) -> Effect | None:
    before = form.family.endswith("before_thread_sync")
    return form.effect(fence=Fence(FenceKind.TCGEN05, order=Order.RELEASE if before else Order.ACQUIRE))


def _cancel(form: Form) -> Effect | None:
    """clusterlaunchcontrol.try_cancel: a 16-byte response, a weak async write (PTX ISA 9.7.13.17)."""
    space = form.space()
    cast = form.has("multicast::cluster::all")
    response = Access(
        0,
        Proxy.ASYNC,
        Mode.WRITE,
        space,
        Bytes(16),
        role=Role.CLC_RESPONSE,
        completion=Completion.MBARRIER,
        mbarrier=1,
        multicast=cast,
    )
    return form.effect(response, mbarrier(1, space, cast))


_WGMMA_TYPES = "f16 bf16 tf32 f32 e4m3 e5m2 s8 u8 s32 b1 and popc satfinite sp"
_TO_SHARED = "shared::cta shared::cluster global"

ROWS = (
    Row("cp.async.bulk", words(_TO_SHARED, _BULK, "multicast::cluster cp_mask ignore_oob"), _bulk),
    Row("cp.reduce.async.bulk", words(_TO_SHARED, _BULK, _REDUCE), _bulk),
    Row("multimem.cp.async.bulk", words("global shared::cta bulk_group cp_mask"), _multimem_bulk),
    Row("multimem.cp.reduce.async.bulk", words("global shared::cta bulk_group", _REDUCE), _multimem_bulk),
    Row("cp.async.bulk.prefetch", words("L2 global L2::cache_hint"), _prefetch),
    Row("cp.async.bulk.tensor", words(_TO_SHARED, _BULK, _TENSOR, "multicast::cluster", _CTA_GROUP), _tensor),
    Row("cp.reduce.async.bulk.tensor", words(_TO_SHARED, _BULK, _TENSOR, _REDUCE), _tensor),
    Row("cp.async.bulk.prefetch.tensor", words("L2 global", _TENSOR), _tensor_prefetch),
    Row("cp.async.bulk.commit_group", frozenset(), _bulk_commit),
    Row("cp.async.bulk.wait_group", words("read"), _bulk_wait),
    Row("wgmma.mma_async", words("sync aligned", _WGMMA_TYPES) | _WGMMA_SHAPES, _wgmma),
    Row("wgmma.fence", words("sync aligned"), _wgmma_fence),
    Row("wgmma.commit_group", words("sync aligned"), _wgmma_commit),
    Row("wgmma.wait_group", words("sync aligned"), _wgmma_wait),
    Row(
        "tcgen05.mma",
        words(_CTA_GROUP, "sp ws ashift block_scale scale_vec::1X scale_vec::2X scale_vec::4X block16 block32")
        | frozenset(_KINDS)
        | frozenset(_COLLECTOR),
        _mma,
    ),
    Row(
        "tcgen05.cp",
        words(_CTA_GROUP, "warpx4 warpx2::02_13 warpx2::01_23 b8x16 b6x16_p32 b4x16_p64") | frozenset(_COPIES),
        _tensor_copy,
    ),
    Row("tcgen05.alloc", words(_CTA_GROUP, "sync aligned shared::cta b32"), _alloc),
    Row(
        "tcgen05.commit",
        words(_CTA_GROUP, "mbarrier::arrive::one shared::cluster multicast::cluster b64"),
        _commit,
    ),
    Row("tcgen05.fence::before_thread_sync", frozenset(), _thread_sync),
    Row("tcgen05.fence::after_thread_sync", frozenset(), _thread_sync),
    Row(
        "clusterlaunchcontrol.try_cancel",
        words("async shared::cta mbarrier::complete_tx::bytes multicast::cluster::all b128"),
        _cancel,
    ),
)
