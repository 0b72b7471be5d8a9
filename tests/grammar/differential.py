"""Differential fuzz of the front end: real PTX with one token changed, ptxas against us.

`python -m tests.grammar.differential --count 10000 --output out.txt FILE...` runs it at length; the daily suite
runs a small sample. Nothing that ptxas accepts may be refused, and nearly all of what it calls a parsing error
must be.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ptxfence.grammar import parse, validate
from tests.grammar.assembler import Verdict, assemble

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"]*"|[.%$]?[\w$]+(?:::\w+)*|\s+|<<|>>|&&|\|\||.', re.DOTALL)
_TARGET = re.compile(r"\.target\s+(sm_\w+)")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed text; `what` says how, `line` where (from 1)."""

    text: str
    what: str
    line: int


@dataclass(slots=True)
class Tally:
    """What came of a run: counts by (ptxas, us), and the two kinds of disagreement."""

    counts: Counter[tuple[Verdict, bool]] = field(default_factory=Counter)
    wrongly_refused: list[str] = field(default_factory=list)
    wrongly_taken: list[str] = field(default_factory=list)

    @property
    def refused_share(self) -> float:
        """Of the mutants that ptxas ends with a parsing error, the share that we refuse."""
        refused = self.counts[(Verdict.SYNTAX, True)]
        total = refused + self.counts[(Verdict.SYNTAX, False)]
        return refused / total if total else 1.0


def mutants(text: str, count: int, seed: int) -> Iterator[Mutant]:
    """`count` mutants of `text`: one token removed, doubled, replaced, inserted or swapped with the next."""
    rng = random.Random(seed)
    tokens = _TOKEN.findall(text)
    solid = [index for index, token in enumerate(tokens) if not token.isspace() and token[:2] not in ("//", "/*")]
    words = [tokens[index] for index in solid]
    for _ in range(count):
        number = rng.randrange(len(solid) - 1)
        at = solid[number]
        kind = rng.choice(("remove", "double", "replace", "insert", "swap"))
        changed = list(tokens)
        other = rng.choice(words)
        if kind == "remove":
            changed[at] = ""
        elif kind == "double":
            changed[at] += " " + tokens[at]
        elif kind == "replace":
            changed[at] = other
        elif kind == "insert":
            changed[at] = f"{other} {tokens[at]}"
        else:
            changed[at], changed[solid[number + 1]] = tokens[solid[number + 1]], tokens[at]
        what = f"{kind} {tokens[at]!r}" + (f" {other!r}" if kind in ("replace", "insert") else "")
        yield Mutant("".join(changed), what, "".join(tokens[:at]).count("\n") + 1)


def compare(texts: Sequence[tuple[str, str]], count: int, seed: int) -> Tally:
    """Runs `count` mutants over (name, text) pairs, shared out evenly."""
    tally = Tally()
    each = max(1, count // len(texts))
    for position, (name, text) in enumerate(texts):
        target = _TARGET.search(text)
        arch = target[1] if target else "sm_90a"
        for mutant in mutants(text, each, seed + position):
            if mutant.text != text:
                _judge(tally, name, mutant, arch)
    return tally


def _judge(tally: Tally, name: str, mutant: Mutant, arch: str) -> None:
    errors = validate(parse(mutant.text, name))
    verdict, said = assemble(mutant.text, arch)
    tally.counts[(verdict, bool(errors))] += 1
    line = mutant.text.split("\n")[mutant.line - 1].strip()[:100]
    if verdict is Verdict.ACCEPTED and errors:
        tally.wrongly_refused.append(f"{name}:{mutant.line}: {mutant.what}: {line} -> {errors[0].message}")
    elif verdict is Verdict.SYNTAX and not errors:
        tally.wrongly_taken.append(f"{name}:{mutant.line}: {mutant.what}: {line} -> {said}")


def report(tally: Tally) -> str:
    lines = [f"mutants: {sum(tally.counts.values())}"]
    for (verdict, refused), number in sorted(tally.counts.items(), key=lambda item: (item[0][0].value, item[0][1])):
        lines.append(f"ptxas {verdict.value}, ptxfence {'refuses' if refused else 'takes'}: {number}")
    lines.append(f"share of parsing errors refused: {tally.refused_share:.4f}")
    lines += ["", "accepted by ptxas, refused by us:", *tally.wrongly_refused]
    lines += ["", "parsing error for ptxas, taken by us:", *tally.wrongly_taken]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--output", type=Path)
    chosen = options.parse_args()
    texts = [(path.name, path.read_bytes().decode("utf-8", "surrogateescape")) for path in chosen.files]
    text = report(compare(texts, chosen.count, chosen.seed))
    print(text)
    if chosen.output is not None:
        chosen.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
