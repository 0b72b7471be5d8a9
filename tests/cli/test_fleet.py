"""Fleet runs on a small Dask cluster; `bench/fleet.py` does it with 10^5 files."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ptxfence.analysis.rules import rule
from ptxfence.analysis.rules.example import kernel
from ptxfence.cli.fleet import run as fleet
from ptxfence.cli.main import main
from ptxfence.config import Settings
from ptxfence.errors import PtxFenceError
from ptxfence.fleet import work
from ptxfence.fleet.batches import Batch, cut, find
from ptxfence.fleet.drive import drive, write_summary
from ptxfence.triage.summary import Summary

distributed = pytest.importorskip("distributed")
dataset = pytest.importorskip("pyarrow.dataset")

# The libraries warn of each other's plans; that is not ours to fail on.
pytestmark = pytest.mark.filterwarnings("default")

BAD, GOOD = kernel(rule("PF101").bad), kernel(rule("PF101").good)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    for number in range(60):
        path = folder / f"{number % 7}" / f"{number:03}.ptx"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(BAD if number % 3 == 0 else GOOD)
    (folder / "note.txt").write_text("no PTX")
    (folder / "broken.ptx").write_text("junk")
    return folder


def batches(store: Path, output: Path, settings: Settings | None = None, size: int = 4) -> list[Batch]:
    return list(cut(find([str(store)]), size, str(output), settings or Settings(), "v1"))


def table(output: Path, name: str) -> list[dict[str, Any]]:
    return dataset.dataset(str(output / name)).to_table().to_pylist()


def test_batches_hold_everything_once(store: Path, tmp_path: Path):
    made = batches(store, tmp_path / "out")
    names = [path for batch in made for path in batch.paths]
    assert len(names) == len(set(names)) == 61
    assert names == sorted(names)
    assert len({batch.name for batch in made}) == len(made) == 16
    again = {batch.name for batch in batches(store, tmp_path / "out", Settings(strict=True))}
    assert not again & {batch.name for batch in made}


def test_a_batch_writes_its_tables(store: Path, tmp_path: Path):
    output = tmp_path / "out"
    work._known.clear()  # pyright: ignore[reportPrivateUsage]
    total = sum((work.run(batch) for batch in batches(store, output)), Summary())
    assert replace(total, seconds=0) == Summary(files=61, kernels=60, errors=20, failed_files=1, duplicates=58)
    assert Counter(row["error_kind"] for row in table(output, "files")) == {None: 60, "syntax": 1}
    assert Counter(row["verdict"] for row in table(output, "kernels")) == {"hazard": 20, "proven": 40}
    assert {row["rule"] for row in table(output, "findings")} == {"PF101"}
    assert not list(output.rglob("*.tmp"))


def test_parts_of_another_list_go_and_missing_ones_are_noticed(store: Path, tmp_path: Path):
    output = tmp_path / "out"
    first = batches(store, output)
    for batch in first:
        work.run(batch)
    (store / "0" / "000.ptx").unlink()
    second = batches(store, output)
    with pytest.raises(PtxFenceError, match="missing"):
        write_summary(str(output), second, Summary())
    for batch in second:
        if not work.done(batch):
            work.run(batch)
    assert write_summary(str(output), second, Summary())["files"] == 60
    assert len(table(output, "files")) == 60


def test_a_killed_worker_loses_and_doubles_nothing(store: Path, tmp_path: Path):
    output = tmp_path / "out"
    made = batches(store, output)
    killed: list[int] = []
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:

        def midway(total: Summary) -> None:
            if total.files >= 12 and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        drive(client, made, midway)
        summary = write_summary(str(output), made, Summary())
        assert drive(client, made) == Summary()  # everything is done
    assert killed
    assert (summary["files"], summary["kernels"]) == (61, 60)
    paths = [row["path"] for row in table(output, "files")]
    assert len(paths) == len(set(paths)) == 61
    assert len(table(output, "findings")) == 20


def test_command_on_an_object_store(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """fsspec's store in memory, with workers that are threads of this process."""
    import fsspec

    memory: Any = fsspec.filesystem("memory")
    memory.pipe({"/cache/a.ptx": BAD.encode(), "/cache/deep/b.ptx": GOOD.encode()})
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
        address = client.scheduler.address
        assert main(["fleet", "memory://cache", "-o", "memory://out", "--scheduler", address]) == 1
        assert "2 files, 2 kernels" in capsys.readouterr().out
        words = ["fleet", "memory://cache", "-o", "memory://out", "--scheduler", address, "--fail-on", "never"]
        assert main(words) == 0
        assert main(["fleet", "memory://nothing", "-o", "memory://out", "--scheduler", address]) == 2
    assert json.loads(memory.cat("/out/summary.json"))["rules"] == {"PF101": 1}


def test_usage(capsys: pytest.CaptureFixture[str]):
    assert callable(fleet)
    assert main(["fleet", "x", "-o", "y", "--scheduler", "tcp://localhost:1", "--workers", "2"]) == 2
    assert main(["fleet", "x", "-o", "y", "--batch", "0"]) == 2
    assert "positive" in capsys.readouterr().err
