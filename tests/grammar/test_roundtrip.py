"""Spans: every statement covers its own text, and edits by span leave the rest as it was."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ptxfence.grammar import parse, validate

FEATURES = (Path(__file__).with_name("data") / "features.ptx").read_text(encoding="utf-8")
HEADER = ".version 8.7\n.target sm_90a\n.entry k() {\n.reg .b32 %r<9>; .reg .pred %p<4>; .shared .b32 s[4];\n"

GAPS = st.sampled_from((" ", "\t", "\n", "\r\n", "  ", " // c ; { \n", " /* ; } */ ", "\n\n"))
GUARDS = st.sampled_from(("", "@%p1 ", "@!%p2 "))
OPCODES = st.sampled_from(
    ("add.s32", "ld.shared.b32", "bar.sync", "cp.async.bulk.commit_group", "mov .b32", "new.op::x")
)
OPERANDS = st.lists(
    st.sampled_from(("%r1", "[s+4]", "[%r2]", "{%r1, %r2}", "1", "-2", "0f3F800000", "%p1|%p2", "_", "!%p3", "s")),
    max_size=4,
)
STATEMENTS = st.lists(st.tuples(GUARDS, OPCODES, OPERANDS, GAPS, GAPS), max_size=12)


def _text(statement: tuple[str, str, list[str], str, str]) -> str:
    guard, opcode, operands, gap, _ = statement
    return f"{guard}{opcode}{gap}{(',' + gap).join(operands)}{gap};"


@given(STATEMENTS)
@settings(max_examples=60, deadline=None)
def test_every_statement_comes_back(statements: list[tuple[str, str, list[str], str, str]]):
    body = "".join(_text(statement) + statement[4] for statement in statements)
    file = parse(HEADER + body + "}\n")
    assert validate(file) == ()
    instructions = file.modules[0].functions[0].instructions
    assert [item.text for item in instructions] == [_text(statement) for statement in statements]
    assert [item.opcode for item in instructions] == [statement[1].replace(" ", "") for statement in statements]
    assert [len(item.operands) for item in instructions] == [len(statement[2]) for statement in statements]
    assert all(file.text[item.start : item.end] == item.text for item in instructions)


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_text_gives_errors_not_exceptions(text: str):
    for whole in (text, HEADER + text, HEADER + text + "}", HEADER + f"add.s32 {text};}}"):
        file = parse(whole)
        assert file.text is whole
        assert len(validate(file)) <= 20


@given(st.text(alphabet='{}()[];:,"/*@!._%$ab1+-\n', max_size=200))
@settings(max_examples=60, deadline=None)
def test_punctuation(text: str):
    validate(parse(HEADER + text + "}"))


@given(st.sets(st.integers(0, FEATURES.count("\n")), max_size=8))
@settings(max_examples=15, deadline=None)
def test_inserted_comment_lines_touch_nothing_else(places: set[int]):
    """Lines put in between change no statement: same opcodes, operands and labels, spans moved by what came before."""
    lines = FEATURES.split("\n")
    inserted = '// inserted ; { } "'
    edited: list[str] = []
    for number, line in enumerate(lines):
        edited += [inserted] * (number in places) + [line]
    before, after = parse(FEATURES), parse("\n".join(edited))
    assert [line for line in after.text.split("\n") if line != inserted] == lines
    if after.errors:  # inside the comment over several lines or a string: not a place between statements
        return
    old = [item for function in before.modules[0].functions for item in function.instructions]
    new = [item for function in after.modules[0].functions for item in function.instructions]
    assert [(item.opcode, item.operands, item.guard) for item in old] == [
        (item.opcode, item.operands, item.guard) for item in new
    ]
    for one, two in zip(old, new, strict=True):
        moved = sum(number < before.position(one.start)[0] for number in places) * (len(inserted) + 1)
        assert two.start == one.start + moved
