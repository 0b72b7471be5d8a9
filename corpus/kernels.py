"""The corpus kernels written in Triton and Gluon, as data: signature, constants and options of every variant built.

Pure data; imports nothing of Triton, so that tests can read the table without a wheel.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FP16_TILE = "NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)"
ARCHES = (90, 100)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One compiled variant.

    name: stem of the PTX file. source: path below corpus/. entry: the Python function.
    signature: argument name to Triton type, in order; ``constexpr`` arguments are not listed.
    constants: constexpr arguments. aligned: arguments known to be multiples of 16.
    since: first Triton release whose language has what the kernel uses.
    """

    name: str
    source: str
    entry: str
    signature: dict[str, str]
    constants: dict[str, int | bool]
    aligned: tuple[str, ...] = ()
    num_warps: int = 4
    arches: tuple[int, ...] = ARCHES
    since: tuple[int, ...] = (3, 5, 1)
    gluon: bool = field(default=False)


def _desc(element: str, rows: int, cols: int, layout: str = "") -> str:
    return f"tensordesc<{element}[{rows}, {cols}]{',' + layout if layout else ''}>"


_GEMM_SIGNATURE = {
    "a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "m": "i32", "n": "i32", "k": "i32",
    "stride_am": "i32", "stride_bk": "i32", "stride_cm": "i32",
}  # fmt: skip
_GEMM_BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "STAGES": 3}
_HOST_TMA = {"a_desc": _desc("fp16", 128, 64), "b_desc": _desc("fp16", 128, 64), "c_desc": _desc("fp16", 128, 128)}
_HEADS = {"BLOCK_M": 128, "BLOCK_N": 64, "HEAD": 64, "STAGES": 3}
_POINTERS = {"q_ptr": "*fp16", "k_ptr": "*fp16", "v_ptr": "*fp16", "o_ptr": "*fp16"}
_TILE = {"BLOCK_M": 64, "BLOCK_N": 64}
_OUT = {"in_ptr": "*fp16", "out_desc": _desc("fp16", 64, 64, FP16_TILE)}
_IN = {"in_desc": _desc("fp16", 64, 64, FP16_TILE), "out_ptr": "*fp16"}
_PRODUCT = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16"}
_SIDES = (("nofence", 0), ("producer", 1), ("consumer", 2))


def _gluon(name: str, entry: str, signature: dict[str, str], constants: dict[str, int | bool], ws: bool) -> Kernel:
    """A hand-off of gluon/handoff.py; warp specialisation in this spelling exists since 3.6."""
    aligned = tuple(arg for arg in signature if arg.endswith("_ptr"))
    since = (3, 6, 0) if ws else (3, 5, 1)
    constants = {**_TILE, **constants}
    return Kernel(name, "gluon/handoff.py", entry, signature, constants, aligned, since=since, gluon=True)


def _wgmma(name: str, entry: str, signature: dict[str, str], constants: dict[str, int | bool], ws: bool) -> Kernel:
    """A product of gluon/mma.py; sm_90 only."""
    aligned = tuple(arg for arg in signature if arg.endswith("_ptr"))
    since = (3, 6, 0) if ws else (3, 5, 1)
    constants = {"SIZE": 64, **constants}
    return Kernel(name, "gluon/mma.py", entry, signature, constants, aligned, arches=(90,), since=since, gluon=True)


KERNELS: tuple[Kernel, ...] = (
    Kernel("pointer_gemm", "triton/gemm.py", "pointer_gemm", _GEMM_SIGNATURE, _GEMM_BLOCKS, tuple(_GEMM_SIGNATURE)),
    Kernel(
        "pointer_gemm_8warps", "triton/gemm.py", "pointer_gemm", _GEMM_SIGNATURE,
        {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "STAGES": 4}, tuple(_GEMM_SIGNATURE), num_warps=8,
    ),
    Kernel(
        "cast_gemm", "triton/gemm.py", "cast_gemm", {**_GEMM_SIGNATURE, "b_ptr": "*i8"}, _GEMM_BLOCKS,
        tuple(_GEMM_SIGNATURE),
    ),
    Kernel(
        "tma_gemm", "triton/gemm.py", "tma_gemm",
        {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "m": "i32", "n": "i32", "k": "i32"},
        _GEMM_BLOCKS, ("a_ptr", "b_ptr", "c_ptr", "m", "n", "k"),
    ),
    Kernel("host_tma_gemm", "triton/gemm.py", "host_tma_gemm", {**_HOST_TMA, "k": "i32"}, _GEMM_BLOCKS, ("k",)),
    Kernel(
        "ws_cast_gemm", "triton/gemm.py", "ws_cast_gemm", {**_HOST_TMA, "b_desc": _desc("i8", 128, 64), "k": "i32"},
        _GEMM_BLOCKS, ("k",), arches=(100,),
    ),
    Kernel(
        "ws_gemm", "triton/gemm.py", "ws_gemm", {**_HOST_TMA, "k": "i32"}, _GEMM_BLOCKS, ("k",), arches=(100,),
    ),
    Kernel(
        "attention", "triton/attention.py", "attention",
        {**_POINTERS, "length": "i32", "stride": "i32", "scale": "fp32"}, _HEADS, (*_POINTERS, "length", "stride"),
    ),
    Kernel(
        "tma_attention", "triton/attention.py", "tma_attention",
        {
            "q_desc": _desc("fp16", 128, 64), "k_desc": _desc("fp16", 64, 64), "v_desc": _desc("fp16", 64, 64),
            "o_desc": _desc("fp16", 128, 64), "length": "i32", "scale": "fp32",
        },
        _HEADS, ("length",),
    ),
    _gluon("store_tile_nofence", "store_tile", _OUT, {"FENCE": False}, False),
    _gluon("store_tile_fence", "store_tile", _OUT, {"FENCE": True}, False),
    *(_gluon(f"ws_store_{side}", "ws_store", _OUT, {"FENCE": code}, True) for side, code in _SIDES),
    *(_gluon(f"ws_ring_{side}", "ws_ring", {**_OUT, "count": "i32"}, {"FENCE": code, "SLOTS": 3}, True)
      for side, code in _SIDES),
    _gluon("reload_loop_nofence", "reload_loop", {**_IN, "count": "i32"}, {"FENCE": False}, False),
    _gluon("reload_loop_fence", "reload_loop", {**_IN, "count": "i32"}, {"FENCE": True}, False),
    _gluon("overwrite", "overwrite", _IN, {}, False),
    _wgmma("staged_wgmma_nofence", "staged_wgmma", _PRODUCT, {"FENCE": False}, False),
    _wgmma("staged_wgmma_fence", "staged_wgmma", _PRODUCT, {"FENCE": True}, False),
    *(_wgmma(f"ws_copy_wgmma_{name}", "ws_copy_wgmma", {**_PRODUCT, "count": "i32"}, {"FENCE": code, "SLOTS": 3}, True)
      for name, code in (("nofence", False), ("fence", True))),
)  # fmt: skip
