"""Syntax errors: what is refused, where the error points, recovery; each case is one that ptxas refuses too."""

from __future__ import annotations

import pytest

from ptxfence.grammar import parse, validate
from tests.grammar.assembler import Verdict, assemble, ptxas

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"
DECLARATIONS = ".reg .b32 %r<9>; .reg .pred %p<3>; .shared .b32 s[4];\n"

BODIES = {
    "mov.b32 %r1, 1": (5, 15, "expected ';' after this instruction"),
    "mov.b32 %r1, 1\nmov.b32 %r1, 2;": (6, 1, "unexpected name"),
    "ret;; ret;": (5, 5, "unexpected ';'"),
    "{ };": (5, 4, "unexpected ';'"),
    "L: ret; L: ret;": (5, 9, "label 'L' is defined twice in this scope"),
    "@%p1 { ret; }": (5, 1, "unexpected '@'"),
    "@%p1 L: ret;": (5, 1, "unexpected '@'"),
    "@%p1 @%p2 ret;": (5, 1, "unexpected '@'"),
    "@%p1 .reg .b32 q;": (5, 1, "unexpected '@'"),
    "ld.shared.b32 %r1, {{%r1}};": (5, 19, "expected ';' after this instruction"),
    "ld.shared.b32 %r1, [s-4];": (5, 22, "unexpected '-', expected ',' or ']'"),
    ".reg .b32 .v2 v;": (5, 11, "unexpected '.v2', expected a name"),
    ".reg %x;": (5, 6, "unexpected name"),
    ".reg .b32 %x": (5, 13, "expected ';' after .reg"),
    ".reg .b32 %x,;": (5, 14, "unexpected end of the statement, expected a name"),
    ".foo 1;": (5, 1, "unexpected .foo"),
    ".file 1 \"a\";": (5, 1, "unexpected .file"),
    ".branchtargets s;": (5, 1, ".branchtargets needs a label"),
    "ts: .branchtargets L M; L: M: ret;": (5, 22, "unexpected name"),
    ".pragma \"a\" \"b\";": (5, 13, "unexpected string"),
    "bra NOWHERE;": (5, 5, "NOWHERE is not declared"),
    "{ INNER: } bra INNER;": (5, 16, "INNER is not declared"),
    "mov.b32 %r1, %r9;": (5, 14, "%r9 is not declared"),
    "@%p7 ret;": (5, 1, "predicate %p7 is not declared"),
    "ts: .branchtargets NOWHERE;": (5, 19, "NOWHERE in the list ts is not declared"),
    "mov.b32 %r1, \"a\";": (5, 13, "expected ';' after this instruction"),
    "}": (6, 1, "expected a directive"),
    "{": (4, 21, "the body of k is never closed"),
    "mov.b32 %r1, \u00e9;": (5, 14, "unexpected '\u00e9'"),
    "\0 ret;": (5, 1, "unexpected '\\x00'"),
}  # fmt: skip

FILES = {
    "foo\n.entry k() { ret; }": (4, 1, "expected a directive"),
    ".global .b32 a;;": (4, 16, "unexpected ';'"),
    ".global .b32 a[2+1];": (4, 17, "unexpected '+', expected ']'"),
    ".global .b32 a b;": (4, 16, "unexpected name"),
    ".global a;": (4, 9, "unexpected name"),
    ".const .b32 a[2] = {1, 2,};": (4, 26, "unexpected '}'"),
    ".const .b32 a[2] = {1, 2 3};": (4, 26, "unexpected number"),
    ".global .b64 g; .global .b64 h = -g;": (4, 35, "unexpected name"),
    ".entry k(.param .b32 a .param .b32 b) { ret; }": (4, 24, "unexpected '.param'"),
    ".entry k(.param .b32 a,) { ret; }": (4, 24, "unexpected ')'"),
    ".entry k() .maxntid 1 2 { ret; }": (4, 23, "unexpected number"),
    ".entry k() .maxnreg (4) { ret; }": (4, 21, "unexpected '('"),
    ".entry (.param .b32 r) k() { ret; }": (4, 8, "unexpected '(', expected a name"),
    ".visible .visible .entry k() { ret; }": (4, 10, "unexpected '.visible'"),
    ".pragma \"a\"": (4, 12, "expected ';'"),
    ".alias a b;": (4, 10, "unexpected name"),
    ".file \"a\"": (4, 1, "expected a number and a \"name\" after .file"),
    ".section debug { .b8 1 }": (4, 1, "expected a .name after .section"),
    ".section .debug { .b8 }": (4, 19, "this is no data of a section"),
    ".section .debug { .b8 1 ": (4, 17, "this '{' is never closed"),
    ".target sm_90a": (4, 1, "a second .target"),
}  # fmt: skip

