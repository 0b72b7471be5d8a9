"""Hostile text: bounded time, no recursion, an error instead of a crash. Sizes are kept small for the daily run;
`bench/parse.py --hostile` runs them at full size."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from ptxfence.grammar import parse, validate
from tests.grammar.hostile import CASES, HEADER

SECONDS = 20.0  # far above what is needed; a quadratic scan takes minutes


@pytest.mark.parametrize("name", CASES)
def test_bounded(name: str):
    text = CASES[name](30_000)
    began = time.process_time()
    errors = validate(parse(text))
    assert time.process_time() - began < SECONDS
    assert len(errors) <= 20
    assert all(len(str(error)) < 1_000 for error in errors)


def test_memory_is_a_small_multiple_of_the_text():
    line = "\tmad.lo.s32 \t%r1, %r2, %r3, 17;\n\t@%p1 ld.shared.v2.b32 {%r4, %r5}, [%r1+1024];\n"
    text = f"{HEADER}.entry k() {{ .reg .b32 %r<9>; .reg .pred %p<2>;\n{line * 4_000}}}\n"
    tracemalloc.start()
    file = parse(text)
    assert validate(file) == ()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(file.modules[0].functions[0].instructions) == 8_000
    assert peak < 40 * len(text)


def test_time_per_line_is_flat():
    line = "\tmad.lo.s32 \t%r1, %r2, %r3, 17;\n\tbar.sync 0; // x\n"

    def seconds(lines: int) -> float:
        text = f"{HEADER}.entry k() {{ .reg .b32 %r<9>;\n{line * lines}}}\n"
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            assert parse(text).errors == ()
            best = min(best, time.process_time() - began)
        return best / lines

    small, large = seconds(1_000), seconds(20_000)
    assert large < 5 * small
