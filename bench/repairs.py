"""Compares `fix` with the fix that somebody made by hand, for every case and corpus file that lacks a fence.

    python bench/repairs.py            # all files, into docs/rewrite.md
    python bench/repairs.py PATH ...   # these, printed

Prints, per file, the fences that the hand-made twin has and the file has not, and those that `fix` inserts (default
policy), with their weight: cycles times LOOP_FACTOR for each loop around (ptxfence/rewrite/placement.py).
A file is good if `fix` needs no more of either, and its text assembles, is proven, leaves the recheck nothing, is the
old text outside of the inserted lines, and is not changed by a second run. Exit status 1 if one is not.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.costs import Cost, is_fence, uncovered, weights  # noqa: E402
from ptxfence.analysis.check import analyse  # noqa: E402
from ptxfence.analysis.report import Finding, Severity, Verdict  # noqa: E402
from ptxfence.errors import AssemblyError  # noqa: E402
from ptxfence.grammar import parse  # noqa: E402
from ptxfence.rewrite.assemble import assemble  # noqa: E402
from ptxfence.rewrite.edits import MARKER  # noqa: E402
from ptxfence.rewrite.patch import fix  # noqa: E402
from ptxfence.rewrite.wishes import repairable  # noqa: E402

PAGE = ROOT / "docs" / "rewrite.md"
BEGIN, END = "<!-- repairs: written by bench/repairs.py -->", "<!-- end of repairs -->"


@dataclass(frozen=True, slots=True)
class Row:
    """One file. `wrong` says what is wrong with the patched text; `hand` is None without a twin.

    `rest`: the file also has findings that no fence repairs, so that it cannot become proven.
    """

    name: str
    hand: Cost | None
    ours: Cost
    wrong: tuple[str, ...]
    rest: bool

    @property
    def good(self) -> bool:
        return not self.wrong


def twin(path: Path, text: str) -> Path | None:
    """The hand-made fix of a file: `X.fix.ptx` of `X.bug.ptx`, `X_fence*` of `X_nofence*`; of `X_anything` the
    `X_*fence` without expected findings that is most like it."""
    for old, new in ((".bug.", ".fix."), ("nofence", "fence")):
        other = path.with_name(path.name.replace(old, new))
        if other != path and other.exists():
            return other
    words = path.stem.split("_")
    for count in range(len(words) - 1, 0, -1) if "hand" in path.parts else ():
        prefix = "_".join(words[:count])
        candidates = [other for other in path.parent.glob(f"{prefix}_*fence.ptx") if _clean(other)]
        if candidates:
            return max(sorted(candidates), key=lambda other: _alike(text, other.read_text()))
    return None


def _clean(path: Path) -> bool:
    return "// expect:" not in path.read_text()


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, [line for line, _ in _code(one)], [line for line, _ in _code(other)]).ratio()


def _code(text: str) -> list[tuple[str, int]]:
    """Lines with code, without comments, and their numbers."""
    plain = ((line.partition("//")[0].strip(), number) for number, line in enumerate(text.splitlines(), 1))
    return [(line, number) for line, number in plain if line]


def added(old: str, new: str, name: str) -> Cost:
    """The fences of `new` that `old` does not have at the same place between the same other lines."""
    of_old, of_new = weights(parse(old, name)), weights(parse(new, name))
    rest_old = [(line, number) for line, number in _code(old) if number not in of_old]
    rest_new = [(line, number) for line, number in _code(new) if number not in of_new]
    matcher = SequenceMatcher(None, [line for line, _ in rest_old], [line for line, _ in rest_new], autojunk=False)
    same = {b + i: a + i for a, b, size in matcher.get_matching_blocks() for i in range(size)}
    places = Counter((line, _place(number, rest_old)) for line, number in _code(old) if number in of_old)
    found: list[int] = []
    for line, number in _code(new):
        if number not in of_new:
            continue
        key = (line, same.get(_place(number, rest_new), -1))
        places[key] -= 1
        if places[key] < 0:
            found.append(of_new[number])
    return Cost(len(found), sum(found))


def _place(number: int, rest: list[tuple[str, int]]) -> int:
    """How many of the other lines stand before line `number`."""
    return sum(other < number for _, other in rest)


def bugs(findings: Sequence[Finding]) -> list[Finding]:
    return [f for f in findings if f.rule.startswith("PF1") and f.severity >= Severity.WARNING]


def repair(path: Path) -> Row | None:
    """None where a fence repairs nothing."""
    text = path.read_text()
    file = parse(text, path.name)
    report = analyse(file)
    found = bugs(report.findings)
    wanted = [f for f in found if repairable(f)]
    if not wanted:
        return None
    level = min(f.severity for f in wanted)
    patch = fix(file, report, level=level)
    other = twin(path, text)
    hand = added(text, other.read_text(), path.name) if other is not None else None
    ours = added(text, patch.text, path.name)
    rest = len(wanted) < len(found)
    wrong = list(_wrong(text, patch.text, level))
    if hand is not None and not ours.within(hand):
        wrong.append("dearer")
    name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
    return Row(name, hand, ours, tuple(wrong), rest)


def _wrong(old: str, new: str, level: Severity) -> Iterator[str]:
    file = parse(new)
    report = analyse(file)
    left = bugs(report.findings)
    if any(map(repairable, left)) or (not left and report.verdict is not Verdict.PROVEN):
        yield f"verdict {report.verdict.value}"
    if not left and (pairs := uncovered(file)):
        yield f"recheck finds {len(pairs)}"
    if not inserted_only(old, new):
        yield "other bytes differ"
    if fix(file, report, level=level).edits:
        yield "a second run changes it"
    try:
        assemble(new)
    except AssemblyError as error:
        yield f"not assembled: {error}"


def inserted_only(old: str, new: str) -> bool:
    """Whether `new` without the fence lines that `fix` has marked is `old`, byte for byte."""
    kept = [line for line in new.splitlines(keepends=True) if not _inserted(line)]
    return "".join(kept) == old


def _inserted(line: str) -> bool:
    code, marker, _ = line.partition(f"; {MARKER} PF")
    return bool(marker) and is_fence(code.strip())


def paths() -> list[Path]:
    """All cases and corpus files of the repository; right ones are passed over later."""
    cases = sorted((ROOT / "tests" / "cases").glob("*.bug.ptx"))
    return cases + sorted((ROOT / "corpus").rglob("*.ptx"))


def table(rows: Sequence[Row]) -> str:
    compared = [row for row in rows if row.hand is not None]
    totals = [Cost(sum(c.fences for c in costs), sum(c.cycles for c in costs)) for costs in (
        [row.hand for row in compared if row.hand is not None], [row.ours for row in compared])]  # fmt: skip
    cheaper = sum(row.hand is not None and row.ours != row.hand and row.ours.within(row.hand) for row in rows)
    lines = [
        f"{len(rows)} files lack a fence; {len(compared)} have a hand-made twin: {totals[0]} fences (cycles) by hand, "
        f"{totals[1]} by `fix`, fewer or cheaper in {cheaper} files, more or dearer in "
        f"{sum('dearer' in row.wrong for row in rows)}. {sum(not row.good for row in rows)} have something wrong.",
        "",
        "| file | by hand | `fix` | wrong |",
        "|---|---|---|---|",
    ]
    for row in rows:
        note = " (and findings that no fence repairs)" if row.rest else ""
        lines.append(f"| `{row.name}`{note} | {row.hand or ''} | {row.ours} | {', '.join(row.wrong)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    chosen = [path.resolve() for path in parser.parse_args().paths]
    rows = [row for path in chosen or paths() if (row := repair(path)) is not None]
    text = table(rows)
    print(text)
    if not chosen:
        old = PAGE.read_text()
        PAGE.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{text}\n{old[old.index(END) :]}")
    return 0 if all(row.good for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
