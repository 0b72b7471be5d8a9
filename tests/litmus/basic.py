"""One CTA, one barrier: message passing (RAW), WAR, WAW, completion."""

# ruff: noqa: E501 - PTX is not wrapped

from __future__ import annotations

from tests.litmus.table import Row, kernel

_WRONG = {
    "acq_rel_cta": ("fence.acq_rel.cta;", "not-a-proxy-fence"),
    "acq_rel_gpu": ("fence.acq_rel.gpu;", "not-a-proxy-fence"),
    "sc_cta": ("fence.sc.cta;", "not-a-proxy-fence"),
    "membar_cta": ("membar.cta;", "not-a-proxy-fence"),
    "membar_gl": ("membar.gl;", "not-a-proxy-fence"),
    "proxy_alias": ("fence.proxy.alias;", "not-a-proxy-fence"),
    "proxy_tensormap": ("fence.proxy.tensormap::generic.release.cta;", "not-a-proxy-fence"),
    "mbarrier_init": ("fence.mbarrier_init.release.cluster;", "no-fence"),
    "wgmma_fence": ("wgmma.fence.sync.aligned;", "no-fence"),
    "acquire_half": ("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;", "wrong-direction"),
}

_RAW = "message passing"
RAW: list[Row] = [
    kernel("mp_none", _RAW, "Store, barrier, bulk store.", "ST\nBAR\n@lead ISSUE // expect: PF101 error no-fence"),
    kernel("mp_writer", _RAW, "Every writer fences.", "ST\nFENCE\nBAR\n@lead ISSUE"),
    kernel("mp_issuer", _RAW, "The issuer fences after the barrier.", "ST\nBAR\n@lead FENCE\n@lead ISSUE"),
    kernel("mp_issuer_all", _RAW, "Everybody fences after the barrier.", "ST\nBAR\nFENCE\n@lead ISSUE"),
    kernel("mp_wide", _RAW, "The unqualified form covers.", "ST\nFENCE_ALL\nBAR\n@lead ISSUE"),
    kernel("mp_cluster_form", _RAW, "shared::cluster contains shared::cta.", "ST\nFENCE_CLUSTER\nBAR\n@lead ISSUE"),
    kernel("mp_release_half", _RAW, "The release half does the work.", """
        ST
        fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
        BAR
        @lead ISSUE"""),
    kernel("mp_same_thread", _RAW, "One thread: program order is no fence.", """
        @lead ST
        @lead ISSUE // expect: PF101 error no-fence"""),
    kernel("mp_same_thread_fence", _RAW, "One thread, fenced.", "@lead ST\n@lead FENCE\n@lead ISSUE"),
    kernel("mp_second_store", _RAW, "A store after the fence needs its own.", """
        ST
        FENCE
        st.shared.u32 [mine+4], tid;
        BAR
        @lead ISSUE // expect: PF101 error fence-before-access"""),
    kernel("mp_race", _RAW, "No barrier at all; fenced, but nothing orders.", """
        ST
        FENCE
        @lead ISSUE // expect: PF101 error unsynchronised"""),
    kernel("mp_disjoint", _RAW, "The bytes stored are not those copied.", """
        st.shared.u32 [mine+8192], tid;
        BAR
        @lead ISSUE"""),
    kernel("mp_atomic", _RAW, "A reduction is a generic write too.", """
        red.shared.add.u32 [mine], tid;
        BAR
        @lead ISSUE // expect: PF101 error no-fence"""),
    kernel("mp_two_ops", _RAW, "Two copies of one tile after one barrier: one finding.", """
        ST
        BAR
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024; // expect: PF101 error no-fence
        @lead cp.async.bulk.global.shared::cta.bulk_group [in], [buf], 1024;
        @lead cp.async.bulk.commit_group;"""),
    kernel("mp_read_only", _RAW, "Generic reads and async reads do not conflict.", "LD\nBAR\n@lead ISSUE"),
    kernel("mp_read_half_write", _RAW, "The ::read half covers no write.", """
        ST
        fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cta;
        BAR
        @lead ISSUE // expect: PF101 error wrong-direction""", version="9.4"),
]
NO_COVER: list[Row] = [
    kernel(f"mp_{name}", "not a cover", f"`{fence}` is no generic/async fence.",
           f"ST\n{fence}\nBAR\n@lead ISSUE // expect: PF101 error {cause}")
    for name, (fence, cause) in _WRONG.items()
]

