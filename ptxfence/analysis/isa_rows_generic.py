"""Rows of generic-proxy instructions."""

from __future__ import annotations

from ptxfence.analysis.effects import (
    Access,
    Box,
    Bytes,
    BytesOf,
    Completion,
    Direction,
    Effect,
    Fence,
    FenceKind,
    Group,
    GroupKind,
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

_SPACE = "shared shared::cta shared::cluster global local param param::entry param::func const"
_SCOPE = "cta cluster gpu sys"
_CACHE = (
    "ca cg cs lu cv wb wt L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"
    " L2::evict_normal L2::evict_first L2::evict_last L2::evict_unchanged L2::no_allocate"
    " L2::cache_hint L2::64B L2::128B L2::256B"
)
_TYPE = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 f32 f32x2 f64 v2 v4 v8"
_STRONG = "weak relaxed acquire release acq_rel volatile mmio"
_OPERATION = "and or xor cas exch add inc dec min max noftz"
_NARROW = "e4m3 e5m2 e4m3x2 e5m2x2 e4m3x4 e5m2x4 acc::f16 acc::f32 acc::bf16"


def _plain(form: Form, operand: int, mode: Mode, value: int, default: Order | None = None) -> Access:
    """A load, a store or an atomic: strength, scope and size from the qualifiers (PTX ISA, ld)."""
    volatile = form.has("volatile")
    strong = volatile or default is not None or form.has("relaxed", "acquire", "release", "acq_rel", "mmio")
    widest = Scope.GPU if default is not None else Scope.SYS
    return Access(
        operand,
        Proxy.GENERIC,
        mode,
        form.space(),
        form.size(),
        order=form.order(default or Order.RELAXED) if strong else None,
        scope=form.scope(widest) if strong else None,
        volatile=volatile,
        value=value,
        atomic=mode is Mode.BOTH,
    )


def _load(form: Form) -> Effect | None:
    return form.effect(_plain(form, form.address(0, 1), Mode.READ, 0))


def _store(form: Form) -> Effect | None:
    return form.effect(_plain(form, form.address(0, 0), Mode.WRITE, 1))


def _atom(form: Form) -> Effect | None:
    return form.effect(_plain(form, form.address(0, 1), Mode.BOTH, 0, Order.RELAXED))


def _red(form: Form) -> Effect | None:
    return form.effect(_plain(form, form.address(0, 0), Mode.BOTH, 1, Order.RELAXED))


def _multimem(mode: Mode, address: int) -> Row:
    """multimem addresses lie in global memory, whether the opcode says so or not (PTX ISA, multimem)."""

    def build(form: Form) -> Effect:
        strong = mode is not Mode.WRITE or form.has("relaxed", "release")
        weak = form.has("weak") or not strong
        access = Access(
            form.address(0, address),
            Proxy.GENERIC,
            mode,
            Space.GLOBAL,
            form.size(),
            order=None if weak else form.order(Order.RELAXED),
            scope=None if weak else form.scope(Scope.GPU),
            value=1 - address,
            atomic=mode is Mode.BOTH,
        )
        return form.effect(access)

    name = {Mode.READ: "ld_reduce", Mode.WRITE: "st", Mode.BOTH: "red"}[mode]
    return Row(
        f"multimem.{name}", words("weak relaxed release acquire global", _SCOPE, _OPERATION, _TYPE, _NARROW), build
    )


def _async_store(mode: Mode) -> Row:
    """st.async and red.async: the generic proxy, although asynchronous (PTX ISA 9.4 9.7.10.12, 9.7.15.7)."""

    def build(form: Form) -> Effect:
        observed = form.has("mbarrier::complete_tx::bytes")
        peer = Space.ANY if form.space() is Space.ANY else Space.CLUSTER
        access = Access(
            0,
            Proxy.GENERIC,
            mode,
            peer if observed else form.space(),
            form.size(),
            completion=Completion.MBARRIER if observed else Completion.NONE,
            mbarrier=2 if observed else None,
            order=None if observed and mode is Mode.WRITE else form.order(Order.RELAXED),
            scope=None if observed and mode is Mode.WRITE else form.scope(Scope.CLUSTER if observed else Scope.GPU),
            value=1,
            atomic=mode is Mode.BOTH,
        )
        return form.effect(access, mbarrier(2, peer)) if observed else form.effect(access)

    name = {Mode.WRITE: "st.async", Mode.BOTH: "red.async"}[mode]
    forms = "weak relaxed release mmio shared::cluster global mbarrier::complete_tx::bytes"
    return Row(name, words(forms, _SCOPE, _TYPE, _OPERATION), build)


def _multimem_async(mode: Mode) -> Row:
    """multimem.st.async and multimem.red.async have the `.release` form only: nothing waits for them (13.5)."""

    def build(form: Form) -> Effect:
        access = Access(
            0,
            Proxy.GENERIC,
            mode,
            Space.GLOBAL,
            form.size(),
            completion=Completion.NONE,
            order=form.order(Order.RELEASE),
            scope=form.scope(Scope.GPU),
            value=1,
            atomic=mode is Mode.BOTH,
        )
        return form.effect(access)

    name = {Mode.WRITE: "multimem.st.async", Mode.BOTH: "multimem.red.async"}[mode]
    return Row(name, words("release mmio global", _SCOPE, _TYPE, _OPERATION), build)


def _bulk_zero(form: Form) -> Effect | None:
    return form.effect(Access(0, Proxy.GENERIC, Mode.WRITE, form.space(), BytesOf(1), value=2))


def _matrix(mode: Mode, address: int, value: int) -> Row:
    """Each lane names one row of 16 bytes; also the padded sub-byte rows are 16 bytes (PTX ISA, ldmatrix)."""

    def build(form: Form) -> Effect:
        return form.effect(Access(form.address(0, address), Proxy.GENERIC, mode, form.space(), Bytes(16), value=value))

    name = "ldmatrix" if mode is Mode.READ else "stmatrix"
    shapes = "m8n8 m16n8 m16n16 m8n16 x1 x2 x4 trans b16 b8 b8x16 b6x16_p32 b4x16_p64 s8 s4 u8 u4"
    return Row(name, words("sync aligned shared shared::cta", shapes), build)


def _wmma(mode: Mode, address: int) -> Row:
    """The size depends on the stride operand: an extent upwards from the address."""

    def build(form: Form) -> Effect:
        return form.effect(
            Access(form.address(0, address), Proxy.GENERIC, mode, form.space(), Box(), value=1 - address)
        )

    shapes = "m16n16k16 m8n32k16 m32n8k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128 row col a b c d"
    types = "f16 f32 f64 bf16 tf32 s8 u8 s32 s4 u4 b1"
    name = "wmma.load" if mode is Mode.READ else "wmma.store"
    return Row(name, words("sync aligned shared shared::cta global", shapes, types), build)


def _copy(form: Form) -> Effect | None:
    """cp.async. Operand 3 is src-size, ignore-src or the policy; none of them enlarges what operand 2 says."""
    spaces = form.spaces()
    if spaces != (Space.CTA, Space.GLOBAL):
        return None
    write = Access(0, Proxy.GENERIC, Mode.WRITE, Space.CTA, BytesOf(2), completion=Completion.CP_ASYNC)
    read = Access(1, Proxy.GENERIC, Mode.READ, Space.GLOBAL, BytesOf(2), completion=Completion.CP_ASYNC)
    return form.effect(write, read)


def _copy_arrive(form: Form) -> Effect | None:
    sync = Sync(
        SyncKind.CP_ASYNC_ARRIVE,
        Scope.CTA,
        Order.RELEASE,
        address=0,
        space=form.space(),
        increments=not form.has("noinc"),
    )
    return form.effect(mbarrier(0, form.space()), sync=sync)


def _copy_group(kind: GroupKind) -> Row:
    name = {GroupKind.COMMIT: "commit_group", GroupKind.WAIT: "wait_group", GroupKind.WAIT_ALL: "wait_all"}[kind]
    group = Group(kind, Completion.CP_ASYNC, pending=0 if kind is GroupKind.WAIT else None)
    return Row(f"cp.async.{name}", frozenset(), lambda form: form.effect(group=group))


def _map_replace(form: Form) -> Effect | None:
    access = Access(0, Proxy.GENERIC, Mode.BOTH, form.space(), Bytes(128), role=Role.TENSOR_MAP)
    return form.effect(access)


def _map_query(form: Form) -> Effect | None:
    return form.effect(Access(1, Proxy.GENERIC, Mode.READ, form.space(), Bytes(128), role=Role.TENSOR_MAP))


def _map_publish(form: Form) -> Effect | None:
    """Copies a tensor map to global memory, then releases it to the tensormap proxy (PTX ISA 9.7.13.16)."""
    if form.spaces() != (Space.GLOBAL, Space.CTA) or not form.has("release"):
        return None
    return form.effect(
        Access(0, Proxy.GENERIC, Mode.WRITE, Space.GLOBAL, Bytes(128), role=Role.TENSOR_MAP),
        Access(1, Proxy.GENERIC, Mode.READ, Space.CTA, Bytes(128), role=Role.TENSOR_MAP),
        fence=Fence(
            FenceKind.TENSORMAP,
            frozenset((Space.GLOBAL,)),
            Direction.RELEASE,
            scope=form.scope(Scope.GPU),
            order=Order.RELEASE,
        ),
    )


def _map_prefetch(form: Form) -> Effect | None:
    """`prefetch.tensormap` reads the map through its own proxy; the other forms are hints."""
    if not form.has("tensormap"):
        return form.effect()
    return form.effect(
        Access(
            0,
            Proxy.TENSORMAP,
            Mode.READ,
            form.space(),
            Bytes(128),
            role=Role.TENSOR_MAP,
            completion=Completion.NONE,
        )
    )


def _discard(form: Form) -> Effect | None:
    """The line's contents are lost: a write of unspecified values (PTX ISA, discard)."""
    return form.effect(Access(0, Proxy.GENERIC, Mode.WRITE, form.space(), BytesOf(1)))


_FIELDS = (
    "tile global_address rank box_dim global_dim global_stride element_stride elemtype interleave_layout"
    " swizzle_mode swizzle_atomicity fill_mode"
)

ROWS = (
    Row("ld", words(_STRONG, "nc", _SPACE, _SCOPE, _CACHE, _TYPE), _load),
    Row("ldu", words("global", _TYPE), _load),
    Row("st", words(_STRONG, _SPACE, _SCOPE, _CACHE, _TYPE), _store),
    Row("st.bulk", words("weak shared::cta"), _bulk_zero),
    Row("atom", words(_STRONG, _SPACE, _SCOPE, _CACHE, _TYPE, _OPERATION), _atom),
    Row("red", words(_STRONG, _SPACE, _SCOPE, _CACHE, _TYPE, _OPERATION), _red),
    _async_store(Mode.WRITE),
    _async_store(Mode.BOTH),
    _multimem(Mode.READ, 1),
    _multimem(Mode.WRITE, 0),
    _multimem(Mode.BOTH, 0),
    _multimem_async(Mode.WRITE),
    _multimem_async(Mode.BOTH),
    _matrix(Mode.READ, 1, 0),
    _matrix(Mode.WRITE, 0, 1),
    _wmma(Mode.READ, 1),
    _wmma(Mode.WRITE, 0),
    Row("cp.async", words("ca cg shared shared::cta global", _CACHE), _copy),
    Row("cp.async.mbarrier.arrive", words("noinc shared shared::cta b64"), _copy_arrive),
    _copy_group(GroupKind.COMMIT),
    _copy_group(GroupKind.WAIT),
    _copy_group(GroupKind.WAIT_ALL),
    Row("tensormap.replace", words("global shared::cta b1024 b32 b64", _FIELDS), _map_replace),
    Row("tensormap.query.alloc_class_large", words("global shared::cta b1024"), _map_query),
    Row(
        "tensormap.cp_fenceproxy",
        words("global shared::cta tensormap::generic release sync aligned", _SCOPE),
        _map_publish,
    ),
    Row("prefetch", words("global local const param L1 L2 tensormap L2::evict_last L2::evict_normal"), _map_prefetch),
    Row("discard", words("global L2"), _discard),
)
