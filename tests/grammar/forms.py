"""Statements generated from the instruction forms of the ISA, in varying layout."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

FORMS = Path(__file__).with_name("data") / "forms.txt"
_CHOICE = re.compile(r"<((?:[^<>\\]|\\.)*)>")
_BAR = re.compile(r"(?<!\\)\|")
_GAPS = (" ", "\t", "  ", " /* c ; */ ", "\n\t", " // c }\n")

HEADER = """\
.version 8.7
.target sm_90a
.address_size 64
.global .align 16 .b32 g[64];
.global .texref t;
.global .surfref u;
.func (.reg .b32 o) callee (.reg .b32 i) { mov.b32 o, i; ret; }
.visible .entry k(.param .align 16 .b8 k_param[64])
{
.reg .b16 h<4>; .reg .b32 r<12>; .reg .b64 d<4>; .reg .b128 q<4>; .reg .f32 f<8>; .reg .f64 e<4>; .reg .pred p<4>;
.shared .align 128 .b64 s[64];
targets: .branchtargets here;
here:
"""


def forms() -> list[str]:
    lines = FORMS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def expand(form: str) -> Iterator[str]:
    """Every statement that a form stands for."""
    parts = _CHOICE.split(form)
    choices = [[part] if index % 2 == 0 else _BAR.split(part) for index, part in enumerate(parts)]
    for chosen in itertools.product(*choices):
        yield "".join(chosen).replace("\\|", "|")


def laid_out(statement: str, number: int) -> str:
    """The statement with the white space, comments and guard that `number` picks."""
    gap = _GAPS[number % len(_GAPS)]
    bare = statement.startswith(("brx", "bra")) or "_|" in statement  # ptxas 13.0 crashes on a guarded `setp _|p`
    guard = "" if bare else ("", "@p3 ", "@!p3\t")[number % 3]
    opcode, _, rest = statement.partition(" ")
    return f"{guard}{opcode}{gap if rest else ''}{rest.replace(', ', ',' + gap)}"


def program(statements: list[str]) -> str:
    return HEADER + "\n".join(statements) + "\nret;\n}\n"
