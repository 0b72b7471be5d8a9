"""Level 2: operands."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ptxfence.errors import PtxSyntaxError
from ptxfence.grammar import parse
from ptxfence.grammar.model import (
    Address,
    Immediate,
    Negated,
    Opaque,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)

DECLARATIONS = ".reg .b32 %r<9>, a; .reg .b64 %rd<9>; .reg .pred %p<4>; .reg .v4 .f32 %v; .shared .b32 s[8];\n"
R1, R2, RD1, P1, P2 = Register("%r1"), Register("%r2"), Register("%rd1"), Register("%p1"), Register("%p2")
S = Symbol("s")


def operands(text: str) -> tuple[Operand, ...]:
    head = f".version 8.7\n.target sm_90a\n.entry k() {{ {DECLARATIONS}op {text}; }}\n"
    return parse(head).modules[0].functions[0].instructions[0].operands


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("%r1, %r2", (R1, R2)),
        ("a", (Register("a"),)),
        ("%tid.x", (Register("%tid", "x"),)),
        ("%laneid", (Register("%laneid"),)),
        ("%v.w", (Register("%v", "w"),)),
        ("%r1.b0", (Register("%r1", "b0"),)),
        ("s", (S,)),
        ("s+16", (Symbol("s", 16),)),
        ("s+-4", (Symbol("s", -4),)),
        ("s[2]", (Opaque("s[2]"),)),
        ("[%r1]", (Address(R1),)),
        ("[ %r1 + 0 ]", (Address(R1, 0),)),
        ("[%r1+-16]", (Address(R1, -16),)),
        ("[%r1+0x10]", (Address(R1, 16),)),
        ("[%r1+(4*2)]", (Address(R1, 8),)),
        ("[s+4]", (Address(S, 4),)),
        ("[16]", (Address(None, 16),)),
        ("[%rd1, {%r1, 7}]", (Address(RD1, 0, (R1, Immediate(7))),)),
        ("[%rd1, %r2, {%r1}]", (Address(RD1, 0, (R2, R1)),)),
        ("{%r1, _}", (Vector((R1, Sink())),)),
        ("{ %r1 }", (Vector((R1,)),)),
        ("{1, -2, 0f3F800000}", (Vector((Immediate(1), Immediate(-2), Immediate(1.0, 0x3F800000))),)),
        ("%p1|%p2", (Pair(P1, P2),)),
        ("_ | %p1", (Pair(Sink(), P1),)),
        ("!%p1", (Negated(P1),)),
        ("_", (Sink(),)),
        ("-%r1", (Opaque("-%r1"),)),
        ("(%r1), s, (a, 5)", (Vector((R1,)), S, Vector((Register("a"), Immediate(5))))),
        ("s, ()", (S, Vector(()))),
        ("(_), s, (%r1), s", (Vector((Sink(),)), S, Vector((R1,)), S)),
        ("%r1,/* c */%r2 // d\n", (R1, R2)),
    ],
)
def test_forms(text: str, expected: tuple[Operand, ...]):
    assert operands(text) == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("017", 15),
        ("0x1F", 31),
        ("0XffU", 255),
        ("0b101", 5),
        ("7U", 7),
        ("-1", -1),
        ("- -1", 1),
        ("~0", -1),
        ("!3", 0),
        ("2+3*4", 14),
        ("(2+3)*4", 20),
        ("7 % 4", 3),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("1 << 4 | 1", 17),
        ("6 & 3 ^ 1", 3),
        ("1 > 2 ? 3 : 4", 4),
        ("1 == 1 && 0 || 1", 1),
        ("(.s64)-1", -1),
        ("(.u64)-1", (1 << 64) - 1),
        ("WARP_SZ * 2", 64),
        ("9223372036854775807 + 0", (1 << 63) - 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("2.5e3", 2500.0),
        ("-1.5", -1.5),
        ("1 / 0", 0),
    ],
)
def test_constants(text: str, value: int | float):
    assert operands(text) == (Immediate(value),)


def test_float_bits():
    assert operands("0d3FF8000000000000") == (Immediate(1.5, 0x3FF8000000000000),)
    (nan,) = operands("0f7FFFFFFF")
    assert isinstance(nan, Immediate)
    assert nan.bits == 0x7FFFFFFF


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("%r1 %r2", 5),
        ("%r1,", 5),
        (", %r1", 1),
        ("[%r1-4]", 5),
        ("[%r1+%r2]", 6),
        ("[s[1]]", 3),
        ("[]", 2),
        ("{}", 2),
        ("{[%r1]}", 2),
        ("(%r1, %r2", 10),
        ("%r1, %r2, (s)", 11),
        ("08", 2),
        ("1u", 2),
        ("0x", 2),
        ("0f3F80", 2),
        ("-0f3F800000", 2),
        ("1 + s", 5),
        ("s - 4", 3),
        ("%r1|%r2|%r3", 8),
        ("%r1.x.y", 6),
        ("%r1 = 4", 5),
        ("@%p1", 1),
        ("é", 1),
    ],
)
def test_refused_as_ptxas_does(text: str, column: int):
    with pytest.raises(PtxSyntaxError) as caught:
        operands(text)
    assert (caught.value.line, caught.value.column - len("op ")) == (4, column)


def test_lark_is_loaded_only_for_operands():
    code = (
        "import sys; from ptxfence.grammar import parse;"
        "f = parse('.version 8.7\\n.target sm_90\\n.entry k() { .reg .b32 %r<4>; add.s32 %r1, %r2, 1+1; }');"
        "assert not f.errors; i = f.modules[0].functions[0].instructions; assert 'lark' not in sys.modules;"
        "i[0].operands; assert 'lark' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
