"""Takes every async proxy fence out of right kernels and lets `fix --policy cheapest` put back what is needed.

    python bench/reinsert.py FOLDER ...            # one source a folder
    python bench/reinsert.py --page FOLDER ...     # and the table into docs/rewrite.md

Prints, per file, fences and estimated cycles (bench/costs.py) of the author and of ptxfence. Exit status 1 if any
kernel got more fences or dearer ones than its author needed, is not proven, or has a pair uncovered by the recheck
that the author's text has not. Files that are not proven, or have no fence, are not used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.costs import Cost, Pairs, is_fence, uncovered, weights  # noqa: E402
from ptxfence.analysis.check import analyse  # noqa: E402
from ptxfence.analysis.report import Edit, Severity, Verdict  # noqa: E402
from ptxfence.errors import PtxFenceError  # noqa: E402
from ptxfence.grammar import PtxFile, parse  # noqa: E402
from ptxfence.rewrite.edits import apply, remove_statement  # noqa: E402
from ptxfence.rewrite.patch import fix  # noqa: E402

PAGE = ROOT / "docs" / "rewrite.md"
BEGIN, END = "<!-- reinsert: written by bench/reinsert.py -->", "<!-- end of reinsert -->"
LIMIT = 120.0  # seconds for the analysis of one kernel


@dataclass(frozen=True, slots=True)
class Outcome:
    """One file; `unused` says why it tells nothing, `wrong` what should not be."""

    name: str
    author: Cost
    ours: Cost
    unused: str = ""
    wrong: str = ""

    def __str__(self) -> str:
        if self.unused:
            return f"{self.name}: not used ({self.unused})"
        return f"{self.name}: {self.author} -> {self.ours} fences (cycles){'  <-- ' if self.wrong else ''}{self.wrong}"


def count(file: PtxFile) -> Cost:
    found = weights(file)
    return Cost(len(found), sum(found.values()))


def strip(file: PtxFile) -> str | None:
    """The text without its fences; None where one shares its lines with others."""
    edits: list[Edit] = []
    for function in (f for module in file.modules for f in module.functions if f.has_body):
        for instruction in function.instructions:
            if not is_fence(instruction.opcode):
                continue
            edit = remove_statement(file, function, instruction.index)
            if edit is None:
                return None
            edits.append(edit)
    return apply(file.text, edits)


def reinsert(path: Path) -> Outcome:
    """What becomes of one file."""
    name, nothing = "/".join(path.parts[-2:]), Cost(0, 0)
    try:
        return _reinsert(path, name)
    except PtxFenceError as error:
        return Outcome(name, nothing, nothing, wrong=f"{type(error).__name__}: {error}")


def _reinsert(path: Path, name: str) -> Outcome:
    file = parse(path.read_text(), path.name)
    author = count(file)
    if author.fences == 0:
        return Outcome(name, author, author, unused="no fence")
    before = analyse(file, timeout=LIMIT)
    if before.verdict is not Verdict.PROVEN:
        return Outcome(name, author, author, unused=before.verdict.value)
    text = strip(file)
    if text is None:
        return Outcome(name, author, author, unused="a fence shares its line")
    bare = parse(text, path.name)
    patch = fix(bare, analyse(bare), level=Severity.WARNING, policy="cheapest")
    again = parse(patch.text, path.name)
    return Outcome(name, author, ours := count(again), wrong=_wrong(author, ours, patch.after.verdict, file, again))


def _wrong(author: Cost, ours: Cost, verdict: Verdict, file: PtxFile, again: PtxFile) -> str:
    found: list[str] = [] if ours.within(author) else ["dearer"]
    if verdict is not Verdict.PROVEN:
        found.append(verdict.value)
    new: Pairs = uncovered(again) - uncovered(file)
    if new:
        found.append(f"recheck finds {len(new)} pairs")
    return ", ".join(found)


def table(sources: dict[str, list[Outcome]]) -> str:
    lines = [
        "| source | kernels files | used | fences (cycles) of the author | of `fix` | fewer or cheaper | wrong |",
        "|---|---|---|---|---|---|---|",
    ]
    every = [outcome for outcomes in sources.values() for outcome in outcomes]
    for name, outcomes in (*sources.items(), ("all", every)):
        used = [o for o in outcomes if not o.unused]
        better = sum(o.ours != o.author and o.ours.within(o.author) for o in used)
        wrong = sum(bool(o.wrong) for o in used)
        author, ours = _sum([o.author for o in used]), _sum([o.ours for o in used])
        lines.append(f"| {name} | {len(outcomes)} | {len(used)} | {author} | {ours} | {better} | {wrong} |")
    return "\n".join([*lines, *(f"\n{o}" for o in every if o.wrong)]).replace("kernels files", "files")


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(sum(c.fences for c in costs), sum(c.cycles for c in costs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--page", action="store_true", help="write the table into docs/rewrite.md")
    options = parser.parse_args()
    sources: dict[str, list[Outcome]] = {}
    for root in options.paths:
        for path in sorted(root.rglob("*.ptx")) if root.is_dir() else [root]:
            outcome = reinsert(path)
            sources.setdefault(root.name, []).append(outcome)
            print(outcome, flush=True)
    text = table(sources)
    print(text)
    if options.page:
        old = PAGE.read_text()
        PAGE.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{text}\n{old[old.index(END) :]}")
    return 1 if any(o.wrong for outcomes in sources.values() for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
