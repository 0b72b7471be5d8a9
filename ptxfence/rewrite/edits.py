"""Edits of whole lines: everything else stays byte for byte.

A line ends at `\\n`, `\\r\\n` or a lone `\\r`, as for the front end. Inserted lines take the indentation of their
neighbours and the line end of the line before; a file without a final newline stays without one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

from ptxfence.analysis.report import Edit
from ptxfence.grammar import Function, PtxFile
from ptxfence.grammar.lines import Lines
from ptxfence.rewrite.layout import layout

MARKER = "// ptxfence"
_LABEL_OR_BLANK = re.compile(r"\s*+(?:[\w$%]++\s*+:.*)?[{}]?\s*+$")
_GUARD = re.compile(r"@\s*+!?\s*+[\w$%]++\s*+")


def insertion_point(file: PtxFile, function: Function, index: int) -> int | None:
    """Line before which a new line runs immediately before instruction `index`, on every path that reaches it.

    None where the text has no such line boundary (statements that share a line with a label or with what must
    come first): a fence cannot be put there without taking statements apart.
    """
    return layout(file, function).before(index)


def insertion_after(file: PtxFile, function: Function, index: int) -> int | None:
    """Line before which a new line runs right after instruction `index`, and only on the path that falls out of it."""
    return layout(file, function).after(index)


def remove_statement(file: PtxFile, function: Function, index: int) -> Edit | None:
    """The edit that takes instruction `index` out; None if it spans lines. Others on its line stay."""
    return _rewrite_line(file, function, index, "")


def replace_opcode(file: PtxFile, function: Function, index: int, opcode: str) -> Edit | None:
    """The edit that gives instruction `index`, one without operands, another opcode; None if it spans lines."""
    instruction = function.instructions[index]
    guard = _GUARD.match(instruction.text)
    return _rewrite_line(file, function, index, f"{guard.group() if guard else ''}{opcode};")


def _rewrite_line(file: PtxFile, function: Function, index: int, statement: str) -> Edit | None:
    instruction = function.instructions[index]
    line, column = file.position(instruction.start)
    if file.position(instruction.end - 1)[0] != line:
        return None
    old = file.line_text(line)
    head, tail = old[: column - 1], old[column - 1 + instruction.end - instruction.start :]
    if not statement and not head.strip() and (not tail.strip() or tail.lstrip().startswith("//")):
        return Edit(line, "", remove=old)
    return Edit(line, f"{head}{statement}{tail}".lstrip(), remove=old)


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with `edits` made; lines count in the unpatched text, edits of one line in the order given.

    Raises ValueError for an edit that does not fit the text: a line that is not there, or another text than the one
    to be removed.
    """
    lines = Lines(text, "")
    ordered = sorted(edits, key=lambda edit: edit.line)
    pieces: list[str] = []
    done = 0
    for edit in ordered:
        start = _start_of(lines, edit)
        pieces.append(text[done:start])
        done = max(done, start)
        if edit.remove:
            end = start + len(edit.remove) + len(_line_end_at(text, start + len(edit.remove)))
            if edit.insert:
                pieces.append(_indent(edit.remove) + _statement(edit) + text[start + len(edit.remove) : end])
            done = end
        else:
            pieces.append(f"{_indentation(lines, edit.line)}{_statement(edit)}{_line_end_before(text, start)}")
    pieces.append(text[done:])
    return "".join(pieces)


def _start_of(lines: Lines, edit: Edit) -> int:
    try:
        start = lines.start_of(edit.line)
    except IndexError:
        raise ValueError(f"line {edit.line} is not in the text") from None
    if edit.remove and lines.line_text(edit.line) != edit.remove:
        raise ValueError(f"line {edit.line} is not what the edit removes")
    return start


def _statement(edit: Edit) -> str:
    return f"{edit.insert} {MARKER} {' '.join(edit.rules)}" if edit.rules else edit.insert


def _line_end_at(text: str, offset: int) -> str:
    if text.startswith("\r\n", offset):
        return "\r\n"
    return text[offset : offset + 1]


def _line_end_before(text: str, start: int) -> str:
    """The line end of the line before; of the first line where there is none before."""
    if start == 0:
        return "\r\n" if text.partition("\n")[0].endswith("\r") else "\n"
    return "\r\n" if text.endswith("\r\n", 0, start) else "\n"


def _indentation(lines: Lines, line: int) -> str:
    """White space of the next line that is neither blank nor only a label or brace, else of the one before."""
    for neighbour in (line, line + 1, line - 1):
        text = lines.line_text(neighbour)
        if not _LABEL_OR_BLANK.match(text):
            return _indent(text)
    return "\t"


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def diff(path: str, before: str, after: str, context: int = 3) -> str:
    """Unified diff that `patch` applies; empty if nothing differs."""
    shown = f"{path}\t" if re.search(r"\s", path) else path  # patch ends a file name at a tab
    hunks = difflib.unified_diff(_split(before), _split(after), shown, shown, n=context)
    return "".join(_ended(hunks))


def _split(text: str) -> Sequence[str]:
    """Lines as `patch` sees them: only `\\n` ends one."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _ended(hunks: Iterator[str]) -> Iterator[str]:
    for line in hunks:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
