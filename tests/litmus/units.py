"""Matrix units: wgmma, tcgen05, pairs of CTAs."""

from __future__ import annotations

from tests.litmus.table import Row, kernel

_DESC = """
    shr.u32 r1, buf, 4;
    and.b32 r1, r1, 16383;
    cvt.u64.u32 desc, r1;
    or.b64 desc, desc, 4611686293305294848;
"""
_MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f0, f1, f2, f3}, desc, desc, 1, 1, 1, 0, 0;"
_DRAIN = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"

_WGMMA = "wgmma"


def _wgmma_row(name: str, about: str, body: str) -> Row:
    return kernel(name, _WGMMA, about, f"{_DESC}\n{body}", threads=128)


WGMMA: list[Row] = [
    _wgmma_row("wgmma_none", "Stores, barrier, wgmma.", f"""
        ST
        BAR
        wgmma.fence.sync.aligned;
        {_MMA} // expect: PF101 error no-fence
        {_DRAIN}"""),
    _wgmma_row("wgmma_fence", "Every writer fences.", f"ST\nFENCE\nBAR\nwgmma.fence.sync.aligned;\n{_MMA}\n{_DRAIN}"),
    _wgmma_row("wgmma_after", "Every issuing thread fences after the barrier.",
        f"ST\nBAR\nFENCE\nwgmma.fence.sync.aligned;\n{_MMA}\n{_DRAIN}"),
    _wgmma_row("wgmma_one_warp_after", "One of the issuing warps fences after the barrier.", f"""
        ST
        BAR
        @w0 FENCE
        wgmma.fence.sync.aligned;
        {_MMA} // expect: PF101 error off-path
        {_DRAIN}"""),
    _wgmma_row("wgmma_outside_loop", "The fence stands before the loop, the stores too.", f"""
        ST
        FENCE
        BAR
        mov.u32 i, 0;
        LOOP:
        wgmma.fence.sync.aligned;
        {_MMA}
        {_DRAIN}
        add.u32 i, i, 1;
        setp.lt.u32 p, i, n;
        @p bra LOOP;"""),
    _wgmma_row("wgmma_store_in_loop", "Stores in the loop, the fence before it.", f"""
        FENCE
        mov.u32 i, 0;
        LOOP:
        ST
        BAR
        wgmma.fence.sync.aligned;
        {_MMA} // expect: PF101 error hoisted-out
        {_DRAIN}
        BAR
        add.u32 i, i, 1;
        setp.lt.u32 p, i, n;
        @p bra LOOP;"""),
    _wgmma_row("wgmma_drained", "wgmma, wait_group, barrier, overwritten generically.", f"""
        wgmma.fence.sync.aligned;
        {_MMA}
        {_DRAIN}
        BAR
        ST"""),
    _wgmma_row("wgmma_undrained", "The operands are overwritten before wait_group.", f"""
        wgmma.fence.sync.aligned;
        {_MMA}
        wgmma.commit_group.sync.aligned;
        BAR
        st.shared.u32 [mine], tid; // expect: PF120 error
        wgmma.wait_group.sync.aligned 0;"""),
    _wgmma_row("load_wgmma", "Bulk load, wait, wgmma: async after async.", f"""
        INITS 1
        @lead RELOAD
        AWAIT0
        wgmma.fence.sync.aligned;
        {_MMA}
        {_DRAIN}"""),
    _wgmma_row("matrix_store", "stmatrix, barrier, bulk store.", """
        stmatrix.sync.aligned.m8n8.x4.shared.b16 [mine], {tid, tid, tid, tid};
        BAR
        @lead ISSUE // expect: PF101 error no-fence"""),
    _wgmma_row("matrix_load", "ldmatrix, barrier, bulk load over it.", """
        INITS 1
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r2, r3, r4, r5}, [mine];
        BAR
        @lead RELOAD // expect: PF103 error no-fence
        st.global.u32 [gmine], r2;"""),
]

_TCGEN05 = "tcgen05"
_TCGEN05_DESC = """
    shr.u32 r1, buf, 4;
    cvt.u64.u32 desc, r1;
    or.b64 desc, desc, 70368744177664;
    mov.u32 r2, 0;
    setp.eq.u32 p, tid, 1000;
"""
_TCGEN05_MMA = "@lead tcgen05.mma.cta_group::1.kind::f16 [r2], desc, desc, 68157456, p;"


