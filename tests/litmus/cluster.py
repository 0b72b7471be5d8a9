"""Clusters of two CTAs, and the initialisation of mbarriers."""

# ruff: noqa: E501 - PTX is not wrapped

from __future__ import annotations

from tests.litmus.table import Row, kernel

_PEER = """
    mov.u32 rank, %cluster_ctarank;
    xor.b32 r0, rank, 1;
    mapa.shared::cluster.u32 peer, mine, r0;
    setp.eq.and.u32 q, rank, 0, lead;
    setp.eq.and.u32 p, rank, 1, lead;
"""


def _row(name: str, about: str, body: str, **more: str) -> Row:
    return kernel(name, "cluster", about, f"{_PEER}\n{body}", cluster=2, threads=32, **more)


_STORES_REMOTE = "st.shared::cluster.u32 [peer], tid;"
_STORES_ISSUE = "@lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 512;"
_STORES_END = "@lead cp.async.bulk.commit_group;\n@lead cp.async.bulk.wait_group 0;"
_STORES_TAIL = f"{_STORES_ISSUE}\n{_STORES_END}\nCLUSTER"
STORES: list[Row] = [
    _row("own_store", "Own store, own copy, cluster barrier: any shared::cta fence.", f"ST\nFENCE\nCLUSTER\n{_STORES_TAIL}"),
    _row("remote_none", "Store to the peer, cluster barrier, the peer copies.",
         f"{_STORES_REMOTE}\nCLUSTER\n{_STORES_ISSUE} // expect: PF101 error no-fence\n{_STORES_END}\nCLUSTER"),
    _row("remote_owner", "The owner's issuer fences after the barrier.", f"{_STORES_REMOTE}\nCLUSTER\n@lead FENCE\n{_STORES_TAIL}"),
    _row("remote_writer_wide", "The writer fences with shared::cluster.", f"{_STORES_REMOTE}\nFENCE_CLUSTER\nCLUSTER\n{_STORES_TAIL}"),
    _row("remote_writer_all", "The writer fences with the unqualified form.", f"{_STORES_REMOTE}\nFENCE_ALL\nCLUSTER\n{_STORES_TAIL}"),
    _row("remote_writer_narrow", "The writer's shared::cta fence covers no peer bytes.",
         f"{_STORES_REMOTE}\nFENCE\nCLUSTER\n{_STORES_ISSUE} // expect: PF111 error wrong-space\n{_STORES_END}\nCLUSTER"),
    _row("remote_relaxed", "A relaxed cluster arrival orders nothing.", f"""
        {_STORES_REMOTE}
        FENCE_CLUSTER
        barrier.cluster.arrive.relaxed.aligned;
        barrier.cluster.wait.aligned;
        {_STORES_ISSUE} // expect: PF101 error unsynchronised
        {_STORES_END}
        CLUSTER"""),
    _row("remote_relaxed_fenced", "A relaxed arrival behind a thread fence synchronises, but fences no proxy.", f"""
        {_STORES_REMOTE}
        fence.acq_rel.cluster;
        barrier.cluster.arrive.relaxed.aligned;
        barrier.cluster.wait.aligned;
        {_STORES_ISSUE} // expect: PF101 error not-a-proxy-fence
        {_STORES_END}
        CLUSTER"""),
    _row("remote_arrive", "Remote mbarrier arrival with cluster scope; the owner fences.", f"""
        @lead mbarrier.init.shared::cta.b64 [m1], 32;
        fence.mbarrier_init.release.cluster;
        CLUSTER
        {_STORES_REMOTE}
        mapa.shared::cluster.u32 u, m1, r0;
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [u];
        @!lead bra DONE;
        WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [m1], 0;
        @!done bra WAIT;
        FENCE
        cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 512;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        DONE:
        CLUSTER"""),
    _row("remote_arrive_none", "The same without a fence.", f"""
        @lead mbarrier.init.shared::cta.b64 [m1], 32;
        fence.mbarrier_init.release.cluster;
        CLUSTER
        {_STORES_REMOTE}
        mapa.shared::cluster.u32 u, m1, r0;
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [u];
        @!lead bra DONE;
        WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [m1], 0;
        @!done bra WAIT;
        cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 512; // expect: PF101 error no-fence
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        DONE:
        CLUSTER"""),
    _row("remote_arrive_cta", "The remote arrival has CTA scope: it does not order the peer.", f"""
        @lead mbarrier.init.shared::cta.b64 [m1], 32;
        fence.mbarrier_init.release.cluster;
        CLUSTER
        {_STORES_REMOTE}
        FENCE_CLUSTER
        mapa.shared::cluster.u32 u, m1, r0;
        mbarrier.arrive.release.cta.shared::cluster.b64 _, [u];
        @!lead bra DONE;
        WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [m1], 0;
        @!done bra WAIT;
        cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 512; // expect: PF101 error unsynchronised
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        DONE:
        CLUSTER"""),
]

