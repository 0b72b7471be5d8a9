"""cp.async, and the walks of the flow analysis."""

# ruff: noqa: E501 - PTX is not wrapped

from __future__ import annotations

from tests.litmus.table import Row, kernel

_CP_ASYNC = "cp.async"
_CP_ASYNC_COPY = "cp.async.ca.shared.global [mine], [gmine], 16;"
CP_ASYNC: list[Row] = [
    kernel("cp_fence", _CP_ASYNC, "cp.async, wait_group, fence, barrier, bulk store.", f"""
        {_CP_ASYNC_COPY}
        cp.async.commit_group;
        cp.async.wait_group 0;
        FENCE
        BAR
        @lead ISSUE"""),
    kernel("cp_none", _CP_ASYNC, "No fence after the wait.", f"""
        {_CP_ASYNC_COPY}
        cp.async.commit_group;
        cp.async.wait_group 0;
        BAR
        @lead ISSUE // expect: PF104 error no-fence"""),
    kernel("cp_early", _CP_ASYNC, "The fence stands before the wait.", f"""
        {_CP_ASYNC_COPY}
        cp.async.commit_group;
        FENCE
        cp.async.wait_group 0;
        BAR
        @lead ISSUE // expect: PF104 error before-completion"""),
    kernel("cp_issuer", _CP_ASYNC, "wait_group, barrier, the issuer fences.", f"""
        {_CP_ASYNC_COPY}
        cp.async.commit_group;
        cp.async.wait_all;
        BAR
        @lead FENCE
        @lead ISSUE"""),
    kernel("cp_wait_one", _CP_ASYNC, "wait_group 1: the fence covers the older group only.", f"""
        {_CP_ASYNC_COPY}
        cp.async.commit_group;
        cp.async.ca.shared.global [mine+4096], [gmine], 16;
        cp.async.commit_group;
        cp.async.wait_group 1;
        FENCE
        BAR
        @lead ISSUE
        cp.async.wait_group 0;
        BAR
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf+4096], 1024; // expect: PF104 error before-completion
        @lead cp.async.bulk.commit_group;"""),
    kernel("cp_mbarrier", _CP_ASYNC, "Completion through an mbarrier, no fence.", f"""
        INITS 1 64
        {_CP_ASYNC_COPY}
        cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m1];
        @!lead bra DONE;
        AWAIT
        ISSUE // expect: PF104 warning no-fence
        DONE:"""),
    kernel("cp_mbarrier_issuer", _CP_ASYNC, "Completion through an mbarrier, the waiting issuer fences.", f"""
        INITS 1 64
        {_CP_ASYNC_COPY}
        cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m1];
        @!lead bra DONE;
        AWAIT
        FENCE
        ISSUE
        DONE:"""),
    kernel("cp_mbarrier_writer", _CP_ASYNC, "A fence in the copying threads cannot stand after the landing.", f"""
        INITS 1 64
        {_CP_ASYNC_COPY}
        FENCE
        cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m1];
        @!lead bra DONE;
        AWAIT
        ISSUE // expect: PF104 warning before-completion
        DONE:"""),
]

