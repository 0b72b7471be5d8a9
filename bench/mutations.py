"""Every mutant of every clean kernel of the corpus and of the cases (tests/mutations.py), as docs/mutations.md.

    python bench/mutations.py [--jobs 2]

Exits with 1 if a mutant is judged wrongly: not reported and nothing explains why, or reported for pairs that do not
need the fence.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.mutations import KINDS, Mutant, clean, explain, fault, fences, judge, kernels, mutate  # noqa: E402

PAGE = ROOT / "docs/mutations.md"
_KINDS = {
    "delete": "deleted",
    "across": "moved across the nearest barrier or arrival",
    "early": "moved in front of the first generic store to shared memory",
    "lone": "executed by thread 0 only",
    "narrow": "`.global` in place of a shared form, `.shared::cta` in place of the unqualified one",
    "twice": "doubled (stays proven, the copy is called redundant)",
    "thread": "replaced by `fence.acq_rel.cta`",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One mutant. `why` is empty where it is reported, `fault` where the judgement is right."""

    path: str
    line: int
    kind: str
    reported: bool
    why: str
    fault: str


def rows(path: Path) -> list[Row]:
    text = path.read_text()
    found: list[Row] = []
    for fence in fences(text):
        mutants = (mutate(text, fence, kind) for kind in KINDS)
        found += [_row(path, text, mutant) for mutant in mutants if mutant is not None]
    judge.cache_clear()
    return found


def _row(path: Path, text: str, mutant: Mutant) -> Row:
    reported = not clean(judge(mutant.text))
    why = "" if reported or mutant.kind == "twice" else explain(text, mutant)
    name = str(path.relative_to(ROOT))
    return Row(name, mutant.fence.line, mutant.kind, reported, why, fault(text, mutant))


def page(found: list[Row], files: int) -> str:
    """The text of docs/mutations.md."""
    lines = [
        "# Mutants of clean kernels",
        "",
        "Written by `python bench/mutations.py`. Each async proxy fence of each kernel that is proven, in the",
        "corpus and in `tests/cases`, is changed in seven ways. A mutant must be reported, unless the pairs of",
        "accesses that the fence ordered are covered still: by other fences, which the second table names, or by",
        "the changed fence itself where it now stands. For those the second opinion of `fix`",
        "(ptxfence/rewrite/recheck.py, a path search without the flow analysis) is asked as well. A changed fence",
        "may never lead to reports that its absence does not lead to; a thread fence, and a `.global` fence for",
        "shared memory, must lead to the same reports as none.",
        "",
        f"{files} files, {len(found)} mutants.",
        "",
        "| change | mutants | reported | covered still | orders nothing | unexplained |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_total(kind, [row for row in found if row.kind == kind]) for kind in KINDS),
        "",
        "## Not reported, and why",
        "",
        "| file | fence at line | changes | why |",
        "| --- | --- | --- | --- |",
        *_kept(row for row in found if row.why),
    ]
    faults = [f"| {row.path} | {row.line} | {row.kind} | {row.fault} |" for row in found if row.fault]
    if faults:
        lines += ["", "## Wrong", "", "| file | line | change | fault |", "| --- | --- | --- | --- |", *faults]
    return "\n".join(lines) + "\n"


def _total(kind: str, found: list[Row]) -> str:
    if kind == "twice":
        kept = Counter("wrong" if row.fault else "covered" for row in found)
    else:
        kept = Counter(_class(row) for row in found if not row.reported)
    numbers = (len(found), sum(r.reported for r in found), kept["covered"], kept["nothing"], kept["wrong"])
    return f"| {_KINDS[kind]} | {' | '.join(map(str, numbers))} |"


def _class(row: Row) -> str:
    if not row.why:
        return "wrong"
    return "nothing" if row.why.startswith("orders nothing") else "covered"


def _kept(found: Iterable[Row]) -> list[str]:
    """One row for each fence and reason."""
    kinds: dict[tuple[str, int, str], list[str]] = {}
    for row in found:
        kinds.setdefault((row.path, row.line, row.why), []).append(row.kind)
    return [f"| {path} | {line} | {', '.join(names)} | {why} |" for (path, line, why), names in kinds.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    paths = [path for folder in ("corpus", "tests/cases") for path in kernels(ROOT / folder)]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        found = [row for part in pool.map(rows, paths) for row in part]
    PAGE.write_text(page(found, len(paths)))
    wrong = [row for row in found if row.fault]
    for row in wrong:
        print(f"{row.path}:{row.line}: {row.kind}: {row.fault}")
    print(f"{len(paths)} files, {len(found)} mutants, {len(wrong)} judged wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
