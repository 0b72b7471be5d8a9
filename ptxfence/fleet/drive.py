"""Hands batches to a Dask cluster and sees to it that each is done once, whatever happens to the workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

from ptxfence.errors import PtxFenceError
from ptxfence.fleet.batches import Batch
from ptxfence.fleet.libraries import library, store_at
from ptxfence.fleet.tables import TABLES
from ptxfence.fleet.work import done, run
from ptxfence.triage.summary import Summary

_IN_FLIGHT = 4  # batches for each thread of the cluster
_RETRIES = 5
_LOST = ("cancelled", "lost")


def drive(client: Any, batches: Iterable[Batch], progress: Callable[[Summary], None] | None = None) -> Summary:
    """Run the batches that are not done yet. Raises PtxFenceError where one keeps failing.

    `client` is a `distributed.Client`. Dask restarts what a dead worker leaves behind, except a result that it had not
    handed over yet: such a batch is submitted again. `progress` gets the sum so far.
    """
    waiting: Iterator[Batch] = (batch for batch in batches if not done(batch))
    total = Summary()
    threads = max(sum(client.nthreads().values()), 1)
    running: dict[str, tuple[Batch, int]] = {}

    def submit(batch: Batch, again: int = 0) -> Any:
        key = f"ptxfence-{batch.name}-{again}"
        running[key] = batch, again
        return client.submit(run, batch, key=key, retries=_RETRIES, pure=False)

    completed = library("distributed").as_completed([submit(batch) for batch in islice(waiting, threads * _IN_FLIGHT)])
    for future in completed:
        batch, again = running.pop(future.key)
        if future.status in _LOST and again < _RETRIES:
            completed.add(submit(batch, again + 1))
            continue
        if future.status != "finished":
            raise PtxFenceError(f"batch {batch.name} failed {_RETRIES + 1} times: {_cause(future)}")
        total += future.result()
        future.release()
        for following in islice(waiting, 1):
            completed.add(submit(following))
        if progress is not None:
            progress(total)
    return total


def _cause(future: Any) -> object:
    return future.exception() if future.status == "error" else f"its result was {future.status}"


def write_summary(output: str, batches: Iterable[Batch], found: Summary) -> dict[str, Any]:
    """Sum up the parts of the batches in `summary.json`; parts of anything else (an older list of files) go.

    Raises PtxFenceError if a part is missing.
    """
    store, root = store_at(output)
    wanted = {f"part-{batch.name}.parquet" for batch in batches}
    for name in TABLES:
        parts: dict[str, str] = {path.rsplit("/", 1)[-1]: path for path in store.glob(f"{root}/{name}/part-*.parquet")}
        if missing := wanted - parts.keys():
            raise PtxFenceError(f"{output}: {len(missing)} of {len(wanted)} parts of {name} are missing")
        for stale in parts.keys() - wanted:
            store.rm(parts[stale])
    read, compute = library("pyarrow.dataset").dataset, library("pyarrow.compute")
    tables: dict[str, Any] = {
        name: read(f"{root}/{name}", filesystem=store, format="parquet") for name in ("files", "kernels", "findings")
    }

    def counted(name: str, column: str) -> dict[str, int]:
        pairs = compute.value_counts(tables[name].to_table(columns=[column])[column])
        return {str(pair["values"]): int(pair["counts"]) for pair in pairs.to_pylist()}

    summary: dict[str, Any] = {
        "files": tables["files"].count_rows(),
        "kernels": tables["kernels"].count_rows(),
        "verdicts": counted("kernels", "verdict"),
        "rules": counted("findings", "rule"),
        "errors_by_kind": {kind: n for kind, n in counted("files", "error_kind").items() if kind != "None"},
        "this_run": asdict(found),
    }
    with store.open(f"{root}/summary.json", "w") as stream:
        stream.write(json.dumps(summary, indent=1) + "\n")
    return summary
