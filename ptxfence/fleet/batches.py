"""How a store is cut into batches. A batch has a name that depends on its files and options only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from ptxfence.config import Settings
from ptxfence.errors import InputError
from ptxfence.fleet.libraries import store_at

SUFFIXES = (".ptx", ".ptx.gz")


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that one worker checks in one go. `paths` are URLs that fsspec understands, `output` is one of a folder."""

    name: str
    paths: tuple[str, ...]
    output: str
    settings: Settings


def find(urls: Iterable[str]) -> Iterator[str]:
    """The PTX files below the URLs or paths, sorted within each. Raises InputError where a store cannot be listed."""
    for url in urls:
        try:
            store, root = store_at(url)
            names: list[str] = [root] if store.isfile(root) else store.find(root)
        except (OSError, ValueError, ImportError) as error:
            raise InputError(f"{url}: {error}") from None
        yield from (store.unstrip_protocol(name) for name in sorted(names) if name.endswith(SUFFIXES))


def cut(paths: Iterable[str], size: int, output: str, settings: Settings, stamp: str) -> Iterator[Batch]:
    """Batches of `size` files. `stamp` names the version of the checker: its results do not mix with another's."""
    remaining = iter(paths)
    number = 0
    while chosen := tuple(islice(remaining, size)):
        key = sha256("\n".join((stamp, repr(settings), *chosen)).encode()).hexdigest()[:12]
        yield Batch(f"{number:07}-{key}", chosen, output, settings)
        number += 1
