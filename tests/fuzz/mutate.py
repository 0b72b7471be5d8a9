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
_CHARACTERS = 4000  # a longer text is not shrunk by parts: it would take too long
_WORD = re.compile(r"[\w.%$:]+|\S")
_STATEMENT = re.compile(r"\s*(@!?[\w%$]+\s+)?[a-z][\w.:]*[^{}:]*;")
_REGISTER = re.compile(r"%[a-z]+\d+|(?<![\w.:%$@!])[a-z]\w*\b(?![.:\w])")
_SUFFIX = re.compile(r"(?:\.|(?<=\w)::)[a-z_]\w*(?=[.:\s])")
_GUARD = re.compile(r"@!?[\w%$]+")
_NUMBER = re.compile(r"\b\d+\b")

_Change = Callable[[random.Random, str], str]


def noise(rng: random.Random, size: int = 400) -> str:
    """Bytes read as Latin-1."""
    return rng.randbytes(rng.randrange(size)).decode("latin-1")


def soup(rng: random.Random, size: int = 60) -> str:
    """Pieces of PTX in no order."""
    return rng.choice((" ", "\n", "")).join(rng.choices(_TOKENS, k=rng.randrange(size)))


def _lines(change: Callable[[random.Random, list[str], int], None]) -> _Change:
    def apply(rng: random.Random, text: str) -> str:
        lines = text.split("\n")
        change(rng, lines, rng.randrange(len(lines)))
        return "\n".join(lines)

    return apply


def _drop(rng: random.Random, lines: list[str], at: int) -> None:
    del lines[at]


def _swap(rng: random.Random, lines: list[str], at: int, with_: int | None = None) -> None:
    other = rng.randrange(len(lines)) if with_ is None else with_
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


_ROUGH: Sequence[_Change] = (
    _lines(_drop),
    _lines(lambda rng, lines, at: lines.insert(at, lines[rng.randrange(len(lines))])),
    _lines(_swap),
    _words,
    _words,
    _number,
    _cut,
    _character,
)


def _statements(change: Callable[[random.Random, list[str], list[int]], None]) -> _Change:
    """A change of the lines that are instructions."""

    def apply(rng: random.Random, text: str) -> str:
        lines = text.split("\n")
        spots = [i for i, line in enumerate(lines) if _STATEMENT.match(line)]
        if spots:
            change(rng, lines, spots)
        return "\n".join(lines)

    return apply


def _copy(rng: random.Random, lines: list[str], spots: list[int]) -> None:
    lines.insert(rng.choice(spots), lines[rng.choice(spots)])


def _exchange(rng: random.Random, lines: list[str], spots: list[int]) -> None:
    _swap(rng, lines, rng.choice(spots), rng.choice(spots))


def _operand(rng: random.Random, lines: list[str], spots: list[int]) -> None:
    """An operand in place of another one, of the same kind of register where names tell kinds."""
    at = rng.choice(spots)
    here = list(_REGISTER.finditer(lines[at]))
    if not here:
        return
    old = rng.choice(here)
    kind = old[0].rstrip("0123456789")
    others = [word for i in spots for word in _REGISTER.findall(lines[i]) if word.rstrip("0123456789") == kind]
    lines[at] = lines[at][: old.start()] + rng.choice(others) + lines[at][old.end() :]


def _suffix(rng: random.Random, lines: list[str], spots: list[int]) -> None:
    """A part of an opcode taken out, or put in from another one."""
    at = rng.choice(spots)
    parts = [part for i in spots for part in _SUFFIX.findall(lines[i])]
    here = list(_SUFFIX.finditer(lines[at]))
    if here:
        old = rng.choice(here)
        lines[at] = lines[at][: old.start()] + rng.choice(("", *parts)) + lines[at][old.end() :]


def _guard(rng: random.Random, lines: list[str], spots: list[int]) -> None:
    """A guard taken away, turned around or borrowed."""
    at = rng.choice(spots)
    guards = [found[0] for i in spots if (found := _GUARD.search(lines[i]))]
    mine = _GUARD.search(lines[at])
    bare = _GUARD.sub("", lines[at])
    new = rng.choice((*guards, ""))
    if mine and rng.random() < 0.5:
        new = mine[0].replace("@!", "@") if "!" in mine[0] else mine[0].replace("@", "@!")
    lines[at] = f"\t{new} {bare.strip()}"


GENTLE: Sequence[_Change] = (
    _statements(lambda rng, lines, spots: _drop(rng, lines, rng.choice(spots))),
    _statements(_copy),
    _statements(_exchange),
    _statements(_operand),
    _statements(_operand),
    _statements(_suffix),
    _statements(_guard),
    _number,
)


def mutate(rng: random.Random, text: str, changes: Sequence[_Change] = _ROUGH) -> str:
    """`text` with one to six changes."""
    for _ in range(rng.randint(1, 6)):
        text = rng.choice(changes)(rng, text) or " "
    return text


def hostile(seed: int, kernels: Sequence[str], compiled: Sequence[str] = ()) -> str:
    """The input of a seed: of twenty, four of noise, four of soup, twelve kernels with changes, one of them compiled.

    Five of the twelve have changes that mostly leave valid PTX.
    """
    rng = random.Random(seed)
    kind = rng.randrange(20)
    if kind < 4:
        return noise(rng)
    if kind < 8:
        return soup(rng)
    text = rng.choice(compiled if kind == 8 and compiled else kernels)
    return mutate(rng, text, GENTLE if kind < 13 else _ROUGH)


def shrink(text: str, bad: Callable[[str], bool]) -> str:
    """A shorter text that is still `bad`: halves, lines, then characters taken out while that holds."""
    for unit in (text.splitlines(keepends=True), None):
        parts: Sequence[str] = list(text) if unit is None else unit
        size = max(1, len(parts) // 2)
        while size and len(parts) < _CHARACTERS:
            at, before = 0, len(parts)
            while at < len(parts):
                fewer = [*parts[:at], *parts[at + size :]]
                if bad("".join(fewer)):
                    parts = fewer
                else:
                    at += size
            size = size // 2 if len(parts) == before or size > 1 else size
        text = "".join(parts)
    return text