_ASYNC_ST_ASYNC = """
    @lead mbarrier.init.shared::cta.b64 [m1], 1;
    fence.mbarrier_init.release.cluster;
    CLUSTER
    @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m1], 128;
    mapa.shared::cluster.u32 u, m1, r0;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [peer], tid, [u];
    @!lead bra DONE;
    WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [m1], 0;
    @!done bra WAIT;
    {fence}
    cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 512;{expect}
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    DONE:
    CLUSTER"""
_ASYNC_MULTICAST = """
    .reg .b16 both;
    @lead mbarrier.init.shared::cta.b64 [m0], 1;
    fence.mbarrier_init.release.cluster;
    CLUSTER
    LD
    {reader}
    CLUSTER
    @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 512;
    {issuer}
    mov.u16 both, 3;
    @q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [buf], [in], 512, [m0], both;{expect}
    AWAIT0
    PIN
    CLUSTER"""
ASYNC: list[Row] = [
    _row("st_async_none", "st.async, mbarrier wait, bulk store: generic data, no fence.",
         _ASYNC_ST_ASYNC.format(fence="", expect=" // expect: PF104 error no-fence")),
    _row("st_async_consumer", "The consumer fences after its wait.", _ASYNC_ST_ASYNC.format(fence="FENCE", expect="")),
    _row("multicast_none", "Both CTAs read, cluster barrier, a multicast load overwrites both.",
         _ASYNC_MULTICAST.format(reader="", issuer="", expect=" // expect: PF103 error no-fence")),
    _row("multicast_reader", "The readers fence their own bytes.", _ASYNC_MULTICAST.format(reader="FENCE", issuer="", expect="")),
    _row("multicast_reader_wide", "The readers fence with shared::cluster.",
         _ASYNC_MULTICAST.format(reader="FENCE_CLUSTER", issuer="", expect="")),
    _row("multicast_issuer", "The issuer's shared::cta fence covers no peer bytes.",
         _ASYNC_MULTICAST.format(reader="", issuer="@q FENCE", expect=" // expect: PF111 error wrong-space")),
    _row("multicast_issuer_wide", "The issuer fences with shared::cluster.",
         _ASYNC_MULTICAST.format(reader="", issuer="@q FENCE_CLUSTER", expect="")),
    _row("plain_load_two_ctas", "Each CTA reloads its own bytes: a shared::cta fence does.", """
        @lead mbarrier.init.shared::cta.b64 [m0], 1;
        CLUSTER
        LD
        CLUSTER
        @lead FENCE
        @lead RELOAD
        AWAIT0
        PIN
        CLUSTER"""),
    _row("dsmem_copy", "Own store, then a bulk copy to the peer.", """
        @lead mbarrier.init.shared::cta.b64 [m0], 1;
        fence.mbarrier_init.release.cluster;
        CLUSTER
        ST
        BAR
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 512;
        add.u32 v, buf, 4096;
        mapa.shared::cluster.u32 v, v, r0;
        mapa.shared::cluster.u32 u, m0, r0;
        @lead cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [v], [buf], 512, [u]; // expect: PF101 error no-fence
        AWAIT0
        CLUSTER"""),
    _row("dsmem_copy_fence", "The same, fenced by the writers.", """
        @lead mbarrier.init.shared::cta.b64 [m0], 1;
        fence.mbarrier_init.release.cluster;
        CLUSTER
        ST
        FENCE
        BAR
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 512;
        add.u32 v, buf, 4096;
        mapa.shared::cluster.u32 v, v, r0;
        mapa.shared::cluster.u32 u, m0, r0;
        @lead cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [v], [buf], 512, [u];
        AWAIT0
        CLUSTER"""),
]

