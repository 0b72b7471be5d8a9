"""Hand-offs between roles: mbarriers, named barriers, third parties."""

# ruff: noqa: E501 - PTX is not wrapped

from __future__ import annotations

from tests.litmus.table import Row, kernel

_MBARRIER = "mbarrier hand-off"
MBARRIER: list[Row] = [
    kernel("mb_writer", _MBARRIER, "Warp 1 stores, fences, arrives; thread 0 waits and issues.", """
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
    kernel("mb_none", _MBARRIER, "The same without a fence.", """
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
    kernel("mb_issuer", _MBARRIER, "The issuer fences after its wait.", """
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
    kernel("mb_issuer_early", _MBARRIER, "The issuer fences before its wait.", """
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
    kernel("mb_after_arrive", _MBARRIER, "The writers fence after their arrival.", """
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
    kernel("mb_warp_sync", _MBARRIER, "Every lane fences, the warp syncs, one lane arrives.", """
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
    kernel("mb_warp_sync_third", _MBARRIER, "The warp syncs, then the arriving lane alone fences: it knows all stores.", """
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
    kernel("mb_no_warp_sync", _MBARRIER, "One lane fences and arrives; nothing orders the other lanes' stores.", """
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
    kernel("mb_relaxed", _MBARRIER, "A relaxed arrival releases nothing.", """
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
    kernel("mb_relaxed_wait", _MBARRIER, "A relaxed wait acquires nothing.", """
        INITS 1 32
        @w0 bra CONSUMER;
        ST
        FENCE
        ARRIVE
        bra DONE;
        CONSUMER:
        @!lead bra DONE;
        AGAIN:
        mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 done, [m1], 0;
        @!done bra AGAIN;
        ISSUE // expect: PF101 error unsynchronised
        DONE:"""),
    kernel("mb_war", _MBARRIER, "Consumers read the tile and arrive; the producer loads the next one over it.", """
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
    kernel("mb_war_fence", _MBARRIER, "The consumers fence before they arrive.", """
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
    kernel("mb_tx_is_no_release", _MBARRIER, "Waiting for a load does not publish what its issuer stored.", """
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
    kernel("mb_store_undrained", _MBARRIER, "The issuer hands the tile back while its bulk store still reads it.", """
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
    kernel("mb_store_drained", _MBARRIER, "The issuer waits until the tile has been read, then hands it back.", """
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
    kernel("named_barrier_range", _MBARRIER, "The writers' barrier number is 1 or 2, as far as the text tells.", """
        shr.u32 u, n, 8;
        min.u32 u, u, 1;
        add.u32 u, u, 1;
        @w0 bra CONSUMER;
        ST
        FENCE
        bar.arrive u, 64;
        bra DONE;
        CONSUMER:
        bar.sync 1, 64;
        @!lead bra DONE;
        ISSUE
        DONE:"""),
    kernel("named_barrier", _MBARRIER, "bar.arrive by the writers, bar.sync by the consumer warp.", """
        @w0 bra CONSUMER;
        ST
        FENCE
        bar.arrive 1, 64;
        bra DONE;
        CONSUMER:
        bar.sync 1, 64;
        @lead ISSUE
        DONE:"""),
    kernel("named_barrier_none", _MBARRIER, "The same without a fence.", """
        @w0 bra CONSUMER;
        ST
        bar.arrive 1, 64;
        bra DONE;
        CONSUMER:
        bar.sync 1, 64;
        @lead ISSUE // expect: PF101 error no-fence
        DONE:"""),
    kernel("other_barrier", _MBARRIER, "The consumer syncs on another barrier than the writers.", """
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

_THIRD_PARTY = "third party"
_THIRD_PARTY_CHAIN = """
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


def _third_party_row(name: str, about: str, expect: str = "", **fences: str) -> Row:
    parts = {"a": "", "b": "", "c": "", "early": "", "late": "", **fences}
    body = _THIRD_PARTY_CHAIN.format(expect=f" // expect: {expect}" if expect else "", **parts)
    body = "\n".join(line for line in body.splitlines() if line.strip())
    return kernel(f"chain_{name}", _THIRD_PARTY, about, body, threads=96)


THIRD_PARTY: list[Row] = [
    _third_party_row("none", "Warp 1 stores, warp 2 relays, thread 0 issues; no fence.", "PF101 error no-fence"),
    _third_party_row("writer", "The writers fence.", a="FENCE"),
    _third_party_row("middle", "The relay fences between its wait and its arrival.", b="FENCE"),
    _third_party_row("issuer", "The issuer fences.", c="FENCE"),
    _third_party_row("middle_early", "The relay fences before its wait.", "PF101 error off-path", early="FENCE"),
    _third_party_row("middle_late", "The relay fences after its arrival.", "PF101 error off-path|no-fence", late="FENCE"),
    _third_party_row("middle_global", "The relay's fence names another space.", "PF111 error wrong-space", b="FENCE_GLOBAL"),
    _third_party_row("middle_thread_fence", "The relay runs a thread fence.", "PF101 error not-a-proxy-fence", b="fence.acq_rel.cta;"),
    kernel("bar_third_bar", _THIRD_PARTY, "Barrier, another warp fences, barrier, issue.", """
        ST
        BAR
        @w1 FENCE
        BAR
        @lead ISSUE"""),
    kernel("bar_third", _THIRD_PARTY, "Barrier, another warp fences, issue.", """
        ST
        BAR
        @w1 FENCE
        @lead ISSUE // expect: PF101 error off-path"""),
    kernel("third_before", _THIRD_PARTY, "A warp that stored nothing fences before the only barrier.", """
        @w0 ST
        @w1 FENCE
        BAR
        setp.eq.u32 p, tid, 64;
        @p ISSUE // expect: PF101 error partial-threads|off-path""", threads=96),
    kernel("stranger_fences", _THIRD_PARTY, "A warp that has not heard of the stores fences and arrives as well.", """
        INITS 1 32 32
        @w0 bra ISSUER;
        @w2 bra STRANGER;
        ST
        ARRIVE
        bra DONE;
        STRANGER:
        FENCE
        ARRIVE2
        bra DONE;
        ISSUER:
        @!lead bra DONE;
        AWAIT
        AWAIT2
        ISSUE // expect: PF101 error off-path|no-fence
        DONE:""", threads=96),
    kernel("relay_on_one_path", _THIRD_PARTY, "The relay waits for the writers on one path only; it always fences.", """
        INITS 1 32 1
        @w0 bra ISSUER;
        @w2 bra MIDDLE;
        ST
        ARRIVE
        bra DONE;
        MIDDLE:
        setp.eq.u32 p, lane, 0;
        @!p bra DONE;
        setp.eq.u32 q, n, 0;
        @q bra HEARD;
        AWAIT
        HEARD:
        FENCE
        ARRIVE2
        bra DONE;
        ISSUER:
        @!lead bra DONE;
        AWAIT
        AWAIT2
        ISSUE // expect: PF101 error off-path|no-fence
        DONE:""", threads=96),
    kernel("relay_fences_in_one_arm", _THIRD_PARTY, "The relay arrives in two arms and fences in one.", """
        INITS 1 32 1
        @w0 bra ISSUER;
        @w2 bra MIDDLE;
        ST
        ARRIVE
        bra DONE;
        MIDDLE:
        setp.eq.u32 p, lane, 0;
        @!p bra DONE;
        AWAIT
        setp.eq.u32 q, n, 0;
        @q bra BARE;
        FENCE
        ARRIVE2
        bra DONE;
        BARE:
        ARRIVE2
        bra DONE;
        ISSUER:
        @!lead bra DONE;
        AWAIT2
        ISSUE // expect: PF101 error some-paths|off-path|no-fence
        DONE:""", threads=96),
    kernel("warp_barrier_other_warp", _THIRD_PARTY, "One warp fences between two barriers of every warp.", """
        ST
        bar.warp.sync 0xffffffff;
        @w1 FENCE
        bar.warp.sync 0xffffffff;
        BAR
        @lead ISSUE // expect: PF101 error partial-threads|off-path"""),
    kernel("relay_under_a_predicate", _THIRD_PARTY, "The relay's wait is predicated; its fence is not.", """
        INITS 1 32 1
        @w0 bra ISSUER;
        @w2 bra MIDDLE;
        ST
        ARRIVE
        bra DONE;
        MIDDLE:
        setp.eq.u32 p, lane, 0;
        @!p bra DONE;
        setp.ne.u32 q, n, 0;
        setp.eq.u32 done, n, n;
        AGAIN:
        @q mbarrier.try_wait.parity.shared::cta.b64 done, [m1], 0;
        @!done bra AGAIN;
        FENCE
        ARRIVE2
        bra DONE;
        ISSUER:
        @!lead bra DONE;
        AWAIT
        AWAIT2
        ISSUE // expect: PF101 error off-path|no-fence
        DONE:""", threads=96),
    kernel("relays_in_a_circle", _THIRD_PARTY, "Two roles tell each other of everything but the stores; one fences.", """
        INITS 1 32 1 1
        setp.eq.u32 p, lane, 0;
        @w0 bra ISSUER;
        @w2 bra TWO;
        setp.eq.u32 q, warp, 3;
        @q bra THREE;
        ST
        ARRIVE
        bra DONE;
        TWO:
        @!p bra DONE;
        mov.u32 i, 0;
        NEXT2:
        xor.b32 j, i, 1;
        W2: mbarrier.try_wait.parity.shared::cta.b64 done, [m3], j;
        @!done bra W2;
        FENCE
        ARRIVE2
        add.u32 i, i, 1;
        setp.lt.u32 q, i, 1;
        @q bra NEXT2;
        bra DONE;
        THREE:
        @!p bra DONE;
        mov.u32 i, 0;
        NEXT3:
        W3: mbarrier.try_wait.parity.shared::cta.b64 done, [m2], i;
        @!done bra W3;
        ARRIVE3
        add.u32 i, i, 1;
        setp.lt.u32 q, i, 1;
        @q bra NEXT3;
        bra DONE;
        ISSUER:
        @!lead bra DONE;
        AWAIT
        AWAIT2
        ISSUE // expect: PF101 error off-path|no-fence
        DONE:""", threads=128),
    kernel("transitive_two", _THIRD_PARTY, "Two roles: stores by warp 1, named barrier to warp 2, mbarrier to thread 0.", """
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
    kernel("transitive_own", _THIRD_PARTY, "The relay stores and fences its own bytes before it hears of the others'.", """
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
    kernel("transitive_three", _THIRD_PARTY, "Three relays; the fence stands in the last but one.", """
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

ROWS = [*MBARRIER, *THIRD_PARTY]
