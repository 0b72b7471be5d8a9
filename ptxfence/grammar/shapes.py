"""Level 2: operand text -> operands, through lark once per distinct shape.

The shape of `[%rd1+16], {%r1, 7}` is `[N+I],{N,I}`; its leaves are `%rd1 16 %r1 7`. A few hundred shapes make
up a file, so lark (1 to 3 MB/s) runs rarely and a shape's template is filled in with leaves instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from ptxfence.grammar.lexical import COMMENT, NAME, NUMBER
from ptxfence.grammar.model import Operand

if TYPE_CHECKING:
    from ptxfence.grammar.templates import Template

Resolve = Callable[[str], Operand]

_TOKEN = re.compile(
    rf"(?P<gap>\s++|{COMMENT})|(?P<F>{NUMBER})|(?P<I>0[xX][0-9a-fA-F]++U?|0[bB][01]++U?|\d++U?)|(?P<N>{NAME})"
    r"|(?P<dotted>\.[A-Za-z_][\w:]*+)|(?P<other><<|>>|<=|>=|==|!=|&&|\|\||.)",
    re.DOTALL,
)
_WORD = re.compile(r"[\w$]")
_DEPTH = 64  # deeper nesting of brackets than any compiler prints; keeps the recursion of a template bounded
_LENGTH = 100_000  # longer operand text than any compiler prints (names of 2,000 characters occur)


class ShapeError(Exception):
    """Operand text that is no PTX: `offset` into it and what is wrong. Never leaves the package."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def abstract(text: str) -> tuple[str, tuple[str, ...]]:
    """Shape and leaves of operand text."""
    shape: list[str] = []
    leaves: list[str] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "gap":
            continue
        word = match.group()
        if kind == "N" and word == "_":
            shape.append("_")
        elif kind == "dotted" or kind == "other":
            shape.append(word)
        else:
            shape.append(kind or "")
            leaves.append(word)
    return "".join(shape), tuple(leaves)


def operands_of(text: str, resolve: Resolve) -> tuple[Operand, ...]:
    """The operands in `text`; `resolve` turns a name into a register or symbol. Raises ShapeError."""
    if len(text) > _LENGTH:
        raise ShapeError("operands are too long", 0)
    shape, leaves = abstract(text)
    if not shape:
        return ()
    template = _template(shape)
    if isinstance(template, _Refusal):
        raise ShapeError(template.message, _offset(text, template.token))
    return template(leaves, resolve)


def refusal(text: str) -> ShapeError | None:
    """Why `text` is no operand list; None if it is one."""
    if len(text) > _LENGTH:
        return ShapeError("operands are too long", 0)
    shape, _ = abstract(text)
    template = _template(shape) if shape else None
    if isinstance(template, _Refusal):
        return ShapeError(template.message, _offset(text, template.token))
    return None


class _Refusal:
    """Why a shape does not parse: message and the index of the offending token of the shape."""

    def __init__(self, message: str, token: int) -> None:
        self.message = message
        self.token = token


@cache
def _template(shape: str) -> Template | _Refusal:
    """The filled-in form of a shape, kept for the life of the process (a few thousand shapes at most)."""
    from ptxfence.grammar import templates

    depth = deepest = 0
    for character in shape:
        depth += (character in "([{!-~+") - (character in ")]}")
        deepest = max(deepest, depth)
    if deepest > _DEPTH:
        return _Refusal("operands are nested too deeply", 0)
    try:
        return templates.build(shape)
    except templates.Refused as refused:
        return _Refusal(refused.message, refused.position)


def _offset(text: str, position: int) -> int:
    """Where in `text` the token stands whose shape begins at `position`."""
    at = 0
    last = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "gap":
            continue
        last = match.end()
        at += len(match.group()) if kind in ("dotted", "other") else 1
        if at > position:
            return match.start()
    return last
