"""Compiles CuTe DSL kernels of flash-attn-4 and quack-kernels without a GPU.

Usage: ``python cute_dsl_kernels.py OUT TOOLS [WORD]``.

Each case runs in a process of its own, on fake tensors; the DSL dumps the PTX. WORD restricts to cases that hold it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Farm, environment

PACKAGES = ("torch", "nvidia-cutlass-dsl[cu13]==4.8.1", "flash-attn-4==4.0.0b36", "quack-kernels==0.6.5")
MULTIPROCESSORS = {"sm_80": "108", "sm_90": "132", "sm_100": "148", "sm_120": "188"}

PRELUDE = """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
import cutlass.utils
class Hardware:
    # What the DSL would ask the driver: sizes of the host-side grid only.
    def __init__(self, device_id=0): pass
    def get_max_active_clusters(self, cluster_size, stream=None): return 132 // cluster_size
    def get_device_multiprocessor_count(self): return 132
    def get_l2_cache_size_in_bytes(self): return 50 * 2**20
cutlass.utils.HardwareInfo = Hardware
def T(*shape, dtype=torch.bfloat16):
    return torch.empty(*shape, dtype=dtype, device="cuda")
"""
FORWARD = """
from flash_attn.cute.interface import _flash_attn_fwd
with FakeTensorMode():
    _flash_attn_fwd(T(2, 512, {q}, {d}), T(2, 512, {kv}, {d}), T(2, 512, {kv}, {dv}), {options})
"""
VARLEN = """
from flash_attn.cute.interface import _flash_attn_fwd
with FakeTensorMode():
    starts = T(5, dtype=torch.int32)
    _flash_attn_fwd(T(1024, {q}, {d}), T(1024, {kv}, {d}), T(1024, {kv}, {d}), cu_seqlens_q=starts, cu_seqlens_k=starts,
                    max_seqlen_q=512, max_seqlen_k=512, {options})
"""
PAGED = """
from flash_attn.cute.interface import _flash_attn_fwd
with FakeTensorMode():
    pages = T(64, {page}, {kv}, {d})
    _flash_attn_fwd(T(2, 512, {q}, {d}), pages, T(64, {page}, {kv}, {d}), page_table=T(2, 8, dtype=torch.int32),
                    seqused_k=T(2, dtype=torch.int32), {options})
"""
BACKWARD = """
from flash_attn.cute.interface import _flash_attn_bwd
with FakeTensorMode():
    q, k, v = T(2, 512, {q}, {d}), T(2, 512, {kv}, {d}), T(2, 512, {kv}, {d})
    _flash_attn_bwd(q, k, v, T(2, 512, {q}, {d}), T(2, 512, {q}, {d}), T(2, {q}, 512, dtype=torch.float32), {options})
"""
GEMM = """
from quack.gemm_interface import {function}
with FakeTensorMode():
    A, B = T({m}, {k}, dtype=torch.{dtype}), T({n}, {k}, dtype=torch.{dtype}).T
    {function}(A, B, tuned=False{options})
"""
ROWS = """
import quack
with FakeTensorMode():
    x = T(4096, {n}); x.requires_grad_(False)
    {call}
