"""Hand-offs between roles: mbarriers, named barriers, third parties, cp.async, and the walks of the flow analysis."""

# ruff: noqa: E501 - PTX is not wrapped

from __future__ import annotations

from tests.litmus.table import Row, kernel


def _mbarrier() -> list[Row]:
    g = "mbarrier hand-off"
    return [
        kernel("mb_writer", g, "Warp 1 stores, fences, arrives; thread 0 waits and issues.", """
            INITS 1 32
            @w0 bra CONSUMER;
            ST
            FENCE
            ARRIVE
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            AWAIT
            ISSUE
            DONE:"""),
        kernel("mb_none", g, "The same without a fence.", """
            INITS 1 32
            @w0 bra CONSUMER;
            ST
            ARRIVE
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            AWAIT
            ISSUE // expect: PF101 error no-fence
            DONE:"""),
        kernel("mb_issuer", g, "The issuer fences after its wait.", """
            INITS 1 32
            @w0 bra CONSUMER;
            ST
            ARRIVE
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            AWAIT
            FENCE
            ISSUE
            DONE:"""),
        kernel("mb_issuer_early", g, "The issuer fences before its wait.", """
            INITS 1 32
            @w0 bra CONSUMER;
            ST
            ARRIVE
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            FENCE
            AWAIT
            ISSUE // expect: PF101 error off-path
            DONE:"""),
        kernel("mb_after_arrive", g, "The writers fence after their arrival.", """
            INITS 1 32
            @w0 bra CONSUMER;
            ST
            ARRIVE
            FENCE
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            AWAIT
            ISSUE // expect: PF101 error off-path|no-fence
            DONE:"""),
        kernel("mb_warp_sync", g, "Every lane fences, the warp syncs, one lane arrives.", """
            INITS 1 1
            @w0 bra CONSUMER;
            ST
            FENCE
            bar.warp.sync 0xffffffff;
            elect.sync _|p, 0xffffffff;
            @p ARRIVE
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            AWAIT
            ISSUE
            DONE:"""),
        kernel("mb_warp_sync_third", g, "The warp syncs, then the arriving lane alone fences: it knows all stores.", """
            INITS 1 1
            @w0 bra CONSUMER;
            ST
            bar.warp.sync 0xffffffff;
            elect.sync _|p, 0xffffffff;
            @p FENCE
            @p ARRIVE
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            AWAIT
            ISSUE
            DONE:"""),
        kernel("mb_no_warp_sync", g, "One lane fences and arrives; nothing orders the other lanes' stores.", """
            INITS 1 1
            @w0 bra CONSUMER;
            ST
            elect.sync _|p, 0xffffffff;
            @p FENCE
            @p ARRIVE
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            AWAIT
            ISSUE // expect: PF101 error partial-threads
            DONE:"""),
        kernel("mb_relaxed", g, "A relaxed arrival releases nothing.", """
            INITS 1 32
            @w0 bra CONSUMER;
            ST
            FENCE
            mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [m1];
            bra DONE;
            CONSUMER:
            @!lead bra DONE;
            AWAIT
            ISSUE // expect: PF101 error unsynchronised
            DONE:"""),
        kernel("mb_war", g, "Consumers read the tile and arrive; the producer loads the next one over it.", """
            INITS 1 32
            @w0 bra PRODUCER;
            LD
            ARRIVE
            PIN
            bra DONE;
            PRODUCER:
            @!lead bra DONE;
            AWAIT
            RELOAD // expect: PF103 error no-fence
            DONE:"""),
        kernel("mb_war_fence", g, "The consumers fence before they arrive.", """
            INITS 1 32
            @w0 bra PRODUCER;
            LD
            FENCE
            ARRIVE
            PIN
            bra DONE;
            PRODUCER:
            @!lead bra DONE;
            AWAIT
            RELOAD
            DONE:"""),
        kernel("mb_tx_is_no_release", g, "Waiting for a load does not publish what its issuer stored.", """
            INITS 1 1
            @w1 bra CONSUMER;
            @!lead bra DONE;
            st.shared.u32 [buf+2048], tid;
            FENCE
            RELOAD
            bra DONE;
            CONSUMER:
            AWAIT0
            setp.eq.u32 p, lane, 0;
            @p cp.async.bulk.global.shared::cta.bulk_group [out], [buf+2048], 16;
            @p cp.async.bulk.commit_group;
            DONE:"""),
        kernel("mb_store_undrained", g, "The issuer hands the tile back while its bulk store still reads it.", """
            INITS 1 32 1
            @w0 bra ISSUER;
            ST
            FENCE
            ARRIVE
            AWAIT2
            st.shared.u32 [mine], tid; // expect: PF120 error
            bra DONE;
            ISSUER:
            @!lead bra DONE;
            AWAIT
            cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024;
            cp.async.bulk.commit_group;
            ARRIVE2
            DONE:"""),
        kernel("mb_store_drained", g, "The issuer waits until the tile has been read, then hands it back.", """
            INITS 1 32 1
            @w0 bra ISSUER;
            ST
            FENCE
            ARRIVE
            AWAIT2
            st.shared.u32 [mine], tid;
            bra DONE;
            ISSUER:
            @!lead bra DONE;
            AWAIT
            cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024;
            cp.async.bulk.commit_group;
            cp.async.bulk.wait_group.read 0;
            ARRIVE2
            DONE:"""),
        kernel("named_barrier", g, "bar.arrive by the writers, bar.sync by the consumer warp.", """
            @w0 bra CONSUMER;
            ST
            FENCE
            bar.arrive 1, 64;
            bra DONE;
            CONSUMER:
            bar.sync 1, 64;
            @lead ISSUE
            DONE:"""),
        kernel("named_barrier_none", g, "The same without a fence.", """
            @w0 bra CONSUMER;
            ST
            bar.arrive 1, 64;
            bra DONE;
            CONSUMER:
            bar.sync 1, 64;
            @lead ISSUE // expect: PF101 error no-fence
            DONE:"""),
        kernel("other_barrier", g, "The consumer syncs on another barrier than the writers.", """
            @w0 bra CONSUMER;
            ST
            FENCE
            bar.sync 1, 32;
            bra DONE;
            CONSUMER:
            bar.sync 2, 32;
            @lead ISSUE // expect: PF101 error unsynchronised
            DONE:"""),
    ]