_WALKS = "walks"
WALKS: list[Row] = [
    kernel("ring_writer", _WALKS, "An mbarrier ring of two stages, the fence in the writer.", """
        INITS 1 32 1
        mov.u32 i, 0;
        @w0 bra ISSUER;
        PRODUCE:
        setp.ge.u32 p, i, n;
        @p bra DONE;
        and.b32 j, i, 1;
        shl.b32 u, j, 10;
        add.u32 u, u, mine;
        setp.eq.u32 q, i, 0;
        @q bra FREE;
        sub.u32 v, i, 1;
        and.b32 v, v, 1;
        EMPTY: mbarrier.try_wait.parity.shared::cta.b64 done, [m2], v;
        @!done bra EMPTY;
        FREE:
        st.shared.u32 [u], tid;
        FENCE
        ARRIVE
        add.u32 i, i, 1;
        bra PRODUCE;
        ISSUER:
        @!lead bra DONE;
        CONSUME:
        setp.ge.u32 p, i, n;
        @p bra DONE;
        and.b32 j, i, 1;
        shl.b32 u, j, 10;
        add.u32 u, u, buf;
        FULL: mbarrier.try_wait.parity.shared::cta.b64 done, [m1], j;
        @!done bra FULL;
        cp.async.bulk.global.shared::cta.bulk_group [out], [u], 1024;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group.read 0;
        ARRIVE2
        add.u32 i, i, 1;
        bra CONSUME;
        DONE:"""),
    kernel("elect_in_loop", _WALKS, "An issuer's fence under elect inside a loop.", """
        mov.u32 i, 0;
        LOOP:
        ST
        BAR
        @!w0 bra ISSUED;
        elect.sync _|p, 0xffffffff;
        @p FENCE
        @p ISSUE
        ISSUED:
        BAR
        add.u32 i, i, 1;
        setp.lt.u32 q, i, n;
        @q bra LOOP;"""),
    kernel("both_arms_uniform", _WALKS, "A fence in both arms of a uniform condition.", """
        ST
        setp.eq.u32 p, n, 0;
        @p bra OTHER;
        FENCE
        bra JOIN;
        OTHER:
        FENCE_ALL
        JOIN:
        BAR
        @lead ISSUE"""),
    kernel("both_arms_roles", _WALKS, "A fence in both arms of a role condition.", """
        ST
        @w0 bra OTHER;
        FENCE
        bra JOIN;
        OTHER:
        FENCE
        JOIN:
        BAR
        @lead ISSUE"""),
    kernel("correlated", _WALKS, "Store and fence under one predicate.", "@w1 ST\n@w1 FENCE\nBAR\n@lead ISSUE"),
    kernel("narrower_fence", _WALKS, "The fence's predicate is narrower than the store's.", """
        setp.lt.u32 q, tid, 48;
        @q ST
        @w0 FENCE
        BAR
        @lead ISSUE // expect: PF101 error partial-threads"""),
    kernel("consumer_stores", _WALKS, "A consumer stores to its tile, waits for the other one and issues unfenced while the producer fences for itself.", """
        INITS 1 32
        @w0 bra CONSUMER;
        st.shared.u32 [mine], tid;
        FENCE
        ARRIVE
        bra DONE;
        CONSUMER:
        st.shared.u32 [mine], tid;
        bar.warp.sync 0xffffffff;
        AWAIT
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024; // expect: PF101 error no-fence|off-path
        DONE:"""),
    kernel("rotating_warp", _WALKS, "The warp that fences and copies rotates; it fences before it hears of the last one's store.", """
        mov.u32 i, 0;
        LOOP:
        and.b32 j, i, 1;
        setp.eq.u32 q, warp, j;
        setp.eq.and.u32 p, lane, 0, q;
        @q FENCE
        BAR
        @p ISSUE // expect: PF101 error off-path|some-paths|partial-threads
        bar.warp.sync 0xffffffff;
        @q ST
        add.u32 i, i, 1;
        setp.lt.u32 q, i, 3;
        @q bra LOOP;"""),
    kernel("rotating_thread", _WALKS, "The thread that fences is not the one that copies in the next iteration.", """
        mov.u32 i, 0;
        LOOP:
        setp.eq.u32 q, tid, i;
        @q ISSUE // expect: PF101 error off-path|some-paths|partial-threads
        BAR
        ST
        BAR
        @q FENCE
        add.u32 i, i, 1;
        setp.lt.u32 p, i, 3;
        @p bra LOOP;"""),
    kernel("fenced_no_barrier", _WALKS, "A fenced store with no barrier before another thread issues.", """
        @w1 ST
        @w1 FENCE
        @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024; // expect: PF101 error unsynchronised
        @lead cp.async.bulk.commit_group;"""),
    kernel("func_one_path", _WALKS, "A .func that fences on one path only.", """
        ST
        call publish, (n);
        BAR
        @lead ISSUE // expect: PF101 error some-paths""", functions="""
        .func publish(.reg .b32 flag)
        {
        .reg .pred p;
        setp.eq.u32 p, flag, 0;
        @p bra SKIP;
        FENCE
        SKIP:
        ret;
        }"""),
    kernel("func_fences", _WALKS, "A .func that fences on every path.", """
        ST
        call publish;
        BAR
        @lead ISSUE""", functions="""
        .func publish
        {
        FENCE
        ret;
        }"""),
    kernel("warp_slots", _WALKS, "Per-warp staging slots: each warp stores, fences, syncs itself and issues its own.", """
        ST
        FENCE
        bar.warp.sync 0xffffffff;
        shl.b32 u, warp, 9;
        add.u32 u, u, buf;
        setp.eq.u32 p, lane, 0;
        @p cp.async.bulk.global.shared::cta.bulk_group [out], [u], 512;
        @p cp.async.bulk.commit_group;
        @p cp.async.bulk.wait_group 0;"""),
    kernel("warp_slots_none", _WALKS, "The same without the fence.", """
        ST
        bar.warp.sync 0xffffffff;
        shl.b32 u, warp, 9;
        add.u32 u, u, buf;
        setp.eq.u32 p, lane, 0;
        @p cp.async.bulk.global.shared::cta.bulk_group [out], [u], 512; // expect: PF101 error no-fence
        @p cp.async.bulk.commit_group;"""),
]

ROWS = [*CP_ASYNC, *WALKS]
