"""Matrix units, tensor maps, global memory, and scenarios of Triton's passes that PTX can show."""

# ruff: noqa: E501 - PTX is not wrapped

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


def _wgmma() -> list[Row]:
    g = "wgmma"

    def row(name: str, about: str, body: str) -> Row:
        return kernel(name, g, about, f"{_DESC}\n{body}", threads=128)

    return [
        row("wgmma_none", "Stores, barrier, wgmma.", f"""
            ST
            BAR
            wgmma.fence.sync.aligned;
            {_MMA} // expect: PF101 error no-fence
            {_DRAIN}"""),
        row("wgmma_fence", "Every writer fences.", f"ST\nFENCE\nBAR\nwgmma.fence.sync.aligned;\n{_MMA}\n{_DRAIN}"),
        row("wgmma_after", "Every issuing thread fences after the barrier.",
            f"ST\nBAR\nFENCE\nwgmma.fence.sync.aligned;\n{_MMA}\n{_DRAIN}"),
        row("wgmma_one_warp_after", "One of the issuing warps fences after the barrier.", f"""
            ST
            BAR
            @w0 FENCE
            wgmma.fence.sync.aligned;
            {_MMA} // expect: PF101 error off-path
            {_DRAIN}"""),
        row("wgmma_outside_loop", "The fence stands before the loop, the stores too.", f"""
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
        row("wgmma_store_in_loop", "Stores in the loop, the fence before it.", f"""
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
        row("wgmma_drained", "wgmma, wait_group, barrier, overwritten generically.", f"""
            wgmma.fence.sync.aligned;
            {_MMA}
            {_DRAIN}
            BAR
            ST"""),
        row("wgmma_undrained", "The operands are overwritten before wait_group.", f"""
            wgmma.fence.sync.aligned;
            {_MMA}
            wgmma.commit_group.sync.aligned;
            BAR
            st.shared.u32 [mine], tid; // expect: PF120 error
            wgmma.wait_group.sync.aligned 0;"""),
        row("load_wgmma", "Bulk load, wait, wgmma: async after async.", f"""
            INITS 1
            @lead RELOAD
            AWAIT0
            wgmma.fence.sync.aligned;
            {_MMA}
            {_DRAIN}"""),
        row("matrix_store", "stmatrix, barrier, bulk store.", """
            stmatrix.sync.aligned.m8n8.x4.shared.b16 [mine], {tid, tid, tid, tid};
            BAR
            @lead ISSUE // expect: PF101 error no-fence"""),
        row("matrix_load", "ldmatrix, barrier, bulk load over it.", """
            INITS 1
            ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r2, r3, r4, r5}, [mine];
            BAR
            @lead RELOAD // expect: PF103 error no-fence
            st.global.u32 [gmine], r2;"""),
    ]


def _tcgen05() -> list[Row]:
    g = "tcgen05"
    desc = """
        shr.u32 r1, buf, 4;
        cvt.u64.u32 desc, r1;
        or.b64 desc, desc, 70368744177664;
        mov.u32 r2, 0;
        setp.eq.u32 p, tid, 1000;
    """
    mma = "@lead tcgen05.mma.cta_group::1.kind::f16 [r2], desc, desc, 68157456, p;"

    def row(name: str, about: str, body: str) -> Row:
        return kernel(name, g, about, f"{desc}\n{body}", target="sm_100a", threads=128)

    return [
        row("tc_none", "Stores, barrier, tcgen05.mma.", f"""
            INITS 1 1
            ST
            BAR
            {mma} // expect: PF101 error no-fence
            @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
            AWAIT"""),
        row("tc_fence", "Every writer fences.", f"""
            INITS 1 1
            ST
            FENCE
            BAR
            {mma}
            @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
            AWAIT"""),
        row("tc_tcgen05_fence", "tcgen05.fence orders no shared memory between proxies.", f"""
            INITS 1 1
            ST
            tcgen05.fence::before_thread_sync;
            BAR
            tcgen05.fence::after_thread_sync;
            {mma} // expect: PF101 error no-fence
            @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
            AWAIT"""),
        row("tc_reuse", "mma, commit, wait, barrier, overwritten.", f"""
            INITS 1 1
            {mma}
            @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
            AWAIT
            BAR
            ST"""),
        row("tc_reuse_unwaited", "Nobody waits for the commit.", f"""
            INITS 1 1
            {mma}
            @lead tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [m1];
            BAR
            st.shared.u32 [mine], tid; // expect: PF120 error"""),
        row("tc_copy", "Stores, barrier, tcgen05.cp.", """
            ST
            BAR
            @lead tcgen05.cp.cta_group::1.128x256b [r2], desc; // expect: PF101 error no-fence"""),
        row("tc_cp_async", "cp.async, wait, barrier, mma.", f"""
            INITS 1 1
            cp.async.ca.shared.global [mine], [gmine], 16;
            cp.async.commit_group;
            cp.async.wait_group 0;
            BAR
            {mma} // expect: PF104 error no-fence"""),
        row("tc_slot", "The slot of tcgen05.alloc is read, then overwritten by a load.", """
            INITS 1 1
            @w0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [buf], 32;
            BAR
            ld.shared.u32 v, [buf];
            BAR
            @lead RELOAD // expect: PF103 note no-fence; PF102 note no-fence
            AWAIT0
            BAR
            @w0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 v, 32;"""),
    ]


def _pair() -> list[Row]:
    body = """
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

    def row(name: str, about: str, writer: str = "", issuer: str = "", expect: str = "") -> Row:
        text = body.format(writer=writer, issuer=issuer, expect=expect and f" // expect: {expect}")
        return kernel(name, "cluster", about, text, target="sm_100a", cluster=2, threads=128)

    return [
        row("pair_none", "Both CTAs store; the leader's MMA reads both.", expect="PF101 error no-fence"),
        row("pair_writers", "Each CTA's writers fence their own bytes.", writer="FENCE"),
        row("pair_issuer", "The leader's shared::cta fence covers no peer bytes.", issuer="@q FENCE",
            expect="PF111 error wrong-space"),
        row("pair_issuer_wide", "The leader fences with shared::cluster.", issuer="@q FENCE_CLUSTER"),
    ]


def _global() -> list[Row]:
    g = "global memory"
    store = "st.global.u32 [gmine], tid;"
    load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [out+65536], 1024, [m0];"
    return [
        kernel("global_none", g, "Stored and then bulk-loaded in one kernel.", f"""
            INITS 1
            {store}
            BAR
            @lead {load} // expect: PF112 error no-fence
            @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
        kernel("global_writer", g, "The writers fence global memory.", f"""
            INITS 1
            {store}
            FENCE_GLOBAL
            BAR
            @lead {load}
            @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
        kernel("global_all", g, "The unqualified form covers global memory.", f"""
            INITS 1
            {store}
            BAR
            @lead FENCE_ALL
            @lead {load}
            @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
        kernel("global_shared_form", g, "shared::cta covers no global memory.", f"""
            INITS 1
            {store}
            FENCE
            BAR
            @lead {load} // expect: PF112 error wrong-space
            @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
        kernel("global_thread_fence", g, "A thread fence orders no proxies.", f"""
            INITS 1
            {store}
            fence.acq_rel.gpu;
            BAR
            @lead {load} // expect: PF112 error not-a-proxy-fence
            @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
        kernel("global_flag", g, "Release and acquire through a flag; the reader fences.", """
            INITS 1
            @w1 bra WRITER;
            @!lead bra DONE;
            SPIN: ld.acquire.gpu.global.u32 v, [in];
            setp.ne.u32 p, v, 7;
            @p bra SPIN;
            FENCE_GLOBAL
            cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [out], 16, [m0];
            mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 16;
            bra DONE;
            WRITER:
            setp.eq.u32 p, lane, 0;
            @p st.global.u32 [out], tid;
            @p st.release.gpu.global.u32 [in], 7;
            DONE:"""),
        kernel("global_flag_none", g, "Release and acquire through a flag, no fence.", """
            INITS 1
            @w1 bra WRITER;
            @!lead bra DONE;
            SPIN: ld.acquire.gpu.global.u32 v, [in];
            setp.ne.u32 p, v, 7;
            @p bra SPIN;
            cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [out], 16, [m0]; // expect: PF112 error no-fence
            mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 16;
            bra DONE;
            WRITER:
            setp.eq.u32 p, lane, 0;
            @p st.global.u32 [out], tid;
            @p st.release.gpu.global.u32 [in], 7;
            DONE:"""),
    ]


def _maps() -> list[Row]:
    g = "tensor maps"
    body = """
        .reg .b64 map;
        INITS 1
        mov.u64 map, scratch;
        @lead tensormap.replace.tile.global_address.global.b1024.b64 [map], in;
        {release}
        BAR
        @!lead bra DONE;
        {acquire}
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;
        cvta.global.u64 map, map;
        cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [buf], [map, {{tid}}], [m0];{expect}
        AWAIT0
        DONE:"""
    rel = "fence.proxy.tensormap::generic.release.cta;"
    acq = "cvta.global.u64 map, map;\nfence.proxy.tensormap::generic.acquire.cta [map], 128;\ncvta.to.global.u64 map, map;"

    def row(name: str, about: str, release: str = "", acquire: str = "", expect: str = "") -> Row:
        text = body.format(release=release, acquire=acquire, expect=expect and f" // expect: {expect}")
        return kernel(name, g, about, text)

    return [
        row("map_none", "A map modified in the kernel, then used.", expect="PF110 error"),
        row("map_both", "Release by the modifying thread, acquire by the user.", rel, acq),
        row("map_no_release", "Acquire alone.", "", acq, "PF110 error"),
        row("map_no_acquire", "Release alone.", rel, "", "PF110 error"),
        row("map_async_fence", "fence.proxy.async is no substitute.", "FENCE_ALL", "", "PF110 error"),
    ]


def _triton() -> list[Row]:
    g = "Triton scenarios"
    rows = [
        kernel("stages_apart", g, "Stage 0 is read, stage 1 loaded.", """
            INITS 1
            LD
            BAR
            @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;
            @lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf+4096], [in], 1024, [m0];
            AWAIT0
            PIN"""),
        kernel("stage_selected", g, "Stage 0 is read, the loaded stage selected at run time.", """
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
        kernel("arms_read", g, "One arm reads stage 0, the other stage 1; stage 1 is loaded.", """
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
        kernel("arms_read_same", g, "Both arms read stage 0; stage 1 is loaded.", """
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
        kernel("partial_overlap", g, "A read of 16 bytes at 1008, a load up to 1024.", """
            INITS 1
            ld.shared.v4.u32 {r0, r1, r2, r3}, [buf+1008];
            BAR
            @lead RELOAD // expect: PF103 error no-fence
            AWAIT0
            st.global.u32 [gmine], r0;"""),
        kernel("store_then_store", g, "Bulk store waited for, stored again, fence missing the second time.", """
            ST
            FENCE
            BAR
            @lead ISSUE
            BAR
            ST
            BAR
            @lead ISSUE // expect: PF101 error no-fence|fence-before-access"""),
        kernel("atomic_war", g, "A shared atomic, then a load over its word.", """
            INITS 1
            atom.shared.add.u32 v, [mine], 1;
            BAR
            @lead RELOAD // expect: PF103 error no-fence; PF102 error no-fence
            PIN"""),
        kernel("join_forms", g, "One arm fences with shared::cta, the other with shared::cluster: both cover.", """
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
    return rows + _calls()


def _calls() -> list[Row]:
    g = "calls"
    copy = """
        .func copy(.reg .b64 to, .reg .b32 from)
        {{
        {before}
        cp.async.bulk.global.shared::cta.bulk_group [to], [from], 1024;{expect}
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
        {after}
        ret;
        }}"""
    use = "{before}\n@!lead bra DONE;\ncall copy, (out, buf);\nDONE:"
    plain = copy.format(before="", after="", expect="")
    wrong = " // expect: PF101 error no-fence"
    return [
        kernel("call_raw", g, "Stores; the callee copies.", use.format(before="ST\nBAR"),
               functions=copy.format(before="", after="", expect=wrong)),
        kernel("call_fence_before", g, "Stores, fence; the callee copies.", use.format(before="ST\nFENCE\nBAR"), functions=plain),
        kernel("call_fence_inside", g, "The callee fences, then copies.", use.format(before="ST\nBAR"),
               functions=copy.format(before="FENCE", after="", expect="")),
        kernel("call_fence_late", g, "The callee copies, then fences.", use.format(before="ST\nBAR"),
               functions=copy.format(before="", after="FENCE",
                                     expect=" // expect: PF101 error fence-after-use")),
        kernel("call_store_fence", g, "The callee stores and fences.", "call put, (mine, tid);\nBAR\n@lead ISSUE", functions="""
            .func put(.reg .b32 at, .reg .b32 what)
            {
            st.shared.u32 [at], what;
            FENCE
            ret;
            }"""),
        kernel("call_fence_store", g, "The callee fences, then stores.", """
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


ROWS = [*_wgmma(), *_tcgen05(), *_pair(), *_global(), *_maps(), *_triton()]
