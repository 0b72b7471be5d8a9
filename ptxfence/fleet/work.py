"""What a worker does with a batch: read, check what it has not seen yet, write three Parquet parts.

A batch may be started twice (its first worker died): both write the same names and the same content.
"""

from __future__ import annotations

import gzip
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from ptxfence.analysis.report import Severity
from ptxfence.batch.examine import Options, Task, adopt, digest, examine
from ptxfence.fleet.batches import Batch
from ptxfence.fleet.libraries import store_at
from ptxfence.triage.result import FileResult, failure
from ptxfence.triage.settle import settle

_REMEMBERED = 4096  # results a worker keeps for files with the same bytes


@dataclass(frozen=True, slots=True)
class Totals:
    """What was found in a batch, or in all of them. `checked` counts texts that had to be analysed."""

    files: int = 0
    kernels: int = 0
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    undecided: int = 0
    failed_files: int = 0
    checked: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


_known: OrderedDict[tuple[str, Options], FileResult] = OrderedDict()


def run(batch: Batch) -> Totals:
    """Check a batch and write its parts."""
    from ptxfence.fleet.tables import TABLES, rows_of, write

    results: list[FileResult] = []
    checked = 0
    for path in batch.paths:
        result, fresh = _one(path, batch)
        checked += fresh
        results.append(settle(result, batch.settings))
    store, root = store_at(batch.output)
    rows = rows_of(results)
    for name in TABLES:
        store.makedirs(f"{root}/{name}", exist_ok=True)
        write(store, f"{root}/{name}/part-{batch.name}.parquet", name, rows[name])
    return _totals(results, checked)


def done(batch: Batch) -> bool:
    """Whether an earlier run has finished the batch."""
    store, root = store_at(batch.output)
    return bool(store.exists(f"{root}/files/part-{batch.name}.parquet"))


def _one(path: str, batch: Batch) -> tuple[FileResult, bool]:
    """The result for a file, and whether it had to be analysed."""
    from ptxfence.grammar.source import decode

    try:
        text = decode(_read(path))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        return failure(path, "", "io", f"{path}: {error}"), False
    settings = batch.settings
    options = Options(settings.kernel, settings.timeout, settings.strict)
    task = Task(path, text, digest(text), options)
    key = (task.sha256, options)
    known = _known.get(key)
    if known is not None:
        _known.move_to_end(key)
        return adopt(known, task), False
    result = examine(task)
    _known[key] = result
    if len(_known) > _REMEMBERED:
        _known.popitem(last=False)
    return result, True


def _read(path: str) -> bytes:
    store, name = store_at(path)
    data: Any = store.cat_file(name)
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _totals(results: list[FileResult], checked: int) -> Totals:
    active = [finding.severity for result in results for finding in result.active]
    return Totals(
        files=len(results),
        kernels=sum(len(result.kernels) for result in results),
        errors=active.count(Severity.ERROR),
        warnings=active.count(Severity.WARNING),
        notes=active.count(Severity.NOTE),
        undecided=sum(result.undecided for result in results),
        failed_files=sum(result.failed for result in results),
        checked=checked,
    )
