"""Rows of fences, barriers, mbarriers and control flow."""

from __future__ import annotations

from ptxfence.analysis.effects import (
    Direction,
    Effect,
    Fence,
    FenceKind,
    Flow,
    Order,
    Scope,
    Space,
    Sync,
    SyncKind,
)
from ptxfence.analysis.isa_form import ORDERS, SCOPES, Form, Row, mbarrier, words

# --- fences --------------------------------------------------------------------------------------------------------

_OWN = frozenset((Space.CTA,))
_SHARED = frozenset((Space.CTA, Space.CLUSTER))
_GLOBAL = frozenset((Space.GLOBAL, Space.TENSOR))

_ASYNC = {
    "": _SHARED | _GLOBAL,
    "shared::cta": _OWN,
    "shared::cluster": _SHARED,
    "global": _GLOBAL,
}
_THREAD = {
    "sc": Direction.BOTH,
    "acq_rel": Direction.BOTH,
    "acquire": Direction.ACQUIRE,
    "release": Direction.RELEASE,
}
_FABRIC = ("generic::fabric", "fabric::generic", "fabric::fabric")


def _fences() -> dict[frozenset[str], Fence]:
    """Every fence that ptxas takes (13.5), by its qualifiers without the mnemonic; anything else is no fence."""
    table: dict[str, Fence] = {
        "proxy.alias": Fence(FenceKind.ALIAS),
        "alias.sync_restrict::read.release.sys": Fence(  # PTX ISA 9.5
            FenceKind.ALIAS, direction=Direction.RELEASE_READS, scope=Scope.SYS, order=Order.RELEASE
        ),
        "mbarrier_init.release.cluster": Fence(
            FenceKind.MBARRIER_INIT, direction=Direction.RELEASE, scope=Scope.CLUSTER, order=Order.RELEASE
        ),
    }
    for suffix, covers in _ASYNC.items():
        table[f"proxy.async.{suffix}".rstrip(".")] = Fence(FenceKind.ASYNC, covers)
    table |= _one_way_async()
    for half in ("acquire", "release"):
        direction = Direction.ACQUIRE if half == "acquire" else Direction.RELEASE
        order = ORDERS[half]
        table[f"proxy.alias.{half}.sys"] = Fence(FenceKind.ALIAS, direction=direction, scope=Scope.SYS, order=order)
        for pair in _FABRIC:
            table[f"proxy.{pair}.alias.{half}.sys"] = Fence(
                FenceKind.OTHER, direction=direction, scope=Scope.SYS, order=order
            )
        for name in ("cta", "cluster", "gpu", "sys"):
            table[f"proxy.tensormap::generic.{half}.{name}"] = Fence(
                FenceKind.TENSORMAP,
                frozenset((Space.GLOBAL,)),
                direction,
                SCOPES[name],
                order,
                address=0 if half == "acquire" else None,
            )
    for name in ("cta", "cluster", "gpu", "sys"):
        table[name] = Fence(FenceKind.THREAD, scope=SCOPES[name], order=Order.ACQ_REL)
        for word, direction in _THREAD.items():
            table[f"{word}.{name}"] = Fence(
                FenceKind.THREAD, direction=direction, scope=SCOPES[name], order=ORDERS[word]
            )
    return {frozenset(text.split(".")): fence for text, fence in table.items()}


def _one_way_async() -> dict[str, Fence]:
    """The halves of the generic-to-async fence, and the thread fences limited to shared memory."""
    own, peer = "sync_restrict::shared::cta", "sync_restrict::shared::cluster"
    release, acquire, reads = Direction.RELEASE, Direction.ACQUIRE, Direction.RELEASE_READS
    table = {
        f"proxy.async::generic.release.{own}.cluster": Fence(
            FenceKind.ASYNC, _OWN, release, Scope.CLUSTER, Order.RELEASE
        ),
        f"proxy.async::generic.acquire.{peer}.cluster": Fence(
            FenceKind.ASYNC, _SHARED, acquire, Scope.CLUSTER, Order.ACQUIRE
        ),
        f"release.{own}.cluster": Fence(FenceKind.THREAD, _OWN, release, Scope.CLUSTER, Order.RELEASE),
        f"acquire.{peer}.cluster": Fence(FenceKind.THREAD, _SHARED, acquire, Scope.CLUSTER, Order.ACQUIRE),
    }
    for name in ("cta", "cluster"):
        table[f"proxy.async::generic.release.{peer}::read.{name}"] = Fence(
            FenceKind.ASYNC, _SHARED, reads, SCOPES[name], Order.RELEASE
        )
    return table


_FENCES = _fences()
# `membar.proxy.async` is taken by ptxas 13.4 and refused by 12.9 and 13.0.
_MEMBARS: dict[frozenset[str], Fence] = {
    frozenset(("cta",)): Fence(FenceKind.THREAD, scope=Scope.CTA, order=Order.SC),
    frozenset(("gl",)): Fence(FenceKind.THREAD, scope=Scope.GPU, order=Order.SC),
    frozenset(("sys",)): Fence(FenceKind.THREAD, scope=Scope.SYS, order=Order.SC),
    frozenset(("proxy", "alias")): Fence(FenceKind.ALIAS),
    frozenset(("proxy", "async")): Fence(FenceKind.ASYNC, _SHARED | _GLOBAL),
}


def _fence(form: Form) -> Effect | None:
    table = _MEMBARS if form.family == "membar" else _FENCES
    fence = table.get(form.qualifiers)
    if fence is None or len(form.words) != len(form.qualifiers):
        return None
    return form.effect(fence=fence)