def _third_party() -> list[Row]:
    g = "third party"
    chain = """
        INITS 1 32 1
        @w0 bra ISSUER;
        @w2 bra MIDDLE;
        ST
        {a}
        ARRIVE
        bra DONE;
        MIDDLE:
        setp.eq.u32 p, lane, 0;
        @!p bra DONE;
        {early}
        AWAIT
        {b}
        ARRIVE2
        {late}
        bra DONE;
        ISSUER:
        @!lead bra DONE;
        AWAIT2
        {c}
        ISSUE{expect}
        DONE:"""

    def row(name: str, about: str, expect: str = "", **fences: str) -> Row:
        parts = {"a": "", "b": "", "c": "", "early": "", "late": "", **fences}
        body = chain.format(expect=f" // expect: {expect}" if expect else "", **parts)
        body = "\n".join(line for line in body.splitlines() if line.strip())
        return kernel(f"chain_{name}", g, about, body, threads=96)

    return [
        row("none", "Warp 1 stores, warp 2 relays, thread 0 issues; no fence.", "PF101 error no-fence"),
        row("writer", "The writers fence.", a="FENCE"),
        row("middle", "The relay fences between its wait and its arrival.", b="FENCE"),
        row("issuer", "The issuer fences.", c="FENCE"),
        row("middle_early", "The relay fences before its wait.", "PF101 error off-path", early="FENCE"),
        row("middle_late", "The relay fences after its arrival.", "PF101 error off-path|no-fence", late="FENCE"),
        row("middle_global", "The relay's fence names another space.", "PF111 error wrong-space", b="FENCE_GLOBAL"),
        row("middle_thread_fence", "The relay runs a thread fence.", "PF101 error not-a-proxy-fence", b="fence.acq_rel.cta;"),
        kernel("bar_third_bar", g, "Barrier, another warp fences, barrier, issue.", """
            ST
            BAR
            @w1 FENCE
            BAR
            @lead ISSUE"""),
        kernel("bar_third", g, "Barrier, another warp fences, issue.", """
            ST
            BAR
            @w1 FENCE
            @lead ISSUE // expect: PF101 error off-path"""),
        kernel("third_before", g, "A warp that stored nothing fences before the only barrier.", """
            @w0 ST
            @w1 FENCE
            BAR
            setp.eq.u32 p, tid, 64;
            @p ISSUE // expect: PF101 error partial-threads|off-path""", threads=96),
        kernel("transitive_two", g, "Two roles: stores by warp 1, named barrier to warp 2, mbarrier to thread 0.", """
            INITS 1 32
            @w0 bra ISSUER;
            @w2 bra MIDDLE;
            ST
            bar.arrive 1, 64;
            bra DONE;
            MIDDLE:
            bar.sync 1, 64;
            FENCE
            ARRIVE
            bra DONE;
            ISSUER:
            @!lead bra DONE;
            AWAIT
            ISSUE
            DONE:""", threads=96),
        kernel("transitive_own", g, "The relay stores and fences its own bytes before it hears of the others'.", """
            INITS 1 32
            @w0 bra ISSUER;
            @w2 bra MIDDLE;
            ST
            bar.arrive 1, 64;
            bra DONE;
            MIDDLE:
            ST
            FENCE
            bar.sync 1, 64;
            ARRIVE
            bra DONE;
            ISSUER:
            @!lead bra DONE;
            AWAIT
            cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 2048; // expect: PF101 error off-path|no-fence
            DONE:""", threads=96),
        kernel("transitive_three", g, "Three relays; the fence stands in the last but one.", """
            INITS 1 32 1 1
            setp.eq.u32 p, lane, 0;
            @w1 bra ONE;
            @w2 bra TWO;
            @w0 bra ISSUER;
            ST
            ARRIVE
            bra DONE;
            ONE:
            @!p bra DONE;
            AWAIT
            ARRIVE2
            bra DONE;
            TWO:
            @!p bra DONE;
            AWAIT2
            FENCE
            ARRIVE3
            bra DONE;
            ISSUER:
            @!lead bra DONE;
            AWAIT3
            cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 2048;
            DONE:""", threads=128),
    ]


