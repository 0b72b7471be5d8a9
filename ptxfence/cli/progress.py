"""A progress bar on standard error."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def watched(items: Iterator[T], paths: Iterable[str]) -> Iterator[T]:
    """The items, with a bar that counts them against the number of files below the paths."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("checking", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    first = next(items, None)  # worker processes start here, before the bar's thread does
    if first is None:
        return
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("checking", total=sum(map(_files_below, paths)))
        progress.advance(bar)
        yield first
        for item in items:
            progress.advance(bar)
            yield item


def _files_below(path: str) -> int:
    if not os.path.isdir(path):
        return 1
    return sum(name.endswith((".ptx", ".ptx.gz")) for _, _, names in os.walk(path) for name in names)