CASES = [(f"{HEADER}.visible .entry k() {{{DECLARATIONS}{body}\n}}\n", *place) for body, place in BODIES.items()]
CASES += [(f"{HEADER}{text}\n", *place) for text, place in FILES.items()]


@pytest.mark.parametrize(("text", "line", "column", "message"), CASES)
def test_refused(text: str, line: int, column: int, message: str):
    errors = validate(parse(text, "k.ptx"))
    assert errors
    first = errors[0]
    assert first.message.startswith(message)
    assert (first.filename, first.line, first.column) == ("k.ptx", line, column)
    assert first.source_line == text.split("\n")[line - 1]


@pytest.mark.skipif(ptxas() is None, reason="no ptxas")
def test_ptxas_refuses_them_too():
    taken = [text for text, *_ in CASES if assemble(text, "sm_90a")[0] is Verdict.ACCEPTED]
    assert taken == []


def test_one_file_gives_all_its_errors():
    body = "mov.b32 %r1 %r2;\nmov.b32 %r1, 1;\n\tld.shared.b32 %r1, [s-4];\n"
    errors = validate(parse(f"{HEADER}.entry k() {{{DECLARATIONS}{body}}}\n.entry l() {{ add.s32 [; }}\n"))
    assert [(error.line, error.column) for error in errors] == [(5, 13), (7, 23), (9, 23)]
    assert str(errors[1]).split("\n") == [
        "<string>:7:23: unexpected '-', expected ',' or ']'",
        " ld.shared.b32 %r1, [s-4];",
        "                      ^",
    ]


@pytest.mark.parametrize("statement", ["ret;; ", "mov.b32 %r1 %r2; ", "bra X; ", ".foo; "])
def test_at_most_twenty_errors(statement: str):
    assert len(validate(parse(f"{HEADER}.entry k() {{{DECLARATIONS}{statement * 50}}}\n"))) <= 20


def test_empty_and_foreign_text():
    for text in ("", "   \n", "int main() { return 0; }", "{}", "// nothing"):
        assert validate(parse(text))


def test_special_registers_of_a_newer_isa_pass():
    assert validate(parse(HEADER + ".entry k() { .reg .b32 %r<2>; mov.b32 %r1, %some_new_register; ret; }")) == ()


def test_quick_path_takes_nothing_that_the_grammar_refuses():
    """The regular expression for usual operand lists is a subset of the grammar."""
    from ptxfence.grammar.shapes import refusal
    from ptxfence.grammar.validate import FAST

    words = (
        "%r1",
        "s",
        "1",
        "-1",
        "[%r1]",
        "[s+4]",
        "[%r1+-4]",
        "{%r1, 2}",
        "!%p1",
        "%v.x",
        "_",
        "(",
        "+4",
        "|",
        "1.5",
    )
    for first in words:
        for second in words:
            for text in (first, f"{first}, {second}", f"{first} {second}", f"{first}{second}"):
                if FAST.fullmatch(text + ";"):
                    assert refusal(text, "operands") is None, text
