"""Where PTX comes from."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxfence.grammar import containers, parse, validate
from ptxfence.grammar.source import decode, encode, read_sources

PTX = ".version 8.7\n.target sm_90a\n.entry k() { ret; }\n"


def test_file(tmp_path: Path):
    path = tmp_path / "k.ptx"
    path.write_text(PTX)
    (source,) = read_sources(path)
    assert (source.path, source.text, source.error, source.notes, dict(source.metadata)) == (
        str(path),
        PTX,
        None,
        (),
        {},
    )


def test_standard_input(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PTX.encode())))
    (source,) = read_sources("-")
    assert (source.path, source.text) == ("-", PTX)


def test_folder_is_searched_and_counts_what_it_skips(tmp_path: Path):
    for name in ("b/k.ptx", "a/k.ptx", "a/deep/er/k.ptx"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PTX)
    (tmp_path / "z.ptx.gz").write_bytes(gzip.compress(PTX.encode(), mtime=0))
    (tmp_path / "notes.txt").write_text("no")
    (tmp_path / "empty.ptx").write_text("")
    (tmp_path / "binary.ptx").write_bytes(b"\0\1\2")
    sources = read_sources(tmp_path)
    found = [(str(Path(source.path).relative_to(tmp_path)), source.text) for source in sources]
    assert found == [(name, PTX) for name in ("z.ptx.gz", "a/k.ptx", "a/deep/er/k.ptx", "b/k.ptx")]
    assert sources.skipped == 3


def test_triton_cache_and_dump(tmp_path: Path):
    cache, dump = tmp_path / "cache", tmp_path / "dump"
    for folder in (cache, dump):
        folder.mkdir()
        (folder / "k.ptx").write_text(PTX)
        (folder / "k.ttgir").write_text("module {}")
    (cache / "k.json").write_text(json.dumps({"name": "k", "num_ctas": 2, "target": {"arch": 90}}))
    (cached,) = read_sources(cache)
    (dumped,) = read_sources(dump)
    assert (cached.metadata["num_ctas"], cached.notes) == (2, ())
    assert (dict(dumped.metadata), len(dumped.notes)) == ({}, 1)
    assert "dump folder" in dumped.notes[0]
    (cache / "k.json").write_text("{")
    (broken,) = read_sources(cache)
    assert broken.notes == ("k.json is no JSON",)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\1\2\3" * 100, "binary data"),
        (PTX.encode("utf-16"), "UTF-16"),
        (gzip.compress(PTX.encode(), mtime=0)[:-12], "ended before"),
    ],
)
def test_unreadable(tmp_path: Path, data: bytes, message: str):
    path = tmp_path / "k.ptx"
    path.write_bytes(data)
    (source,) = read_sources(path)
    assert message in str(source.error)
    assert source.error is not None
    assert source.error.kind == "io"


def test_missing_file(tmp_path: Path):
    (source,) = read_sources(tmp_path / "none.ptx")
    assert "No such file" in str(source.error)


def test_any_bytes_survive():
    data = bytes(range(256)) + "\ufeff é\r\n".encode()
    assert encode(decode(data)) == data
    text = decode(PTX.replace("ret", "// \xe9\n ret").encode("latin-1"))
    assert validate(parse(text)) == ()


def test_binary_without_cuobjdump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "k.cubin"
    path.write_bytes(b"\x7fELF" + bytes(100))
    monkeypatch.setattr(containers, "cuobjdump", lambda: None)
    (source,) = read_sources(path)
    assert "needs cuobjdump" in str(source.error)


@pytest.mark.skipif(containers.cuobjdump() is None or shutil.which("nvcc") is None, reason="no cuobjdump or nvcc")
def test_fat_binary(tmp_path: Path):
    kernel = tmp_path / "k.cu"
    kernel.write_text("__global__ void k(float *a) { a[threadIdx.x] *= 2; }\n")
    fat = tmp_path / "k.fatbin"
    command = ["nvcc", "-fatbin", "-arch=sm_90", str(kernel), "-o", str(fat)]
    subprocess.run(command, check=True, capture_output=True)
    (source,) = read_sources(fat)
    assert validate(parse(source.text)) == ()
    assert parse(source.text).modules[0].functions[0].name == "_Z1kPf"
