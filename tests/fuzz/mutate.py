"""Hostile texts: random bytes, token soup, and real kernels with something broken."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_TOKENS = (
    ".version 8.6", ".target sm_90a", ".address_size 64", ".entry k()", ".func f", "{", "}", "(", ")", ";", ",",
    "[", "]", ":", "@p", "@!%p", "%r1", "%rd<4>", ".reg .b32 %r<8>;", ".shared .b8 x[64];", "bar.sync 0;", "L:",
    "bra L;", "//", "/*", "*/", '"', "\\", "0x", "0f3f800000", "-1", "99999999999999999999", "cp.async.bulk", "<",
    ">", "st.shared.u32 [x], 1;", "fence.proxy.async.shared::cta;", "call f, ();", ".loc 1 2 3", '.file 1 "a"',
    "mbarrier.init.b64 [x], 1;", "\0", "\r", "ret;", '.pragma "x";', ".section .debug { .b8 1 }", "::", "..", "é",
    "wgmma.mma_async", "_", "$",
)  # fmt: skip
_WORD = re.compile(r"[\w.%$:]+|\S")
_NUMBER = re.compile(r"\b\d+\b")


def noise(rng: random.Random, size: int = 400) -> str:
    """Bytes read as Latin-1."""
    return rng.randbytes(rng.randrange(size)).decode("latin-1")


def soup(rng: random.Random, size: int = 60) -> str:
    """Pieces of PTX in no order."""
    return rng.choice((" ", "\n", "")).join(rng.choices(_TOKENS, k=rng.randrange(size)))


def _lines(change: Callable[[random.Random, list[str], int], None]) -> Callable[[random.Random, str], str]:
    def apply(rng: random.Random, text: str) -> str:
        lines = text.split("\n")
        change(rng, lines, rng.randrange(len(lines)))
        return "\n".join(lines)

    return apply


def _drop(rng: random.Random, lines: list[str], at: int) -> None:
    del lines[at]


def _swap(rng: random.Random, lines: list[str], at: int) -> None:
    other = rng.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _words(rng: random.Random, text: str) -> str:
    """One word replaced by another of the same text."""
    spots = [match.span() for match in _WORD.finditer(text)]
    if not spots:
        return text
    (start, end), (low, high) = rng.choice(spots), rng.choice(spots)
    return text[:start] + text[low:high] + text[end:]


def _number(rng: random.Random, text: str) -> str:
    spots = [match.span() for match in _NUMBER.finditer(text)]
    if not spots:
        return text
    start, end = rng.choice(spots)
    value = rng.choice(("0", "-1", "1", "4294967295", "4294967296", "18446744073709551615", "9" * 30, "0x7fffffff"))
    return text[:start] + value + text[end:]


def _cut(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start + rng.randrange(40) :]


def _character(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice('{}[]();:@,."/*\\\0\n %') + text[at + rng.randrange(2) :]


_MUTATIONS: Sequence[Callable[[random.Random, str], str]] = (
    _lines(_drop),
    _lines(lambda rng, lines, at: lines.insert(at, lines[rng.randrange(len(lines))])),
    _lines(_swap),
    _words,
    _words,
    _number,
    _cut,
    _character,
)


def mutate(rng: random.Random, text: str) -> str:
    """`text` with one to six changes."""
    for _ in range(rng.randint(1, 6)):
        text = rng.choice(_MUTATIONS)(rng, text) or " "
    return text


def hostile(seed: int, kernels: Sequence[str]) -> str:
    """The input of a seed; three of five are kernels with changes."""
    rng = random.Random(seed)
    kind = rng.randrange(5)
    if kind == 0:
        return noise(rng)
    if kind == 1:
        return soup(rng)
    return mutate(rng, rng.choice(kernels))
