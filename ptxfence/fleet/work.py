"""What a worker does with a batch: read, check what it has not seen yet, write three Parquet parts.

A batch may be started twice (its first worker died): both write the same names and the same content.
"""

from __future__ import annotations

import gzip
import time
import zlib
from collections import OrderedDict
from typing import Any

from ptxfence.batch.examine import Options, Task, adopt, digest, examine
from ptxfence.fleet.batches import Batch
from ptxfence.fleet.libraries import store_at
from ptxfence.triage.result import FileResult, failure
from ptxfence.triage.settle import settle
from ptxfence.triage.summary import Summary, summarise

_REMEMBERED = 4096  # results a worker keeps for files with the same bytes


_known: OrderedDict[tuple[str, Options], FileResult] = OrderedDict()


def run(batch: Batch) -> Summary:
    """Check a batch and write its parts; `seconds` is the time of this worker."""
    from ptxfence.fleet.tables import TABLES, rows_of, write

    results: list[FileResult] = []
    begin = time.perf_counter()
    duplicates = 0
    for path in batch.paths:
        result, seen = _one(path, batch)
        duplicates += seen
        results.append(settle(result, batch.settings))
    store, root = store_at(batch.output)
    rows = rows_of(results)
    for name in TABLES:
        store.makedirs(f"{root}/{name}", exist_ok=True)
        write(store, f"{root}/{name}/part-{batch.name}.parquet", name, rows[name])
    return summarise(results, time.perf_counter() - begin, duplicates)


def done(batch: Batch) -> bool:
    """Whether an earlier run has finished the batch."""
    store, root = store_at(batch.output)
    return bool(store.exists(f"{root}/files/part-{batch.name}.parquet"))


def _one(path: str, batch: Batch) -> tuple[FileResult, bool]:
    """The result for a file, and whether its bytes were seen before."""
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
        return adopt(known, task), True
    result = examine(task)
    _known[key] = result
    if len(_known) > _REMEMBERED:
        _known.popitem(last=False)
    return result, False


def _read(path: str) -> bytes:
    store, name = store_at(path)
    data: Any = store.cat_file(name)
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
