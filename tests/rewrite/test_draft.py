"""Edits of several rounds are edits of the original: composing them gives what applying them in turn gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ptxfence.analysis.report import Edit
from ptxfence.rewrite.draft import Draft
from ptxfence.rewrite.edits import apply


@st.composite
def rounds(draw: st.DrawFn) -> tuple[str, list[list[Edit]]]:
    """A text and rounds of edits, each fitting the text that the rounds before leave."""
    count = draw(st.integers(1, 6))
    text = "".join(f"line{n}\n" for n in range(count)) + draw(st.sampled_from(["", "last"]))
    original, found = text, list[list[Edit]]()
    for number in range(draw(st.integers(1, 4))):
        lines = text.split("\n")
        edits: list[Edit] = []
        for line, old in enumerate(lines[:-1], 1):
            for kind in draw(st.lists(st.sampled_from("ixr"), max_size=2, unique=True)):
                if kind == "i":
                    edits.append(Edit(line, f"new{number}.{line};"))
                elif not any(e.remove and e.line == line for e in edits):
                    edits.append(Edit(line, f"other{number}.{line}" if kind == "r" else "", remove=old))
        edits.sort(key=lambda e: bool(e.remove))
        found.append(edits)
        text = apply(text, edits)
    return original, found


@settings(max_examples=80, deadline=None)
@given(rounds())
def test_composition(case: tuple[str, list[list[Edit]]]) -> None:
    original, steps = case
    draft, text = Draft(original), original
    for edits in steps:
        draft = draft.revise(edits)
        text = apply(text, edits)
        assert draft.text == text
        assert apply(original, draft.edits) == text


def test_origins() -> None:
    draft = Draft("aa\nbb\ncc\n").revise([Edit(2, "x;")])
    draft = draft.revise([Edit(4, "", remove="cc"), Edit(2, "y;", remove="x;")])
    assert draft.text == "aa\ny;\nbb\n"
    assert draft.edits == (Edit(2, "y;"), Edit(3, "", remove="cc"))
    assert draft.line_origin(1) == 1
    assert draft.line_origin(2) is None
    assert draft.line_origin(3) == 2
    assert draft.origin(draft.text.index("b")) == 3
    assert draft.origin(draft.text.index("y")) is None
