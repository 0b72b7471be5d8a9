"""The guard between a program and our own mistakes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxfence.errors import ConfigError, HazardError
from ptxfence.integrations import journal
from ptxfence.integrations.outcome import Mode, Notice, Outcome, cache_key, examine, mode_of, settings_at
from ptxfence.integrations.watch import Watch
from tests.integrations.helpers import BUGGY, CLEAN, CORPUS

Entries = Callable[[], tuple[journal.Entry, ...]]
NOTICE = Notice("PF101", "missing-fence-raw", "error", "k", "no fence", 7, "cp.async.bulk", "k.py:3")


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entries:
    monkeypatch.setenv(journal.VARIABLE, str(tmp_path))
    return lambda: journal.read(tmp_path)


def _raise(error: BaseException):
    def examiner(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
        raise error

    return examiner


def _hang(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
    while True:
        time.sleep(0.005)


def _recurse(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
    return _recurse(text, name, mode, seconds)


def _empty(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
    return Outcome("")


def _allocate(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
    return Outcome(str(bytearray(1 << 60)))


FAULTS = {
    "crash": (_raise(RuntimeError("it broke")), "RuntimeError: it broke"),
    "memory": (_raise(MemoryError()), "MemoryError"),
    "allocation": (_allocate, "MemoryError"),
    "exit": (_raise(SystemExit(3)), "SystemExit: 3"),
    "interrupt": (_raise(KeyboardInterrupt()), "KeyboardInterrupt"),
    "hang": (_hang, "not done within 0.2 s"),
    "recursion": (_recurse, "RecursionError"),
    "empty": (_empty, "the patched text is empty"),
}


def _limit(fault: str) -> float:
    """Seconds: only what hangs has to run out of them."""
    return 0.2 if fault == "hang" else 60.0


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("mode", [Mode.CHECK, Mode.FIX])
def test_a_fault_of_ours_leaves_the_text_alone(fault: str, mode: Mode, entries: Entries):
    examiner, reason = FAULTS[fault]
    watch = Watch(mode, "triton", timeout=_limit(fault), examiner=examiner)
    assert watch.text("a text", "kernel") == "a text"
    (entry,) = entries()
    assert entry.failure.startswith(reason)
    assert (entry.name, entry.mode, entry.edits) == ("kernel", mode, 0)


@pytest.mark.parametrize("fault", FAULTS)
def test_error_mode_lets_nothing_unexamined_pass(fault: str):
    examiner, reason = FAULTS[fault]
    with pytest.raises(HazardError, match=f"kernel was not examined: {reason}"):
        Watch(Mode.ERROR, "triton", timeout=_limit(fault), examiner=examiner).text("a text", "kernel")


def test_a_hanging_examination_is_stopped():
    Watch(Mode.FIX, "triton", timeout=0.1, examiner=_hang).text("a text", "kernel")
    deadline = time.monotonic() + 5
    while any(thread.name == "ptxfence" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_findings_pass_in_check_mode_and_stop_error_mode(entries: Entries):
    def examiner(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
        return Outcome(text, 0, ("k",), (), (NOTICE,), (NOTICE,))

    assert Watch(Mode.CHECK, "triton", examiner=examiner).text("a text", "kernel") == "a text"
    with pytest.raises(HazardError, match=r"k\.py:3: error: PF101 missing-fence-raw in k: no fence"):
        Watch(Mode.ERROR, "triton", examiner=examiner).text("a text", "kernel")
    assert [entry.notices for entry in entries()] == [(NOTICE,), (NOTICE,)]


def test_a_text_is_examined_once(entries: Entries):
    calls: list[str] = []

    def examiner(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
        calls.append(text)
        return Outcome(text + "!", 1, ("k",))

    watch = Watch(Mode.FIX, "triton", examiner=examiner)
    assert [watch.text(text, "k") for text in ("a", "b", "a")] == ["a!", "b!", "a!"]
    assert calls == ["a", "b"]
    assert journal.totals(entries()).fences == 2


def test_a_journal_that_cannot_be_written_hurts_nobody(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(journal.VARIABLE, "/proc/nowhere")
    watch = Watch(Mode.FIX, "triton", examiner=lambda text, *_: Outcome(text + "!", 1))
    assert watch.text("a", "k") == "a!"


def test_without_a_journal_the_user_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.delenv(journal.VARIABLE, raising=False)
    Watch(Mode.CHECK, "triton", examiner=lambda text, *_: Outcome(text, 0, ("k",), (), (NOTICE,))).text("a", "k")
    Watch(Mode.CHECK, "triton", examiner=_raise(ValueError("no"))).text("a", "k")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "ptxfence: k.py:3: error: PF101 missing-fence-raw in k: no fence",
        "ptxfence: k left as it is: ValueError: no",
    ]


def test_many_threads_share_a_watch():
    watch = Watch(Mode.FIX, "triton", examiner=lambda text, *_: Outcome(text + "!", 1))
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: results.extend(watch.text(str(m), "k") for m in range(n, n + 400)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 * 400
    assert all(result.endswith("!") for result in results)


def test_notes_survive_the_way_through_a_cache(entries: Entries):
    found = Outcome("a!", 2, ("k",), ("k",), (NOTICE,), (NOTICE,))
    watch = Watch(Mode.FIX, "triton", examiner=lambda *_: found)
    watch.text("a", "k")
    Watch(Mode.FIX, "triton").cached("k", watch.note("a"))
    first, second = entries()
    assert (second.sha256, second.notices, second.edits, second.undecided) == (
        first.sha256, first.notices, first.edits, first.undecided,
    )  # fmt: skip
    assert second.cached
    assert journal.totals(entries()).kernels == 1


def test_the_real_analysis_patches_and_names_the_python_line():
    found = examine(BUGGY.read_text(), "store", Mode.FIX, 20)
    assert found.edits == 1
    assert "fence.proxy.async" in found.text
    (notice,) = found.failing
    assert notice.repaired
    file, _, line = notice.source.partition(":")
    assert "tma_store(" in (CORPUS / file).read_text().splitlines()[int(line) - 1]
    assert not examine(CLEAN.read_text(), "store", Mode.FIX, 20).edits


def test_modes_and_settings(tmp_path: Path):
    assert mode_of(" Fix ") is Mode.FIX
    with pytest.raises(ConfigError, match="unknown mode 'repair'"):
        mode_of("repair")
    with pytest.raises(ConfigError):
        settings_at(str(tmp_path / "missing.toml"))


def test_the_cache_key_depends_on_mode_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    settings = tmp_path / "ptxfence.toml"
    settings.write_text('fix-level = "warning"\n')
    keys = {cache_key(Mode.FIX), cache_key(Mode.CHECK)}
    monkeypatch.setenv("PTXFENCE_SETTINGS", str(settings))
    keys.add(cache_key(Mode.FIX))
    assert len(keys) == 3


def test_a_bad_time_limit_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PTXFENCE_TIMEOUT", "soon")
    with pytest.raises(ConfigError, match="PTXFENCE_TIMEOUT"):
        Watch(Mode.FIX, "triton")