def _tcgen05_row(name: str, about: str, body: str) -> Row:
    return kernel(name, _TCGEN05, about, f"{_TCGEN05_DESC}\n{body}", target="sm_100a", threads=128)


TCGEN05: list[Row] = [
    _tcgen05_row("tc_none", "Stores, barrier, tcgen05.mma.", f"""
        INITS 1 1
        ST
        BAR
        {_TCGEN05_MMA} // expect: PF101 error no-fence
        @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
        AWAIT"""),
    _tcgen05_row("tc_fence", "Every writer fences.", f"""
        INITS 1 1
        ST
        FENCE
        BAR
        {_TCGEN05_MMA}
        @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
        AWAIT"""),
    _tcgen05_row("tc_tcgen05_fence", "tcgen05.fence orders no shared memory between proxies.", f"""
        INITS 1 1
        ST
        tcgen05.fence::before_thread_sync;
        BAR
        tcgen05.fence::after_thread_sync;
        {_TCGEN05_MMA} // expect: PF101 error no-fence
        @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
        AWAIT"""),
    _tcgen05_row("tc_reuse", "mma, commit, wait, barrier, overwritten.", f"""
        INITS 1 1
        {_TCGEN05_MMA}
        @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
        AWAIT
        BAR
        ST"""),
    _tcgen05_row("tc_reuse_unwaited", "Nobody waits for the commit.", f"""
        INITS 1 1
        {_TCGEN05_MMA}
        @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
        BAR
        st.shared.u32 [mine], tid; // expect: PF120 error"""),
    _tcgen05_row("tc_copy", "Stores, barrier, tcgen05.cp.", """
        ST
        BAR
        @lead tcgen05.cp.cta_group::1.128x256b [r2], desc; // expect: PF101 error no-fence"""),
    _tcgen05_row("tc_cp_async", "cp.async, wait, barrier, mma.", f"""
        INITS 1 1
        cp.async.ca.shared.global [mine], [gmine], 16;
        cp.async.commit_group;
        cp.async.wait_group 0;
        BAR
        {_TCGEN05_MMA} // expect: PF104 error no-fence"""),
    _tcgen05_row("tc_slot", "The slot of tcgen05.alloc is read, then overwritten by a load.", """
        INITS 1 1
        @w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [buf], 32;
        BAR
        ld.shared.u32 v, [buf];
        BAR
        @lead RELOAD // expect: PF103 note no-fence; PF102 note? no-fence
        AWAIT0
        BAR
        @w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 v, 32;"""),
]

_PAIR_BODY = """
    mov.u32 rank, %cluster_ctarank;
    setp.eq.and.u32 q, rank, 0, lead;
    shr.u32 r1, buf, 4;
    cvt.u64.u32 desc, r1;
    or.b64 desc, desc, 70368744177664;
    mov.u32 r2, 0;
    setp.eq.u32 p, tid, 1000;
    ST
    {writer}
    CLUSTER
    {issuer}
    @q tcgen05.mma.cta_group::2.kind::f16 [r2], desc, desc, 135266320, p;{expect}
    CLUSTER"""


def _pair_row(name: str, about: str, writer: str = "", issuer: str = "", expect: str = "") -> Row:
    text = _PAIR_BODY.format(writer=writer, issuer=issuer, expect=expect and f" // expect: {expect}")
    return kernel(name, "cluster", about, text, target="sm_100a", cluster=2, threads=128)


PAIR: list[Row] = [
    _pair_row("pair_none", "Both CTAs store; the leader's MMA reads both.", expect="PF101 error no-fence"),
    _pair_row("pair_writers", "Each CTA's writers fence their own bytes.", writer="FENCE"),
    _pair_row("pair_issuer", "The leader's shared::cta fence covers no peer bytes.", issuer="@q FENCE",
        expect="PF111 error wrong-space"),
    _pair_row("pair_issuer_wide", "The leader fences with shared::cluster.", issuer="@q FENCE_CLUSTER"),
]

ROWS = [*WGMMA, *TCGEN05, *PAIR]
