"""The LALR tables of ptx.lark: built once, kept beside the grammar, because building takes 0.2 s and loading 0.02 s.

`python -m ptxfence.grammar.tables` writes them anew after a change of ptx.lark.
"""

from __future__ import annotations

import hashlib
import io
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import lark

_STARTS = ["operands", "declaration", "parameter", "header", "prototype", "names", "strings"]
_LARK: Any = lark.Lark  # its types are partly unknown
_FOLDER = resources.files("ptxfence.grammar")


def _grammar() -> str:
    return (_FOLDER / "ptx.lark").read_text(encoding="utf-8")


def _key(grammar: str) -> bytes:
    """Tables hold only for the grammar and the lark that made them."""
    return hashlib.sha256(f"{lark.__version__}\n{grammar}".encode()).digest()


def build() -> Any:
    """The parser, from the grammar's text."""
    return _LARK(_grammar(), parser="lalr", lexer="basic", start=_STARTS)


@cache
def parser() -> Any:
    """The parser, from the kept tables where they are those of this grammar and this lark."""
    stored = _FOLDER / "ptx.tables"
    data = stored.read_bytes() if stored.is_file() else b""
    key = _key(_grammar())
    if data[: len(key)] != key:
        return build()
    return _LARK.load(io.BytesIO(data[len(key) :]))


def write(path: Path) -> None:
    """Writes the tables to `path`."""
    tables = io.BytesIO()
    build().save(tables)
    path.write_bytes(_key(_grammar()) + tables.getvalue())


if __name__ == "__main__":
    write(Path(__file__).with_name("ptx.tables"))
