"""Instruction by instruction: statements generated from the ISA's forms assemble with ptxas and parse with us."""

from __future__ import annotations

import pytest

from ptxfence.grammar import parse, validate
from tests.grammar.assembler import Verdict, assemble, ptxas
from tests.grammar.forms import HEADER, expand, forms, laid_out, program

PLAIN = [statement for form in forms() for statement in expand(form)]
LAID_OUT = [laid_out(statement, number) for number, statement in enumerate(PLAIN)]


def test_there_are_enough():
    assert len(PLAIN) > 700
    families = {statement.split(".")[0].split(" ")[0].rstrip(";") for statement in PLAIN}
    assert len(families) > 90


@pytest.mark.skipif(ptxas() is None, reason="no ptxas")
def test_they_assemble():
    assert assemble(program(LAID_OUT), "sm_90a") == (Verdict.ACCEPTED, "")


def test_they_parse():
    file = parse(program(LAID_OUT))
    assert validate(file) == ()
    instructions = file.modules[0].functions[-1].instructions
    assert [item.text for item in instructions[:-1]] == LAID_OUT
    assert [item.opcode for item in instructions[:-1]] == [text.split(" ")[0].rstrip(";") for text in PLAIN]


def test_layout_does_not_change_the_operands():
    plain = parse(program(PLAIN)).modules[0].functions[-1].instructions
    moved = parse(program(LAID_OUT)).modules[0].functions[-1].instructions
    assert [item.operands for item in plain] == [item.operands for item in moved]
    assert HEADER in program(PLAIN)
