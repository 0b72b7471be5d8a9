"""What watched processes write down, merged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptxfence.integrations import journal
from ptxfence.integrations.outcome import Notice

ERROR = Notice("PF101", "missing-fence-raw", "error", "k", "m", 3, "x", repaired=True)
WARNING = Notice("PF104", "cp-async-unfenced", "warning", "k", "m", 3, "x")


def test_entries_come_back_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path))
    entry = journal.Entry("triton", "k\udce9", "fix", "00", ("k",), (), (ERROR,), 2, 0.5)
    journal.write(entry)
    journal.write(entry)
    first, second = journal.read(tmp_path)
    assert first == second
    assert first.pid == os.getpid()
    assert (first.notices, first.kernels, first.edits) == ((ERROR,), ("k",), 2)


def test_a_line_cut_off_by_a_kill_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path))
    journal.write(journal.Entry("triton", "k", "fix", "00"))
    (file,) = tmp_path.iterdir()
    with file.open("ab") as stream:
        stream.write(file.read_bytes()[:40])
    assert len(journal.read(tmp_path)) == 1


def test_totals_count_each_text_once_over_processes():
    first = journal.Entry("triton", "k", "fix", "aa", ("k",), ("k",), (ERROR, WARNING), 1, 0.25, pid=1)
    cached = journal.Entry("triton", "k", "fix", "aa", ("k",), ("k",), (ERROR, WARNING), 1, 0.0, cached=True, pid=2)
    other = journal.Entry("ptxas", "x.ptx", "fix", "bb", ("f", "g"), seconds=0.5, pid=2)
    failed = journal.Entry("ptxas", "y.ptx", "fix", "cc", failure="it broke", pid=3)
    assert journal.totals([cached, first, other, failed]) == journal.Totals(
        processes=3, kernels=4, cached=0, patched=1, fences=1, errors=1, warnings=1, repaired=1, undecided=1,
        failures=1, seconds=0.75,
    )  # fmt: skip
