"""Hostile inputs guided by coverage: atheris on the parser or on `check`.

    pip install 'ptxfence[fuzz]'
    python bench/trust/guided.py --target check --seconds 3600 --page

Starts from a sample of the kernels of tests/fuzz and half the time changes a text as tests/fuzz/mutate.py does. What
libFuzzer keeps as a crash goes to `--keep`, shrunk. The figures are libFuzzer's: inputs run, branches seen (`cov`).
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
BEGIN, END = "<!-- guided: written by bench/trust/guided.py -->", "<!-- end of guided -->"
LIMITS = ("-rss_limit_mb=2048", "-timeout=30", "-max_len=20000", "-print_final_stats=1")
PACKAGES = ("ptxfence.grammar", "ptxfence.analysis")


def fuzz(target: str, arguments: list[str]) -> None:
    """Runs libFuzzer in this process; does not come back."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["ptxfence"]):
        for name in PACKAGES:
            for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
                importlib.import_module(module.name)
        import ptxfence
        from ptxfence.errors import PtxFenceError
        from ptxfence.grammar import parse
    from tests.fuzz.mutate import GENTLE, mutate

    def one(data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        try:
            if target == "check":
                ptxfence.check(text)
            else:
                file = parse(text)
                _ = [i.operands for module in file.modules for f in module.functions for i in f.instructions]
        except PtxFenceError:
            pass

    def change(data: bytes, size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return atheris.Mutate(data, size)
        text = mutate(rng, data.decode("utf-8", "surrogateescape"), GENTLE)
        return text.encode("utf-8", "surrogateescape")[:size]

    atheris.Setup([sys.argv[0], *arguments], one, custom_mutator=change)
    atheris.Fuzz()


def run(target: str, seconds: int, keep: Path) -> tuple[str, bool]:
    """A sentence about a run and whether it went well."""
    from tests.fuzz.judge import compiled, kernels

    with tempfile.TemporaryDirectory() as folder:
        seeds, crashes = Path(folder) / "seeds", Path(folder) / "crashes"
        seeds.mkdir()
        crashes.mkdir()
        for i, text in enumerate((*kernels()[::8], *compiled()[::8])):
            (seeds / str(i)).write_text(text)
        words = [sys.executable, __file__, "--target", target, "--inside", *LIMITS]
        words += [f"-max_total_time={seconds}", f"-artifact_prefix={crashes}/", str(seeds)]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", cwd=ROOT, check=False)
        failed = sorted(crashes.iterdir())
        for path in failed:
            store(path, keep)
    inputs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    if inputs is None or not covered:
        raise SystemExit(done.stderr[-3000:])
    text = f"`{target}`: {int(inputs[1]):,} inputs in {seconds} s, {covered[-1]} branches, {len(failed)} failures."
    return text, not failed and done.returncode == 0


def store(path: Path, keep: Path) -> None:
    from tests.fuzz.judge import complaint
    from tests.fuzz.mutate import shrink

    text = path.read_bytes().decode("utf-8", "surrogateescape")
    if complaint(text, repeat=True):
        text = shrink(text, lambda smaller: bool(complaint(smaller, repeat=True)))
    keep.mkdir(parents=True, exist_ok=True)
    target = keep / f"guided_{path.name[-8:]}.ptx"
    target.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    print(f"kept {target.name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=("parse", "check", "both"), default="both")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", type=Path, default=ROOT / "tests" / "regressions")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/trust.md")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.inside:
        fuzz(options.target, rest)
    targets = ("parse", "check") if options.target == "both" else (options.target,)
    results = [run(target, options.seconds, options.keep) for target in targets]
    text = "\n".join(line for line, _ in results)
    print(text)
    if options.page:
        page = ROOT / "docs" / "trust.md"
        old = page.read_text()
        page.write_text(f"{old[: old.index(BEGIN)]}{BEGIN}\n{text}\n{old[old.index(END) :]}")
    return 0 if all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
