"""Many files: order, duplicates, processes that die, kept results, cold start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ptxfence.analysis.rules import NAMES, rule
from ptxfence.analysis.rules.example import kernel
from ptxfence.batch import examine as examination
from ptxfence.batch.cache import ResultCache
from ptxfence.batch.examine import Options, Task, examine, task_of
from ptxfence.batch.pool import Runner
from ptxfence.cli.main import main

TEXTS = [kernel(text) for name in NAMES for text in (rule(name).bad, rule(name).good)]
SLOW_MODULES = {"networkx", "rich", "cuda", "concurrent.futures.process", "multiprocessing", "tomllib", "difflib"}


def tasks(count: int) -> list[Task]:
    return [task_of(f"{number:03}.ptx", TEXTS[number % len(TEXTS)], Options()) for number in range(count)]


def bare(results: object) -> list[object]:
    """Without times."""
    return [
        replace(item, seconds=0.0, kernels=tuple(replace(k, seconds=0.0) for k in item.kernels))
        for item in results  # type: ignore[attr-defined]
    ]


def test_processes_change_nothing():
    alone, several = Runner(1), Runner(4)
    expected = bare(alone.run(tasks(40)))
    assert bare(several.run(tasks(40))) == expected
    unique = len(set(TEXTS))
    assert alone.duplicates == several.duplicates == 40 - min(40, unique)
    assert [item.path for item in expected] == [f"{number:03}.ptx" for number in range(40)]  # type: ignore[attr-defined]


def test_a_dead_worker_takes_one_file_with_it(monkeypatch: pytest.MonkeyPatch):
    real = examination._examine  # pyright: ignore[reportPrivateUsage]

    def deadly(task: Task) -> object:
        if task.path == "003.ptx":
            os.kill(os.getpid(), signal.SIGKILL)
        return real(task)

    monkeypatch.setattr(examination, "_examine", deadly)
    results = list(Runner(2).run(tasks(12)))
    assert [item.path for item in results if item.failed] == ["003.ptx"]
    assert results[3].errors[0].kind == "internal"
    assert "died" in results[3].errors[0].message
    assert all(item.kernels for item in results if not item.failed)


def test_kept_results_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with ResultCache(tmp_path) as cache:
        first = bare(Runner(1, cache).run(tasks(6)))

    def forbidden(task: Task) -> object:
        raise AssertionError(task.path)

    monkeypatch.setattr(examination, "_examine", forbidden)
    with ResultCache(tmp_path) as cache:
        assert bare(Runner(1, cache).run(tasks(6))) == first
        assert cache.get(replace(tasks(1)[0], options=Options(strict=True))) is None  # other options, other result
        moved = [replace(task, path="x/" + task.path) for task in tasks(6)]
        assert [item.path for item in Runner(1, cache).run(moved)] == [task.path for task in moved]


def test_another_version_uses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (task,) = tasks(1)
    with ResultCache(tmp_path) as cache:
        cache.put(task, examine(task))
        assert cache.get(task) is not None
    monkeypatch.setattr("ptxfence.batch.cache.package_stamp", lambda: "other")
    with ResultCache(tmp_path) as cache:
        assert cache.get(task) is None


def test_a_broken_cache_is_an_empty_one(tmp_path: Path):
    (task,) = tasks(1)
    (tmp_path / "results.sqlite").write_bytes(b"this is no database" * 100)
    with ResultCache(tmp_path) as cache:
        assert cache.get(task) is None
        cache.put(task, examine(task))
    (tmp_path / "file").write_text("")
    with ResultCache(tmp_path / "file" / "below") as cache:
        assert cache.get(task) is None


def test_failures_of_ours_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(task: Task) -> object:
        raise MemoryError

    (task,) = tasks(1)
    monkeypatch.setattr(examination, "_examine", fails)
    with ResultCache(tmp_path) as cache:
        assert next(Runner(1, cache).run([task])).errors[0].kind == "internal"
        assert cache.get(task) is None


def test_jobs_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(TEXTS):
        Path(f"{number:02}.ptx").write_text(text)
    outputs: list[object] = []
    for jobs in ("1", "8"):
        main(["check", ".", "--format", "json", "--jobs", jobs, "--no-cache"])
        document = json.loads(capsys.readouterr().out)
        document["summary"]["seconds"] = 0
        for file in document["files"]:
            for item in file["kernels"]:
                item["seconds"] = 0
        outputs.append(document)
    assert outputs[0] == outputs[1]


def test_shards_cover_everything_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(TEXTS):
        Path(f"{number:02}.ptx").write_text(text)
    seen: list[str] = []
    for shard in ("1/3", "2/3", "3/3"):
        main(["check", ".", "--format", "jsonl", "--no-cache", "--shard", shard])
        seen.extend(json.loads(line)["path"] for line in capsys.readouterr().out.splitlines())
    assert sorted(seen) == sorted(str(path) for path in Path().glob("*.ptx"))


def test_a_clean_check_imports_nothing_slow(tmp_path: Path):
    """The time itself depends on the machine; what is imported does not."""
    (tmp_path / "good.ptx").write_text(kernel(rule("PF101").good))
    code = (
        "import sys\nfrom ptxfence.cli.main import main\n"
        "assert main(['check', 'good.ptx', '--no-cache']) == 0\nprint('MODULES', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    modules = set(done.stdout.split("MODULES", 1)[1].split())
    assert not modules & SLOW_MODULES
    assert not {name for name in modules if ".rules.pf" in name}


def test_the_progress_bar_lets_everything_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from ptxfence.cli.progress import watched

    (tmp_path / "a.ptx").write_text("")
    assert list(watched(iter(range(5)), [str(tmp_path), "b.ptx"])) == [0, 1, 2, 3, 4]
    assert list(watched(iter(()), [])) == []
    assert capsys.readouterr().out == ""
