"""What `fix --optimize` takes out of, narrows or moves in kernels that are right.

    python bench/optimize.py FOLDER ...            # one source a folder; a file is a source of its own
    python bench/optimize.py --page FOLDER ...     # and the table into docs/rewrite.md

Prints each step: the line of the fence, what was done, the cycles saved in one execution and the loops around it
(bench/costs.py). Files that are not proven, or have no fence, are not used. Exit status 1 if a text is not proven or
does not assemble afterwards.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.costs import Cost, weights  # noqa: E402
from ptxfence.analysis.check import analyse  # noqa: E402
from ptxfence.analysis.report import Severity, Verdict  # noqa: E402
from ptxfence.errors import AssemblyError  # noqa: E402
from ptxfence.grammar import parse  # noqa: E402
from ptxfence.rewrite.assemble import assemble  # noqa: E402
from ptxfence.rewrite.patch import fix  # noqa: E402
from ptxfence.rewrite.wishes import Saving  # noqa: E402

PAGE = ROOT / "docs" / "rewrite.md"
BEGIN, END = "<!-- optimize: written by bench/optimize.py -->", "<!-- end of optimize -->"
LIMIT = 120.0  # seconds for the analysis of one kernel
KINDS = {"PF201": "removed", "PF202": "narrowed", "PF203": "moved"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One file; `wrong` says what should not be."""

    name: str
    before: Cost
    after: Cost
    savings: tuple[Saving, ...]
    wrong: str = ""


def optimize(path: Path) -> Outcome | None:
    """What becomes of one file; None where there is nothing to optimise."""
    file = parse(path.read_text(), path.name)
    before = weights(file)
    report = analyse(file, timeout=LIMIT) if before else None
    if report is None or report.verdict is not Verdict.PROVEN:
        return None
    patch = fix(file, report, level=Severity.WARNING, optimize=True)
    after = weights(parse(patch.text, path.name))
    wrong = "" if patch.after.verdict is Verdict.PROVEN else patch.after.verdict.value
    if patch.edits:
        try:
            assemble(patch.text)
        except AssemblyError as error:
            wrong = f"not assembled: {error}"
    old, new = (Cost(len(fences), sum(fences.values())) for fences in (before, after))
    return Outcome("/".join(path.parts[-2:]), old, new, patch.savings, wrong)


def table(sources: dict[str, list[Outcome]]) -> str:
    lines = [
        "| source | files used | fences (cycles) | after `--optimize` | removed | narrowed | moved | wrong |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, outcomes in sources.items():
        costs = [
            Cost(sum(c.fences for c in found), sum(c.cycles for c in found))
            for found in ([o.before for o in outcomes], [o.after for o in outcomes])
        ]
        kinds = Counter(KINDS[s.rule] for o in outcomes for s in o.savings)
        steps = " | ".join(str(kinds[kind]) for kind in KINDS.values())
        wrong = sum(bool(o.wrong) for o in outcomes)
        lines.append(f"| {name} | {len(outcomes)} | {costs[0]} | {costs[1]} | {steps} | {wrong} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--page", action="store_true", help="write the table into docs/rewrite.md")
    options = parser.parse_args()
    sources: dict[str, list[Outcome]] = {}
    for root in options.paths:
        found = sources.setdefault(root.name if root.is_dir() else f"{root.parent.name}/{root.name}", [])
        for path in sorted(root.rglob("*.ptx")) if root.is_dir() else [root]:
            outcome = optimize(path)
            if outcome is None:
                continue
            found.append(outcome)
            for step in outcome.savings:
                where = f"{outcome.name}:{step.line}: {KINDS[step.rule]}: {step.what}"
                print(f"{where}, {step.cycles} cycles, in {step.depth} loops", flush=True)
            if outcome.wrong:
                print(f"{outcome.name}: {outcome.wrong}", flush=True)
    text = table(sources)
    print(text)
    if options.page:
        old = PAGE.read_text()
        PAGE.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{text}\n{old[old.index(END) :]}")
    return 1 if any(o.wrong for outcomes in sources.values() for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
