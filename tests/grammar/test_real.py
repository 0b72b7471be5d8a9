"""PTX of real compilers: the committed corpus daily; `bench/front_end.py` runs everything that `corpus/farm` builds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ptxfence.grammar import parse, validate
from ptxfence.grammar.source import decode, encode, read_sources

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
FILES = sorted(CORPUS.rglob("*.ptx"))


def test_there_are_some():
    assert len(FILES) > 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_parses_and_keeps_its_bytes(path: Path):
    data = path.read_bytes()
    file = parse(decode(data), path.name)
    assert encode(file.text) == data
    assert validate(file) == ()
    assert sum(len(function.instructions) for module in file.modules for function in module.functions) > 0
    for module in file.modules:
        for function in module.functions:
            for instruction in function.instructions:
                assert isinstance(instruction.operands, tuple)
                assert instruction.text.endswith(";")


def test_folder_finds_them_all():
    assert len(list(read_sources(CORPUS))) == len(FILES)


@pytest.mark.wheels
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("option", ["-O3", "-lineinfo", "-G"])
def test_libcuxx(option: str, tmp_path: Path):
    """libcu++ `cuda::ptx` through nvcc."""
    output = tmp_path / "k.ptx"
    source = Path(__file__).with_name("data") / "libcuxx.cu"
    command = ["nvcc", "-std=c++17", "-arch=sm_90a", "-ptx", option, str(source), "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    assert validate(parse(decode(output.read_bytes()))) == ()
