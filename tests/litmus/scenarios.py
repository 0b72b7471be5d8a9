"""Scenarios of Triton's passes that PTX can show, and calls."""

# ruff: noqa: E501 - PTX is not wrapped

from __future__ import annotations

from tests.litmus.table import Row, kernel

_TRITON = "Triton scenarios"
TRITON: list[Row] = [
    kernel("stages_apart", _TRITON, "Stage 0 is read, stage 1 loaded.", """
        INITS 1
        LD
        BAR
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;
        @lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf+4096], [in], 1024, [m0];
        AWAIT0
        PIN"""),
    kernel("stage_selected", _TRITON, "Stage 0 is read, the loaded stage selected at run time.", """
        .reg .b32 stage;
        INITS 1
        LD
        BAR
        setp.eq.u32 p, n, 0;
        add.u32 u, buf, 4096;
        selp.b32 stage, buf, u, p;
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;
        @lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [stage], [in], 1024, [m0]; // expect: PF103 error no-fence
        AWAIT0
        PIN"""),
    kernel("arms_read", _TRITON, "One arm reads stage 0, the other stage 1; stage 1 is loaded.", """
        INITS 1
        setp.eq.u32 p, n, 0;
        @p bra OTHER;
        LD
        bra JOIN;
        OTHER:
        ld.shared.u32 v, [mine+4096];
        JOIN:
        BAR
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;
        @lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf+4096], [in], 1024, [m0]; // expect: PF103 error no-fence
        AWAIT0
        PIN"""),
    kernel("arms_read_same", _TRITON, "Both arms read stage 0; stage 1 is loaded.", """
        INITS 1
        setp.eq.u32 p, n, 0;
        @p bra OTHER;
        LD
        bra JOIN;
        OTHER:
        ld.shared.u32 v, [mine];
        JOIN:
        BAR
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;
        @lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf+4096], [in], 1024, [m0];
        AWAIT0
        PIN"""),
    kernel("partial_overlap", _TRITON, "A read of 16 bytes at 1008, a load up to 1024.", """
        INITS 1
        ld.shared.v4.u32 {r0, r1, r2, r3}, [buf+1008];
        BAR
        @lead RELOAD // expect: PF103 error no-fence
        AWAIT0
        st.global.u32 [gmine], r0;"""),
    kernel("store_then_store", _TRITON, "Bulk store waited for, stored again, fence missing the second time.", """
        ST
        FENCE
        BAR
        @lead ISSUE
        BAR
        ST
        BAR
        @lead ISSUE // expect: PF101 error no-fence|fence-before-access"""),
    kernel("atomic_war", _TRITON, "A shared atomic, then a load over its word.", """
        INITS 1
        atom.shared.add.u32 v, [mine], 1;
        BAR
        @lead RELOAD // expect: PF103 error no-fence; PF102 error no-fence
        PIN"""),
    kernel("join_forms", _TRITON, "One arm fences with shared::cta, the other with shared::cluster: both cover.", """
        ST
        setp.eq.u32 p, n, 0;
        @p bra OTHER;
        FENCE
        bra JOIN;
        OTHER:
        FENCE_CLUSTER
        JOIN:
        BAR
        @lead ISSUE"""),
]

_CALLS = "calls"
_CALLS_COPY = """
    .func copy(.reg .b64 to, .reg .b32 from)
    {{
    {before}
    cp.async.bulk.global.shared::cta.bulk_group [to], [from], 1024;{expect}
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    {after}
    ret;
    }}"""
_CALLS_USE = "{before}\n@!lead bra DONE;\ncall copy, (out, buf);\nDONE:"
_CALLS_PLAIN = _CALLS_COPY.format(before="", after="", expect="")
_CALLS_WRONG = " // expect: PF101 error no-fence"
CALLS: list[Row] = [
    kernel("call_raw", _CALLS, "Stores; the callee copies.", _CALLS_USE.format(before="ST\nBAR"),
           functions=_CALLS_COPY.format(before="", after="", expect=_CALLS_WRONG)),
    kernel("call_fence_before", _CALLS, "Stores, fence; the callee copies.", _CALLS_USE.format(before="ST\nFENCE\nBAR"), functions=_CALLS_PLAIN),
    kernel("call_fence_inside", _CALLS, "The callee fences, then copies.", _CALLS_USE.format(before="ST\nBAR"),
           functions=_CALLS_COPY.format(before="FENCE", after="", expect="")),
    kernel("call_fence_late", _CALLS, "The callee copies, then fences.", _CALLS_USE.format(before="ST\nBAR"),
           functions=_CALLS_COPY.format(before="", after="FENCE",
                                 expect=" // expect: PF101 error fence-after-use")),
    kernel("call_store_fence", _CALLS, "The callee stores and fences.", "call put, (mine, tid);\nBAR\n@lead ISSUE", functions="""
        .func put(.reg .b32 at, .reg .b32 what)
        {
        st.shared.u32 [at], what;
        FENCE
        ret;
        }"""),
    kernel("call_fence_store", _CALLS, "The callee fences, then stores.", """
        call put, (mine, tid);
        BAR
        @lead ISSUE // expect: PF101 error fence-before-access""", functions="""
        .func put(.reg .b32 at, .reg .b32 what)
        {
        FENCE
        st.shared.u32 [at], what;
        ret;
        }"""),
]

_GUARDS = "guards that the way implies"
GUARDS: list[Row] = [
    kernel("implied_one_thread", _GUARDS, "One thread comes here; its fence repeats the condition.", """
        ST
        BAR
        @!lead bra DONE;
        @lead FENCE
        ISSUE
        DONE:"""),
    kernel("implied_two_conditions", _GUARDS, "The repeated condition is a conjunction.", """
        ST
        BAR
        setp.eq.u32 q, lane, 0;
        setp.eq.and.u32 p, warp, 0, q;
        @!p bra DONE;
        @p FENCE
        ISSUE
        DONE:"""),
    kernel("implied_uniform", _GUARDS, "A condition of the whole CTA, repeated at the writers' fence.", """
        setp.eq.u32 q, n, 0;
        @q bra DONE;
        ST
        @!q FENCE
        BAR
        @lead ISSUE
        DONE:"""),
    kernel("implied_predicate", _GUARDS, "A condition that is no comparison with a constant.", """
        setp.lt.u32 q, n, 3;
        setp.lt.and.u32 p, tid, n, q;
        @!p bra DONE;
        st.shared.u32 [mine], tid;
        @p FENCE
        DONE:
        BAR
        @lead ISSUE"""),
    kernel("implied_not", _GUARDS, "The guard is another condition than the branch.", """
        setp.eq.u32 q, n, 0;
        ST
        BAR
        @!lead bra DONE;
        @q FENCE
        ISSUE // expect: PF101 error some-paths
        DONE:"""),
]

ROWS = [*TRITON, *CALLS, *GUARDS]