_PLACEMENT = "not a cover"
PLACEMENT: list[Row] = [
    kernel("early_fence", _PLACEMENT, "The fence precedes the store.", """
        FENCE
        ST
        BAR
        @lead ISSUE // expect: PF101 error fence-before-access"""),
    kernel("lead_fences", _PLACEMENT, "Only one writer fences before the barrier.", """
        ST
        @lead FENCE
        BAR
        @lead ISSUE // expect: PF101 error partial-threads"""),
    kernel("warp_fences", _PLACEMENT, "Only one warp fences before the barrier.", """
        ST
        @w0 FENCE
        BAR
        @lead ISSUE // expect: PF101 error partial-threads"""),
    kernel("elected_fences", _PLACEMENT, "One elected lane a warp fences before the barrier.", """
        ST
        elect.sync _|p, 0xffffffff;
        @p FENCE
        BAR
        @lead ISSUE // expect: PF101 error partial-threads"""),
    kernel("late_fence", _PLACEMENT, "The fence follows the operation.", """
        ST
        BAR
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024; // expect: PF101 error fence-after-use
        FENCE
        @lead cp.async.bulk.commit_group;"""),
    kernel("bystander_fences", _PLACEMENT, "After the barrier a thread off the path fences.", """
        ST
        BAR
        @w1 FENCE
        @lead ISSUE // expect: PF101 error off-path"""),
    kernel("issuer_fences_early", _PLACEMENT, "The issuer, no writer, fences before the barrier.", """
        @w1 ST
        @w0 FENCE
        BAR
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024; // expect: PF101 error off-path|partial-threads
        @lead cp.async.bulk.commit_group;"""),
    kernel("one_arm", _PLACEMENT, "The fence stands on one arm of a uniform branch.", """
        ST
        setp.eq.u32 p, n, 0;
        @p bra SKIP;
        FENCE
        SKIP:
        BAR
        @lead ISSUE // expect: PF101 error some-paths"""),
    kernel("zero_trip", _PLACEMENT, "The fence stands in a loop that may not run.", """
        ST
        mov.u32 i, 0;
        LOOP:
        setp.ge.u32 p, i, n;
        @p bra DONE;
        FENCE
        add.u32 i, i, 1;
        bra LOOP;
        DONE:
        BAR
        @lead ISSUE // expect: PF101 error some-paths"""),
    kernel("hoisted", _PLACEMENT, "The fence runs before the loop that stores.", """
        FENCE
        mov.u32 i, 0;
        LOOP:
        ST
        BAR
        @lead ISSUE // expect: PF101 error hoisted-out
        BAR
        add.u32 i, i, 1;
        setp.lt.u32 p, i, n;
        @p bra LOOP;"""),
    kernel("in_loop", _PLACEMENT, "The same, fenced in the loop: clean.", """
        mov.u32 i, 0;
        LOOP:
        ST
        FENCE
        BAR
        @lead ISSUE
        BAR
        add.u32 i, i, 1;
        setp.lt.u32 p, i, n;
        @p bra LOOP;"""),
    kernel("global_form", _PLACEMENT, "`.global` covers no shared memory.", """
        ST
        FENCE_GLOBAL
        BAR
        @lead ISSUE // expect: PF111 error wrong-space"""),
]

