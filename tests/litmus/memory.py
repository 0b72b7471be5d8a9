"""Global memory and tensor maps."""

# ruff: noqa: E501 - PTX is not wrapped

from __future__ import annotations

from tests.litmus.table import Row, kernel

_GLOBAL = "global memory"
_GLOBAL_STORE = "st.global.u32 [gmine], tid;"
_GLOBAL_LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf], [out+65536], 1024, [m0];"
GLOBAL: list[Row] = [
    kernel("global_none", _GLOBAL, "Stored and then bulk-loaded in one kernel.", f"""
        INITS 1
        {_GLOBAL_STORE}
        BAR
        @lead {_GLOBAL_LOAD} // expect: PF112 error no-fence
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
    kernel("global_writer", _GLOBAL, "The writers fence global memory.", f"""
        INITS 1
        {_GLOBAL_STORE}
        FENCE_GLOBAL
        BAR
        @lead {_GLOBAL_LOAD}
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
    kernel("global_all", _GLOBAL, "The unqualified form covers global memory.", f"""
        INITS 1
        {_GLOBAL_STORE}
        BAR
        @lead FENCE_ALL
        @lead {_GLOBAL_LOAD}
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
    kernel("global_shared_form", _GLOBAL, "shared::cta covers no global memory.", f"""
        INITS 1
        {_GLOBAL_STORE}
        FENCE
        BAR
        @lead {_GLOBAL_LOAD} // expect: PF112 error wrong-space
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
    kernel("global_thread_fence", _GLOBAL, "A thread fence orders no proxies.", f"""
        INITS 1
        {_GLOBAL_STORE}
        fence.acq_rel.gpu;
        BAR
        @lead {_GLOBAL_LOAD} // expect: PF112 error not-a-proxy-fence
        @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m0], 1024;"""),
    kernel("global_flag", _GLOBAL, "Release and acquire through a flag; the reader fences.", """
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
    kernel("global_flag_none", _GLOBAL, "Release and acquire through a flag, no fence.", """
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

_MAPS = "tensor maps"
_MAPS_BODY = """
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
_MAPS_REL = "fence.proxy.tensormap::generic.release.cta;"
_MAPS_ACQ = "cvta.global.u64 map, map;\nfence.proxy.tensormap::generic.acquire.cta [map], 128;\ncvta.to.global.u64 map, map;"


def _maps_row(name: str, about: str, release: str = "", acquire: str = "", expect: str = "") -> Row:
    text = _MAPS_BODY.format(release=release, acquire=acquire, expect=expect and f" // expect: {expect}")
    return kernel(name, _MAPS, about, text)


MAPS: list[Row] = [
    _maps_row("map_none", "A map modified in the kernel, then used.", expect="PF110 error"),
    _maps_row("map_both", "Release by the modifying thread, acquire by the user.", _MAPS_REL, _MAPS_ACQ),
    _maps_row("map_no_release", "Acquire alone.", "", _MAPS_ACQ, "PF110 error"),
    _maps_row("map_no_acquire", "Release alone.", _MAPS_REL, "", "PF110 error"),
    _maps_row("map_async_fence", "fence.proxy.async is no substitute.", "FENCE_ALL", "", "PF110 error"),
]

ROWS = [*GLOBAL, *MAPS]
