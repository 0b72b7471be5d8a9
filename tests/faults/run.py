"""Plants each fault in a copy of the package and runs the suite until a test fails.

    python -m tests.faults.run                    # the whole table into docs/faults.md
    python -m tests.faults.run --only slots war_dropped

The copy lies in a temporary folder with one of the tests; nothing here is changed. Exit status 1 if a fault is
not noticed, or by none of the quick tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.fault import Fault, planted
from tests.faults.faults import FAULTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
BEGIN, END = "<!-- faults: written by python -m tests.faults.run -->", "<!-- end of faults -->"
LIMIT = 900.0  # seconds for all tests of one fault; a suite that hangs has noticed it too
_PLAIN = (  # no plugin that takes seconds to load
    *("-o", "addopts=", "-m", "not wheels and not long"),
    *("-k", "not today"),  # samples of the day: another one tomorrow
    *("-p", "no:xdist", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"),
)
_VERDICTS = ("tests/litmus/test_litmus.py::test_check", "tests/test_cases.py::test_case")
_REPAIRS = ("tests/test_cases.py::test_fix", "tests/rewrite")
_QUICK = ("tests/analysis", "tests/test_corpus.py", "tests/regressions")
_SLOW = ("tests/oracle", "tests/test_messages.py")
_LAST = ("tests/test_mutations.py", "tests/cli")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`caught` is the test that failed, empty if none did."""

    fault: Fault
    caught: str
    seconds: float


def suite(fault: Fault) -> Iterator[tuple[str, ...]]:
    """The tests to run for a fault: the one that it names, then the others in groups, quick ones first."""
    if fault.caught:
        yield (fault.caught,)
    groups = (_VERDICTS, _QUICK, _REPAIRS, _SLOW, _LAST)
    yield from (_REPAIRS, _VERDICTS, _QUICK, _SLOW, _LAST) if fault.module.startswith("rewrite/") else groups


def workplace(folder: Path) -> Path:
    """Copies of package and tests, and links to what they read, in `folder`; the package."""
    for path in ROOT.iterdir():
        if path.name in ("ptxfence", "tests"):
            shutil.copytree(path, folder / path.name)
        elif path.name != ".git":
            (folder / path.name).symlink_to(path)
    return folder / "ptxfence"


def run(fault: Fault, package: Path, groups: Iterable[Sequence[str]]) -> Outcome:
    """Runs groups of tests until one fails, with the fault planted in `package`, which is as before afterwards."""
    begin = time.monotonic()
    module = package / fault.module
    good = module.read_bytes()
    module.write_text(planted(fault, package))
    try:
        failures = (_first_failure(package.parent, tests) for tests in groups)
        caught = next((test for test in failures if test), "")
    finally:
        module.write_bytes(good)
    return Outcome(fault, caught, time.monotonic() - begin)


def _first_failure(folder: Path, tests: Sequence[str]) -> str:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    words = [sys.executable, "-m", "pytest", "-x", "-rfE", *_PLAIN, *tests]
    try:
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "time limit"
    if done.returncode == 0:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (1, 2) or found is None:
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
    return found[1]


def table(outcomes: Sequence[Outcome]) -> str:
    lines = ["| fault | module | what it breaks | noticed first by |", "|---|---|---|---|"]
    for outcome in outcomes:
        fault, caught = outcome.fault, f"`{outcome.caught.removeprefix('tests/')}`" if outcome.caught else "nothing"
        lines.append(f"| `{fault.name}` | `{fault.module}` | {fault.breaks} | {caught} |")
    noticed = sum(bool(outcome.caught) for outcome in outcomes)
    return f"{len(outcomes)} faults, {noticed} noticed.\n\n" + "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="names of faults")
    parser.add_argument("--unnamed", action="store_true", help="only faults that name no test yet")
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS if options.only is None or fault.name in options.only]
    chosen = [fault for fault in chosen if not (options.unnamed and fault.caught)]
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as name:
        package = workplace(Path(name))
        for fault in chosen:
            outcome = run(fault, package, suite(fault))
            outcomes.append(outcome)
            print(f"{fault.name}: {outcome.caught or 'NOT NOTICED'} ({outcome.seconds:.0f} s)", flush=True)
    if chosen == list(FAULTS):
        old = PAGE.read_text()
        PAGE.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{table(outcomes)}\n{old[old.index(END) :]}")
    return 0 if all(outcome.caught for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