# --- barriers ------------------------------------------------------------------------------------------------------


def _bar(form: Form) -> Effect | None:
    """bar.sync, bar.red, bar.arrive and the same of barrier; `bar` is the aligned one."""
    first = 1 if form.has("red") else 0
    counted = form.count() - (1 if first else 0) > first + 1
    sync = Sync(
        SyncKind.BAR_ARRIVE if form.has("arrive") else SyncKind.BAR,
        Scope.CTA,
        Order.RELEASE if form.has("arrive") else Order.ACQ_REL,
        barrier=first,
        count=first + 1 if counted else None,
        result=0 if first else None,
        aligned=form.family == "bar" or form.has("aligned"),
    )
    return form.effect(sync=sync) if form.has("sync", "red", "arrive") else None


def _warp(form: Form) -> Effect | None:
    return form.effect(sync=Sync(SyncKind.WARP, Scope.WARP, Order.ACQ_REL, barrier=0))


def _cluster(kind: SyncKind, default: Order) -> Row:
    def build(form: Form) -> Effect:
        order = form.order(default)
        return form.effect(sync=Sync(kind, Scope.CLUSTER, order, aligned=form.has("aligned")))

    return Row(kind.value, words("aligned relaxed release acquire"), build)


def _grid(kind: SyncKind, order: Order) -> Row:
    return Row(kind.value, frozenset(), lambda form: form.effect(sync=Sync(kind, Scope.GPU, order)))


# --- mbarriers -----------------------------------------------------------------------------------------------------


def _init(form: Form) -> Effect | None:
    sync = Sync(SyncKind.MBARRIER_INIT, Scope.CTA, Order.RELAXED, address=0, count=1, space=form.space())
    return form.effect(mbarrier(0, form.space()), sync=sync)


def _invalidate(form: Form) -> Effect | None:
    sync = Sync(SyncKind.MBARRIER_INVAL, Scope.CTA, Order.RELAXED, address=0, space=form.space())
    return form.effect(mbarrier(0, form.space()), sync=sync)


def _arrive(form: Form) -> Effect | None:
    """The state operand may be missing or `_`; the operand after the address is a count, or bytes with expect_tx."""
    address = form.address(0, 1)
    operand = form.optional(address + 1)
    expects = form.has("expect_tx")
    sync = Sync(
        SyncKind.MBARRIER_ARRIVE,
        form.scope(Scope.CTA),
        form.order(Order.RELEASE),
        address=address,
        count=None if expects else operand,
        tx=operand if expects else None,
        result=0 if address else None,
        space=form.space(),
        drops=form.family == "mbarrier.arrive_drop",
    )
    return form.effect(mbarrier(address, form.space()), sync=sync)


def _transaction(kind: SyncKind) -> Row:
    def build(form: Form) -> Effect:
        sync = Sync(kind, form.scope(Scope.CTA), Order.RELAXED, address=0, tx=1, space=form.space())
        return form.effect(mbarrier(0, form.space()), sync=sync)

    return Row(kind.value, words(_MBARRIER, "relaxed", _SCOPE), build)


def _wait(form: Form) -> Effect | None:
    sync = Sync(
        SyncKind.MBARRIER_WAIT,
        form.scope(Scope.CTA),
        form.order(Order.ACQUIRE),
        address=form.address(0, 1),
        result=0,
        parity=form.address(0, 1) + 1,
        space=form.space(),
    )
    return form.effect(mbarrier(form.address(0, 1), form.space()), sync=sync)


def _flow(name: str, flow: Flow, *qualifiers: str) -> Row:
    return Row(name, words(*qualifiers), lambda form: form.effect(flow=flow))


_SCOPE = "cta cluster"
_MBARRIER = "shared shared::cta shared::cluster b64"
_ARRIVE = words(_MBARRIER, "release relaxed expect_tx noComplete", _SCOPE)
_WAIT = words(_MBARRIER, "acquire relaxed parity", _SCOPE)
_BAR = words("cta sync arrive red aligned popc and or u32 pred")

ROWS = (
    Row("fence", frozenset[str]().union(*_FENCES), _fence),
    Row("membar", frozenset[str]().union(*_MEMBARS), _fence),
    Row("bar", _BAR, _bar),
    Row("barrier", _BAR, _bar),
    Row("bar.warp.sync", frozenset(), _warp),
    _cluster(SyncKind.CLUSTER_ARRIVE, Order.RELEASE),
    _cluster(SyncKind.CLUSTER_WAIT, Order.ACQUIRE),
    _grid(SyncKind.GRID_LAUNCH, Order.RELEASE),
    _grid(SyncKind.GRID_WAIT, Order.ACQUIRE),
    Row("mbarrier.init", words(_MBARRIER), _init),
    Row("mbarrier.inval", words(_MBARRIER), _invalidate),
    Row("mbarrier.arrive", _ARRIVE, _arrive),
    Row("mbarrier.arrive_drop", _ARRIVE, _arrive),
    _transaction(SyncKind.MBARRIER_EXPECT_TX),
    _transaction(SyncKind.MBARRIER_COMPLETE_TX),
    Row("mbarrier.test_wait", _WAIT, _wait),
    Row("mbarrier.try_wait", _WAIT, _wait),
    Row("elect.sync", frozenset(), lambda form: form.effect(elects=True)),
    _flow("bra", Flow.BRANCH, "uni"),
    _flow("brx.idx", Flow.INDEXED, "uni"),
    _flow("call", Flow.CALL, "uni"),
    _flow("ret", Flow.EXIT, "uni"),
    _flow("exit", Flow.EXIT),
    _flow("trap", Flow.EXIT),
)