_INITS = "mbarrier init"
INITS: list[Row] = [
    kernel("init_barrier", _INITS, "init, bar.sync, use.", "INITS 1\n@lead RELOAD\nAWAIT0\nLD\nPIN"),
    kernel("init_alone", _INITS, "The initialising thread uses it itself: program order.", """
        @!lead bra DONE;
        mbarrier.init.shared::cta.b64 [m0], 1;
        RELOAD
        AWAIT0
        DONE:"""),
    kernel("init_unpublished", _INITS, "Others wait on it with no barrier between.", """
        @lead mbarrier.init.shared::cta.b64 [m0], 1;
        @lead RELOAD
        AWAIT0
        LD
        PIN""".replace("AWAIT0", """
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [m0], 0; // expect: PF121 error
        @!done bra WAIT;""")),
    kernel("init_fence_only", _INITS, "fence.mbarrier_init without a barrier publishes nothing.", """
        @lead mbarrier.init.shared::cta.b64 [m0], 1;
        fence.mbarrier_init.release.cluster;
        @lead RELOAD
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [m0], 0; // expect: PF121 error
        @!done bra WAIT;"""),
    _row("init_cluster", "fence.mbarrier_init and a relaxed cluster barrier publish to the peer.", """
        @lead mbarrier.init.shared::cta.b64 [m1], 1;
        fence.mbarrier_init.release.cluster;
        barrier.cluster.arrive.relaxed.aligned;
        barrier.cluster.wait.aligned;
        mapa.shared::cluster.u32 u, m1, r0;
        @lead mbarrier.arrive.release.cluster.shared::cluster.b64 _, [u];
        WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [m1], 0;
        @!done bra WAIT;
        CLUSTER"""),
    _row("init_cluster_default", "A default cluster barrier publishes by itself.", """
        @lead mbarrier.init.shared::cta.b64 [m1], 1;
        CLUSTER
        mapa.shared::cluster.u32 u, m1, r0;
        @lead mbarrier.arrive.release.cluster.shared::cluster.b64 _, [u];
        WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [m1], 0;
        @!done bra WAIT;
        CLUSTER"""),
    _row("init_cluster_relaxed", "A relaxed cluster barrier without the fence publishes nothing.", """
        @lead mbarrier.init.shared::cta.b64 [m1], 1;
        barrier.cluster.arrive.relaxed.aligned;
        barrier.cluster.wait.aligned;
        mapa.shared::cluster.u32 u, m1, r0;
        @lead mbarrier.arrive.release.cluster.shared::cluster.b64 _, [u]; // expect: PF121 error
        CLUSTER"""),
    kernel("init_storage_reused", _INITS, "init, inval, bulk load over the storage.", """
        INITS 1 1
        @lead mbarrier.inval.shared::cta.b64 [m1];
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 16;
        @lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [spare], [in], 16, [m0];
        AWAIT0""".replace("INITS 1 1", """
        .reg .b32 spare;
        .shared .align 16 .b8 store[16];
        mov.u32 spare, store;
        mov.u32 m1, store;
        INITS 1 1""").replace("[in], 16, [m0];", "[in], 16, [m0]; // expect: PF102 error no-fence")),
    kernel("init_storage_apart", _INITS, "The load touches other bytes than the dead mbarrier.", """
        INITS 1 1
        @lead mbarrier.inval.shared::cta.b64 [m1];
        @lead RELOAD
        AWAIT0"""),
]

ROWS = [*STORES, *ASYNC, *INITS]