"""


def _cases() -> dict[str, tuple[str, str]]:
    """Case name to architecture and program text."""
    cases: dict[str, tuple[str, str]] = {}

    def add(name: str, arch: str, text: str, **fields: object) -> None:
        defaults = {"q": 8, "kv": 8, "d": 128, "dv": fields.get("d", 128), "options": "", "page": 128}
        cases[f"{name}.{arch}"] = (arch, text.format(**{**defaults, **fields}))

    for arch in ("sm_90", "sm_100", "sm_120"):
        add("flash_fwd", arch, FORWARD)
        add("flash_fwd_causal", arch, FORWARD, options="causal=True")
        add("flash_fwd_gqa_d64", arch, FORWARD, q=16, kv=2, d=64, options="causal=True")
        add("flash_fwd_local", arch, FORWARD, options="window_size_left=128, window_size_right=0")
        add("flash_fwd_varlen", arch, VARLEN, options="causal=True")
        add("flash_bwd", arch, BACKWARD)
        add("flash_bwd_causal_d64", arch, BACKWARD, d=64, options="causal=True")
        add("flash_fwd_softcap", arch, FORWARD, options="softcap=15.0")
        add("gemm", arch, GEMM, function="gemm", m=4096, n=4096, k=4096, dtype="bfloat16")
        add("gemm_small", arch, GEMM, function="gemm", m=128, n=512, k=1024, dtype="float16")
        add(
            "gemm_act",
            arch,
            GEMM,
            function="gemm_act",
            m=4096,
            n=4096,
            k=4096,
            dtype="bfloat16",
            options=", activation='relu'",
        )
        add(
            "gemm_gated",
            arch,
            GEMM,
            function="gemm_act",
            m=4096,
            n=8192,
            k=4096,
            dtype="bfloat16",
            options=", activation='swiglu'",
        )
        add("rmsnorm", arch, ROWS, n=4096, call="quack.rmsnorm(x, T(4096))")
        add("softmax", arch, ROWS, n=16384, call="quack.softmax(x)")
        add("cross_entropy", arch, ROWS, n=65536, call="quack.cross_entropy(x, T(4096, dtype=torch.int64))")
    for arch in ("sm_90", "sm_100"):
        add("flash_fwd_paged", arch, PAGED)
        add("flash_fwd_paged_64", arch, PAGED, page=64)
        add("flash_fwd_d192_128", arch, FORWARD, d=192, dv=128, options="causal=True")
        add("flash_fwd_d256", arch, FORWARD, d=256)
        add("flash_fwd_split", arch, FORWARD, options="num_splits=4")
        add("flash_bwd_gqa", arch, BACKWARD, q=16, kv=2, options="causal=True")
        add("flash_bwd_deterministic", arch, BACKWARD, options="deterministic=True")
    return cases


def compile_case(python: Path, arch: str, program: str, dump: Path) -> list[Path]:
    """Runs one program with the DSL's dump folder set; returns the PTX files it left.

    Raises RuntimeError with the end of the output if there are none.
    """
    variables = {
        "CUTE_DSL_ARCH": arch + "a", "CUTE_DSL_KEEP": "ptx", "CUTE_DSL_KEEP_PTX": "1", "CUTE_DSL_DUMP_DIR": str(dump),
        "FLASH_ATTENTION_ARCH": arch, "QUACK_ARCH": arch, "FLASH_ATTENTION_NUM_SMS": MULTIPROCESSORS[arch],
        "QUACK_CACHE_ENABLED": "0", "FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED": "0",
    }  # fmt: skip
    command = ["nice", "-n", "10", str(python), "-c", PRELUDE + program]
    result = subprocess.run(
        command, cwd=dump, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=900
    )
    files = sorted(dump.rglob("*.ptx"))
    if not files:
        raise RuntimeError(result.stderr[-400:])
    return files


def main() -> int:
    """Command line."""
    out, tools = Path(sys.argv[1]), Path(sys.argv[2])
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    python = environment(PACKAGES, tools / "cute-dsl")
    farm = Farm(out, "cute-dsl-4.8.1")
    for name, (arch, program) in _cases().items():
        if word not in name or farm.has(f"{name}.0"):
            continue
        with tempfile.TemporaryDirectory() as dump:
            try:
                files = compile_case(python, arch, program, Path(dump))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                farm.fail(name, error)
                continue
            for index, file in enumerate(files):
                text = file.read_text(encoding="utf-8").rstrip("\0")
                farm.add(f"{name}.{index}", text, f"{', '.join(PACKAGES[1:])}: case {name}")
    return farm.close()


if __name__ == "__main__":
    sys.exit(main())