def _cp_async() -> list[Row]:
    g = "cp.async"
    copy = "cp.async.ca.shared.global [mine], [gmine], 16;"
    return [
        kernel("cp_fence", g, "cp.async, wait_group, fence, barrier, bulk store.", f"""
            {copy}
            cp.async.commit_group;
            cp.async.wait_group 0;
            FENCE
            BAR
            @lead ISSUE"""),
        kernel("cp_none", g, "No fence after the wait.", f"""
            {copy}
            cp.async.commit_group;
            cp.async.wait_group 0;
            BAR
            @lead ISSUE // expect: PF104 error no-fence"""),
        kernel("cp_early", g, "The fence stands before the wait.", f"""
            {copy}
            cp.async.commit_group;
            FENCE
            cp.async.wait_group 0;
            BAR
            @lead ISSUE // expect: PF104 error before-completion"""),
        kernel("cp_issuer", g, "wait_group, barrier, the issuer fences.", f"""
            {copy}
            cp.async.commit_group;
            cp.async.wait_all;
            BAR
            @lead FENCE
            @lead ISSUE"""),
        kernel("cp_wait_one", g, "wait_group 1: the fence covers the older group only.", f"""
            {copy}
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
        kernel("cp_mbarrier", g, "Completion through an mbarrier, no fence.", f"""
            INITS 1 64
            {copy}
            cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m1];
            @!lead bra DONE;
            AWAIT
            ISSUE // expect: PF104 warning no-fence
            DONE:"""),
        kernel("cp_mbarrier_issuer", g, "Completion through an mbarrier, the waiting issuer fences.", f"""
            INITS 1 64
            {copy}
            cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m1];
            @!lead bra DONE;
            AWAIT
            FENCE
            ISSUE
            DONE:"""),
        kernel("cp_mbarrier_writer", g, "A fence in the copying threads cannot stand after the landing.", f"""
            INITS 1 64
            {copy}
            FENCE
            cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m1];
            @!lead bra DONE;
            AWAIT
            ISSUE // expect: PF104 warning before-completion
            DONE:"""),
    ]


def _walks() -> list[Row]:
    g = "walks"
    return [
        kernel("ring_writer", g, "An mbarrier ring of two stages, the fence in the writer.", """
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
        kernel("elect_in_loop", g, "An issuer's fence under elect inside a loop.", """
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
        kernel("both_arms_uniform", g, "A fence in both arms of a uniform condition.", """
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
        kernel("both_arms_roles", g, "A fence in both arms of a role condition.", """
            ST
            @w0 bra OTHER;
            FENCE
            bra JOIN;
            OTHER:
            FENCE
            JOIN:
            BAR
            @lead ISSUE"""),
        kernel("correlated", g, "Store and fence under one predicate.", "@w1 ST\n@w1 FENCE\nBAR\n@lead ISSUE"),
        kernel("narrower_fence", g, "The fence's predicate is narrower than the store's.", """
            setp.lt.u32 q, tid, 48;
            @q ST
            @w0 FENCE
            BAR
            @lead ISSUE // expect: PF101 error partial-threads"""),
        kernel("consumer_stores", g, "A consumer stores to its tile, waits for the other one and issues unfenced while the producer fences for itself.", """
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
        kernel("rotating_warp", g, "The warp that fences and copies rotates; it fences before it hears of the last one's store.", """
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
        kernel("fenced_no_barrier", g, "A fenced store with no barrier before another thread issues.", """
            @w1 ST
            @w1 FENCE
            @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 1024; // expect: PF101 error unsynchronised
            @lead cp.async.bulk.commit_group;"""),
        kernel("func_one_path", g, "A .func that fences on one path only.", """
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
        kernel("func_fences", g, "A .func that fences on every path.", """
            ST
            call publish;
            BAR
            @lead ISSUE""", functions="""
            .func publish
            {
            FENCE
            ret;
            }"""),
        kernel("warp_slots", g, "Per-warp staging slots: each warp stores, fences, syncs itself and issues its own.", """
            ST
            FENCE
            bar.warp.sync 0xffffffff;
            shl.b32 u, warp, 9;
            add.u32 u, u, buf;
            setp.eq.u32 p, lane, 0;
            @p cp.async.bulk.global.shared::cta.bulk_group [out], [u], 512;
            @p cp.async.bulk.commit_group;
            @p cp.async.bulk.wait_group 0;"""),
        kernel("warp_slots_none", g, "The same without the fence.", """
            ST
            bar.warp.sync 0xffffffff;
            shl.b32 u, warp, 9;
            add.u32 u, u, buf;
            setp.eq.u32 p, lane, 0;
            @p cp.async.bulk.global.shared::cta.bulk_group [out], [u], 512; // expect: PF101 error no-fence
            @p cp.async.bulk.commit_group;"""),
    ]


ROWS = [*_mbarrier(), *_third_party(), *_cp_async(), *_walks()]
