"""Level 2: text -> operands and declarations, through lark once per distinct shape.

The shape of `[%rd1+16], {%r1, 7}` is `[N+I],{N,I}`; its leaves are `%rd1 16 %r1 7`. A few hundred shapes make
up a file, so lark (1 to 3 MB/s) runs rarely and a shape's template is filled in with leaves instead.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from ptxfence.grammar.lexical import BITS, COMMENT, FLOAT, INTEGER, NAME, STRING
from ptxfence.grammar.model import Operand

if TYPE_CHECKING:
    from ptxfence.grammar.templates import Resolve, Template

_TOKEN = re.compile(
    rf"(?P<gap>\s++|{COMMENT})|(?P<X>{BITS})|(?P<F>{FLOAT})|(?P<I>{INTEGER}|WARP_SZ\b)|(?P<N>{NAME})|(?P<S>{STRING})"
    r"|(?P<dotted>\.[A-Za-z_][\w:]*+)|(?P<other><<|>>|<=|>=|==|!=|&&|\|\||.)",
    re.DOTALL | re.ASCII,
)
# Nesting beyond what any compiler prints; keeps the recursion of a template bounded. Each of these characters
# adds at most one level to lark's tree.
_DEPTH = 200
_LENGTH = 1_000_000  # no statement with operands of this length is real (names of 2,000 characters are)
_TABLE = 1_000  # characters of an initialiser that is long
_RUN = re.compile(r"((?:[^,{}()]{1,60}),)\1+")
_NUMBERS = re.compile(r"(?:-?(?:0[xX][0-9a-fA-F]++|\d[\d.]*+)\s*+,\s*+){3,}+", re.ASCII)

_T = TypeVar("_T")


class ShapeError(Exception):
    """Text that is no PTX: `offset` into it and what is wrong. Never leaves the package."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Refusal:
    """Why a shape does not parse: message and position in the shape."""

    def __init__(self, message: str, position: int) -> None:
        self.message = message
        self.position = position


def abstract(text: str) -> tuple[str, tuple[str, ...]]:
    """Shape and leaves of a text."""
    shape, leaves, _ = abstract_at(text)
    return shape, leaves


def abstract_at(text: str) -> tuple[str, tuple[str, ...], list[int]]:
    """Shape and leaves of a text, and the offsets of the leaves in it."""
    shape: list[str] = []
    leaves: list[str] = []
    offsets: list[int] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None or kind == "gap":
            continue
        word = match[0]
        if kind == "other":
            shape.append(word)
        elif kind == "dotted":
            shape.append(word + " ")
        else:
            shape.append(kind)
            leaves.append(word)
            offsets.append(match.start())
    return "".join(shape), tuple(leaves), offsets


def operands_of(text: str, resolve: Resolve) -> tuple[Operand, ...]:
    """The operands in `text`; `resolve` turns a name into a register or symbol. Raises ShapeError."""
    if len(text) > _LENGTH:
        raise ShapeError("operands are too long", 0)
    shape, leaves = abstract(text)
    if not shape:
        return ()
    return accepted(_operand_template(shape), text)(leaves, resolve)


def accepted(result: _T | Refusal, text: str) -> _T:
    """`result`, unless the grammar refused the shape of `text`: then raises ShapeError."""
    if isinstance(result, Refusal):
        raise ShapeError(result.message, _offset(text, result.position))
    return result


def refusal(text: str, start: str) -> ShapeError | None:
    """Why `text` is no `start` (a rule of ptx.lark); None if it is one."""
    if start == "declaration" and len(text) > _TABLE:
        short = _NUMBERS.sub("1,", text)  # most of a long table is numbers; what is wrong is placed by the text itself
        if len(short) < len(text) and refusal(short, start) is None:
            return None
    shape, _ = abstract(text)
    if start == "operands":
        result = _operand_template(shape)
    else:
        short, cuts = _collapsed(shape)
        result = tree(short, start)
        if isinstance(result, Refusal):
            position = result.position + sum(length for at, length in cuts if at <= result.position)
            result = Refusal(result.message, position)
    if isinstance(result, Refusal):
        return ShapeError(result.message, _offset(text, result.position))
    return None


def _collapsed(shape: str) -> tuple[str, list[tuple[int, int]]]:
    """`shape` with runs of equal items cut to one; (position in the result, characters cut before it)."""
    kept: list[str] = []
    cuts: list[tuple[int, int]] = []
    last = length = 0
    for match in _RUN.finditer(shape):
        kept.append(shape[last : match.end(1)])
        length += match.end(1) - last
        cuts.append((length, match.end() - match.end(1)))
        last = match.end()
    return "".join((*kept, shape[last:])), cuts


@cache
def tree(shape: str, start: str) -> object | Refusal:
    """lark's tree of a shape, kept for the life of the process."""
    from ptxfence.grammar import templates

    if _too_deep(shape):
        return Refusal("nested too deeply", 0)
    try:
        return templates.tree_of(shape, start)
    except templates.Refused as refused:
        return Refusal(refused.message, refused.position)


@cache
def _operand_template(shape: str) -> Template | Refusal:
    """The filled-in form of a shape, kept for the life of the process (a few thousand at most)."""
    from ptxfence.grammar import templates

    if _too_deep(shape):
        return Refusal("nested too deeply", 0)
    try:
        return templates.build(shape)
    except templates.Refused as refused:
        return Refusal(refused.message, refused.position)


def _too_deep(shape: str) -> bool:
    return sum(map(shape.count, "([{!-~+*/%<>&^|?")) >= _DEPTH and _nesting(shape) > _DEPTH


def _nesting(shape: str) -> int:
    """Bound on the depth of lark's tree: brackets nest, operators nest until the next comma of their level."""
    deepest = 0
    levels = [0]
    for character in shape:
        if character in "([{":
            levels.append(0)
        elif character in ")]}" and len(levels) > 1:
            levels.pop()
        elif character == ",":
            levels[-1] = 0
        elif character in "!-~+*/%<>&^|?":
            levels[-1] += 1
        deepest = max(deepest, len(levels) + sum(levels))
        if deepest > _DEPTH:
            break
    return deepest


def _offset(text: str, position: int) -> int:
    """Where in `text` the token stands whose shape begins at `position`."""
    at = 0
    last = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "gap":
            continue
        last = match.end()
        at += len(match.group()) + (kind == "dotted") if kind in ("dotted", "other") else 1
        if at > position:
            return match.start()
    return last
