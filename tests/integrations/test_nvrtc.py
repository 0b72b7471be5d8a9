"""NVRTC's PTX through the loader, with the registry's NVRTC and the driver made up for tests."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.helpers import REPOSITORY, environment, run

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import recipes
from cuda.bindings import nvrtc
from ptxfence.integrations import loader

def call(result):
    assert not int(result[0]), result[0]
    return result[1] if len(result) > 1 else None

program = call(nvrtc.nvrtcCreateProgram(recipes.source().encode(), b"k.cu", 0, [], []))
options = [b"--gpu-architecture=compute_90a", b"--std=c++17"]
call(nvrtc.nvrtcCompileProgram(program, len(options), options))
ptx = b" " * call(nvrtc.nvrtcGetPTXSize(program))
call(nvrtc.nvrtcGetPTX(program, ptx))
print(ptx.count(b"fence.proxy"), loader.patched_image(ptx).count(b"fence.proxy.async"))
"""


@pytest.mark.wheels
@pytest.mark.skipif(importlib.util.find_spec("cuda.bindings") is None, reason="cuda.bindings is not installed")
def test_nvrtc_output_is_patched():
    chosen = os.environ.get("PTXFENCE_TOOLS")
    folder = (Path(chosen) if chosen else Path.home() / ".cache" / "ptxfence-tools") / "nvrtc"
    if not folder.is_dir():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder)]
        if subprocess.run([*command, "nvidia-cuda-nvrtc==13.0.88"], check=False).returncode != 0:
            pytest.skip("nvidia-cuda-nvrtc cannot be installed")
    env = environment(LD_LIBRARY_PATH=str(folder / "nvidia" / "cu13" / "lib"))
    result = run([sys.executable, "-c", PROGRAM, str(REPOSITORY / "bench" / "hardware")], env)
    assert (result.returncode, result.stdout) == (0, "0 1\n"), result.stderr
