"""A text under revision: edits made in several rounds, kept as edits of the original."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from ptxfence.analysis.report import Edit
from ptxfence.grammar.lines import Lines
from ptxfence.rewrite.edits import apply


class Draft:
    """`edits` of `original` give `text`. Immutable; `revise` makes the next one."""

    def __init__(self, original: str, edits: tuple[Edit, ...] = ()) -> None:
        self.original = original
        self.edits = edits
        self.text = apply(original, edits) if edits else original

    def revise(self, edits: Iterable[Edit]) -> Draft:
        """The draft after further edits, whose lines count in this draft's text."""
        kept = list(self.edits)
        for edit in edits:
            line, made = self._rows[edit.line - 1]
            if edit.remove:
                _rework(kept, edit, line, made)
            else:
                place = _position(kept, made) if made is not None else _behind_insertions(kept, line)
                kept.insert(place, replace(edit, line=line))
            kept.sort(key=lambda edit: (edit.line, bool(edit.remove)))
        return Draft(self.original, tuple(kept))

    @cached_property
    def _rows(self) -> list[tuple[int, Edit | None]]:
        """For each line of the text: the original line it is or stands before, and the edit that made it."""
        by_line: dict[int, list[Edit]] = {}
        for edit in self.edits:
            by_line.setdefault(edit.line, []).append(edit)
        rows: list[tuple[int, Edit | None]] = []
        for line in range(1, self._original_lines.position(len(self.original))[0] + 1):
            own: Edit | None = None
            for edit in by_line.get(line, ()):
                if edit.remove:
                    own = edit
                else:
                    rows.append((line, edit))
            if own is None or own.insert:
                rows.append((line, own))
        return rows

    @cached_property
    def _original_lines(self) -> Lines:
        return Lines(self.original, "")

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text, "")

    def line_origin(self, line: int) -> int | None:
        """The original line that a line of the text is; None if an edit made it."""
        number, made = self._rows[line - 1]
        return number if made is None else None

    def origin(self, offset: int) -> int | None:
        """The original offset of a character of the text; None if an edit wrote its line."""
        line, column = self._lines.position(offset)
        number = self.line_origin(line)
        return None if number is None else self._original_lines.start_of(number) + column - 1


def _rework(kept: list[Edit], edit: Edit, line: int, made: Edit | None) -> None:
    """Removes or replaces one line of the text."""
    if made is None:
        kept.append(replace(edit, line=line))
        return
    place = _position(kept, made)
    if made.remove:
        kept[place] = Edit(line, edit.insert, edit.rules, made.remove)
    elif edit.insert:
        kept[place] = Edit(line, edit.insert, edit.rules)
    else:
        del kept[place]


def _position(kept: list[Edit], made: Edit) -> int:
    return next(k for k, edit in enumerate(kept) if edit is made)


def _behind_insertions(kept: list[Edit], line: int) -> int:
    """Behind the lines that stand before `line`, in front of what replaces it."""
    return sum(1 for edit in kept if edit.line < line or (edit.line == line and not edit.remove))
