"""Expectation comments, and what counts as agreement between them, the oracle and the analysis."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ptxfence.analysis.report import Finding, Report
from tests.oracle import Hazard, Observations, run

_EXPECT = re.compile(r"// expect: ([^\n]*)")


@dataclass(frozen=True, slots=True, order=True)
class Expectation:
    """`line` (from 1) of the second access. `cause` may name several, where the contract fits more than one: `a|b`.
    A severity that ends in `?` is the most that the analysis may say; it may stay silent (contract 2: "at most")."""

    line: int
    rule: str
    severity: str
    cause: str


def expectations(text: str) -> list[Expectation]:
    """`// expect: PF101 error no-fence; ...` comments of a text; PF2xx and PF301 are left out."""
    found: list[Expectation] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _EXPECT.search(line)
        for part in match[1].split(";") if match is not None else ():
            rule, severity, cause = [*part.split(), "", ""][:3]
            if rule.startswith("PF1"):
                found.append(Expectation(number, rule, severity, cause))
    return found


def observe(
    text: str, warp: int = 32, schedules: int = 6, seed: int = 0, loops: Iterable[int] = (2, 0)
) -> Observations:
    """Runs a kernel with its third parameter (`n` of the tables) at each of `loops`, once if it is not used."""
    if not re.search(r"[ ,]n[,;)]", text.replace("ld.param.u32 n,", "")):
        loops = (2,)
    hazards: set[Hazard] = set()
    deadlocks: list[str] = []
    executed: set[int] = set()
    for value in loops:
        seen = run(text, warp=warp, schedules=schedules, seed=seed, params={"2": value})
        hazards |= seen.hazards
        deadlocks += seen.deadlocks
        executed |= seen.executed
    return Observations(frozenset(hazards), tuple(deadlocks), frozenset(executed), schedules)


def essential(hazards: Iterable[Hazard]) -> set[Hazard]:
    """Hazards that a rule names; of a race seen in both orders the one with the async operation second."""
    named = {h for h in hazards if h.rule and not h.stale}
    turned = {(h.second, h.first) for h in named if h.kind != "INFLIGHT"}
    return {h for h in named if not (h.kind == "INFLIGHT" and h.unsynchronised and (h.first, h.second) in turned)}


def differences(report: Report, expected: Iterable[Expectation]) -> list[str]:
    """How the analysis differs from the comments: PF1xx rules with line, severity and cause, and the verdict."""
    wanted = {(e.line, e.rule): e for e in expected}
    found: dict[tuple[int, str], Finding] = {}
    for finding in report.findings:
        if finding.rule.startswith("PF1"):
            found[(finding.second or finding.first).line, finding.rule] = finding
    required = {place for place, e in wanted.items() if not e.severity.endswith("?")}
    texts = [f"line {n}: no {rule}" for n, rule in sorted(required - found.keys())]
    texts += [f"line {n}: {rule} is not expected" for n, rule in sorted(found.keys() - wanted.keys())]
    for place in sorted(wanted.keys() & found.keys()):
        want, got = wanted[place], found[place]
        cause = got.cause.value if got.cause is not None else ""
        wrong = got.severity.name.lower() != want.severity.rstrip("?")
        if wrong or (want.cause and cause not in want.cause.split("|")):
            texts.append(f"line {place[0]}: {got.rule} {got.severity.name.lower()} {cause}, not {want}")
    serious = any(e.severity in ("error", "warning") for e in wanted.values())
    verdict = "hazard" if serious else "proven"
    if report.verdict.value != verdict:
        texts.append(f"verdict {report.verdict.value}, not {verdict}")
    return texts


def disagreements(hazards: Iterable[Hazard], expected: Iterable[Expectation]) -> list[str]:
    """How hazards differ from the comments; empty when they agree.

    Several operations after one synchronisation are one finding: a further operation needs no comment of its own if
    one of its first accesses already has a finding of that rule.
    """
    real = essential(hazards)
    wanted = {(e.line, e.rule) for e in expected}
    missing = [f"line {n}: {rule} never happened" for n, rule in sorted(wanted - {(h.second, h.rule) for h in real})]
    told = {(h.first, h.rule) for h in real if (h.second, h.rule) in wanted}
    extra = sorted(
        f"line {h.second}: {h.rule} with line {h.first}"
        for h in real
        if (h.second, h.rule) not in wanted and (h.first, h.rule) not in told
    )
    return missing + extra