_WAR_WAW = "write after read"
WAR_WAW: list[Row] = [
    kernel("war_none", _WAR_WAW, "Load, barrier, bulk load over it; the value is used later.", """
        INITS 1
        LD
        BAR
        @lead RELOAD // expect: PF103 error no-fence
        add.u32 v, v, 1;
        st.global.u32 [gmine], v;"""),
    kernel("war_reader", _WAR_WAW, "Every reader fences.", "INITS 1\nLD\nFENCE\nBAR\n@lead RELOAD\nPIN"),
    kernel("war_issuer", _WAR_WAW, "The issuer fences after the barrier.", "INITS 1\nLD\nBAR\n@lead FENCE\n@lead RELOAD\nPIN"),
    kernel("war_pinned", _WAR_WAW, "The value is stored before the barrier.", """
        INITS 1
        LD
        PIN
        BAR
        @lead RELOAD // expect: PF103 warning no-fence"""),
    kernel("war_thread_fence", _WAR_WAW, "A thread fence orders no proxies.", """
        INITS 1
        LD
        fence.acq_rel.cta;
        BAR
        @lead RELOAD // expect: PF103 error not-a-proxy-fence
        PIN"""),
    kernel("war_read_half", _WAR_WAW, "The ::read half covers the thread's own reads.", """
        INITS 1
        LD
        fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cta;
        BAR
        @lead RELOAD
        PIN""", version="9.4"),
    kernel("war_read_half_other", _WAR_WAW, "The ::read half is not cumulative: another thread's reads stay uncovered.", """
        INITS 1
        LD
        BAR
        @lead fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cta;
        @lead RELOAD // expect: PF103 error wrong-direction|off-path|some-paths
        PIN""", version="9.4"),
    kernel("war_lead_fences", _WAR_WAW, "One reader fences before the barrier.", """
        INITS 1
        LD
        @lead FENCE
        BAR
        @lead RELOAD // expect: PF103 error partial-threads
        PIN"""),
    kernel("waw_none", "write after write", "Store, barrier, bulk load over it.", """
        INITS 1
        ST
        BAR
        @lead RELOAD // expect: PF102 error no-fence"""),
    kernel("waw_writer", "write after write", "Every writer fences.", "INITS 1\nST\nFENCE\nBAR\n@lead RELOAD"),
    kernel("waw_issuer", "write after write", "The issuer fences.", "INITS 1\nST\nBAR\n@lead FENCE\n@lead RELOAD"),
    kernel("waw_early", "write after write", "The fence precedes the store.", """
        INITS 1
        FENCE
        ST
        BAR
        @lead RELOAD // expect: PF102 error fence-before-access"""),
    kernel("fence_then_reread", _WAR_WAW, "A fence, then the tile is read again.", """
        INITS 1
        FENCE
        LD
        BAR
        @lead RELOAD // expect: PF103 error fence-before-access
        PIN"""),
]

_COMPLETION = "completion"
COMPLETION: list[Row] = [
    kernel("load_read", _COMPLETION, "Bulk load, mbarrier wait, read: the completion carries the fence.", """
        INITS 1
        @lead RELOAD
        AWAIT0
        LD
        PIN"""),
    kernel("load_wait_barrier_read", _COMPLETION, "One thread waits, a barrier tells the others.", """
        INITS 1
        @!lead bra WAITED;
        RELOAD
        AWAIT0
        WAITED:
        BAR
        LD
        PIN"""),
    kernel("load_unwaited", _COMPLETION, "Nobody waits for the load.", """
        INITS 1
        @lead RELOAD
        BAR
        ld.shared.u32 v, [mine]; // expect: PF120 error
        PIN"""),
    kernel("store_drained", _COMPLETION, "Bulk store, wait_group.read, barrier, overwritten generically.", """
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024;
        @lead cp.async.bulk.commit_group;
        @lead cp.async.bulk.wait_group.read 0;
        BAR
        ST"""),
    kernel("store_undrained", _COMPLETION, "Bulk store, barrier, overwritten generically.", """
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024;
        @lead cp.async.bulk.commit_group;
        BAR
        st.shared.u32 [mine], tid; // expect: PF120 error"""),
    kernel("store_wait_one", _COMPLETION, "wait_group 1 leaves the newer of two stores in flight.", """
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 512;
        @lead cp.async.bulk.commit_group;
        @lead cp.async.bulk.global.shared::cta.bulk_group [out+512], [buf+512], 512;
        @lead cp.async.bulk.commit_group;
        @lead cp.async.bulk.wait_group.read 1;
        BAR
        @w0 st.shared.u32 [mine], tid;
        @w1 st.shared.u32 [mine], tid; // expect: PF120 error"""),
    kernel("load_store", _COMPLETION, "Bulk load, wait, bulk store of the tile: async after async.", """
        INITS 1
        @!lead bra DONE;
        RELOAD
        AWAIT0
        ISSUE
        DONE:"""),
    kernel("load_store_unwaited", _COMPLETION, "The store does not wait for the load.", """
        INITS 1
        @lead RELOAD
        @lead ISSUE // expect: PF120 error"""),
    kernel("store_load", _COMPLETION, "Bulk store, full wait, bulk load into the tile.", """
        INITS 1
        @lead ISSUE
        @lead RELOAD"""),
    kernel("overwritten", _COMPLETION, "A completed load replaces the bytes; the old store needs no fence any more.", """
        INITS 1
        ST
        FENCE
        BAR
        @!lead bra DONE;
        RELOAD
        AWAIT0
        ISSUE
        DONE:"""),
]

ROWS = [*RAW, *NO_COVER, *PLACEMENT, *WAR_WAW, *COMPLETION]
