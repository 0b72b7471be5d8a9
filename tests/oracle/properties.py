"""What must hold between the oracle and the tool on any kernel; each check returns its disagreements as texts."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from unittest.mock import patch

import ptxfence
from ptxfence.analysis import check as analysis
from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.events import Events
from ptxfence.analysis.inline import Routine
from ptxfence.analysis.report import Confidence, Finding, Report
from ptxfence.analysis.values import Values
from ptxfence.grammar import Module, PtxFile, parse
from ptxfence.rewrite.recheck import uncovered
from tests.oracle.kernels import ORACLE_WARP, Kernel
from tests.oracle.run import Hazard, Observations, run

MISSING = frozenset({"PF101", "PF102", "PF103", "PF104", "PF111"})  # rules that ask for a generic/async fence


@dataclass(frozen=True, slots=True)
class Disagreement:
    """`what` is the property: soundness, race, inflight, certain, fixed, ..."""

    what: str
    text: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The kernel as the analysis reads it, and its report before any setting."""

    file: PtxFile
    events: Events | None  # None: nothing in it that could be in hazard
    report: Report


def check(kernel: Kernel) -> Checked:
    """Analyses the kernel; keeps the events, which the recheck reads as well."""
    file = parse(kernel.text(32), "generated.ptx")
    kept: list[Events] = []

    def keep(module: Module, function: Routine, cfg: Cfg, values: Values) -> Events:
        kept.append(Events(module, function, cfg, values))
        return kept[-1]

    with patch.object(analysis, "Events", keep):
        report = analysis.analyse(file)
    return Checked(file, kept[0] if kept else None, report)


def observe(kernel: Kernel, seed: int, *, text: str = "", schedules: int = 2, thorough: bool = False) -> Observations:
    """The oracle's hazards over trip counts and branches: a sample of both, or `thorough` all combinations.

    `text` stands in for the kernel's own (a patched version of it).
    """
    combinations = 1 << kernel.flags
    if thorough:
        runs = list(product(kernel.trips, range(combinations)))
    else:
        rng = random.Random(seed)
        some = {0, combinations - 1, rng.randrange(combinations)}
        runs = [(trip, flags) for trip in kernel.trips for flags in some]
    hazards: set[Hazard] = set()
    deadlocks: list[str] = []
    executed: set[int] = set()
    for trip, flags in runs:
        params = {"2": trip, "3": flags}
        seen = run(text or kernel.oracle_text, warp=ORACLE_WARP, schedules=schedules, seed=seed, params=params)
        hazards |= seen.hazards
        deadlocks += seen.deadlocks
        executed |= seen.executed
    return Observations(frozenset(hazards), tuple(deadlocks), frozenset(executed), schedules * len(runs))


def family(rule: str) -> str:
    return "missing" if rule in MISSING else rule


def _lines(finding: Finding) -> set[int]:
    return {finding.first.line, *(other.line for other in finding.others)}


def _told(hazard: Hazard, report: Report) -> bool:
    """Whether a finding names this pair, or the first access with an operation that comes before this one."""
    kind = family(hazard.rule)
    for finding in report.findings:
        if finding.second is None:
            continue
        if family(finding.rule) == kind and hazard.first in _lines(finding):
            return True
        if hazard.unsynchronised and {hazard.first, hazard.second} == {finding.first.line, finding.second.line}:
            return True  # a race has no order: told from either end
    return False


def soundness(seen: Observations, report: Report) -> list[Disagreement]:
    """(a) What the oracle catches, check reports; an undecided kernel may miss it.

    Lanes of one warp without a warp barrier are accused by no rule. Where check tells that nothing orders the accesses
    before an operation, that its end is observed nowhere goes without saying.
    """
    if report.verdict.value == "undecided":
        return []
    found: list[Disagreement] = []
    turned = {(h.second, h.first) for h in seen.hazards if h.kind != "INFLIGHT"}
    races = (f for f in report.findings if family(f.rule) == "missing" and f.anchor is None)
    racing = {f.second.line for f in races if f.second is not None}
    for hazard in sorted(seen.hazards, key=lambda h: (h.first, h.second, h.kind, h.unsynchronised)):
        if not hazard.rule or hazard.stale or hazard.lanes or _told(hazard, report):
            continue
        if hazard.kind == "INFLIGHT":
            implied = hazard.unsynchronised and (hazard.first, hazard.second) in turned
            if not implied and not racing & {hazard.first, hazard.second}:
                found.append(Disagreement("inflight", f"missed {hazard}"))
        else:
            found.append(Disagreement("race" if hazard.unsynchronised else "soundness", f"missed {hazard}"))
    return found


def certainty(
    kernel: Kernel, seed: int, seen: Observations, report: Report, confidence: Confidence = Confidence.CERTAIN
) -> list[Disagreement]:
    """(b) What check reports with this confidence, some schedule exhibits; looks harder before it complains."""
    found = _unexhibited(seen, report, confidence)
    if found:
        found = _unexhibited(observe(kernel, seed, schedules=12, thorough=True), report, confidence)
    return found


def _unexhibited(seen: Observations, report: Report, confidence: Confidence) -> list[Disagreement]:
    pairs = {(h.first, h.second, family(h.rule)) for h in seen.hazards}
    found: list[Disagreement] = []
    for finding in report.findings:
        second = finding.second
        if not finding.rule.startswith("PF1") or second is None or finding.confidence is not confidence:
            continue
        if second.line not in seen.executed:
            continue
        kind = family(finding.rule)
        if any((first, second.line, kind) in pairs for first in _lines(finding)):
            continue
        cause = finding.cause.value if finding.cause is not None else ""
        text = f"{finding.rule} {cause} of lines {sorted(_lines(finding))} and {second.line} never happens"
        found.append(Disagreement(confidence.value, text))
    return found


def fixed(kernel: Kernel, seed: int, before: Observations | None = None) -> list[Disagreement]:
    """(c) After fix the oracle finds nothing that a fence can repair; where threads are not ordered, the report must
    say that it offers no fence. `before`: what the oracle saw of the kernel as it is."""
    fixed = ptxfence.fix(kernel.text(32), config={"fix_level": "warning"})
    if before is None or fixed.changed:
        before = observe(kernel, seed, text=_transplant(kernel, fixed.text))
    seen = before.hazards
    open_ends = [f for f in fixed.after.findings if f.anchor is None and f.second is not None]
    refused = {(place.line, f.second.line) for f in open_ends for place in (f.first, *f.others) if f.second is not None}
    missing = (h for h in seen if family(h.rule) == "missing" and not h.unsynchronised)
    left = [h for h in missing if (h.first, h.second) not in refused]
    return [Disagreement("fixed", f"left after fix: {hazard}") for hazard in left]


def _transplant(kernel: Kernel, patched: str) -> str:
    """The inserted lines of a patch, put at the same places of the small-warp text."""
    small = kernel.oracle_text.splitlines()
    original = kernel.text(32).splitlines()
    result: list[str] = []
    at = 0
    for line in patched.splitlines():
        if at < len(original) and line == original[at]:
            result.append(small[at])
            at += 1
        else:
            result.append(line)
    if at != len(original):
        raise ValueError("the patch does not only add lines")
    return "\n".join(result) + "\n"


def rechecked(checked: Checked) -> list[Disagreement]:
    """(f) The independent recheck and check agree on whether and where a fence is missing.

    A pair needs a counterpart with the same access or the same operation: check leaves out accesses that a later one
    of the same thread replaces, and operations behind one that it has reported.
    """
    report = checked.report
    if report.verdict.value == "undecided" or checked.events is None:
        return []
    lines = [checked.file.position(i.start)[0] for i in checked.events.function.instructions]
    pairs = {(lines[u.access], lines[u.operation]) for u in uncovered(checked.events)}
    missing = [f for f in report.findings if family(f.rule) == "missing" and f.second is not None]
    told = _told_pairs(missing)
    texts = [f"check does not know {pair}" for pair in _unrelated(pairs, told)]
    repairable = _told_pairs(f for f in missing if f.anchor is not None)  # a race: no trail leads from one to the other
    texts += [f"recheck does not know {pair}" for pair in _unrelated(repairable, pairs)]
    return [Disagreement("recheck", text) for text in texts]


def _told_pairs(findings: Iterable[Finding]) -> list[tuple[int, int]]:
    return [(line, f.second.line) for f in findings if f.second is not None for line in _lines(f)]


def _unrelated(pairs: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs that share neither their access nor their operation with one of `others`."""
    firsts, seconds = {first for first, _ in others}, {second for _, second in others}
    return sorted(pair for pair in pairs if pair[0] not in firsts and pair[1] not in seconds)


def _shape(report: Report) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    findings = sorted((f.rule, f.severity.name, f.cause.value if f.cause else "") for f in report.findings)
    return report.verdict.value, tuple(findings)


def unchanged(kernel: Kernel, report: Report) -> list[Disagreement]:
    """(d) Names, line endings and irrelevant instructions do not matter."""
    text = kernel.text(32)
    base = _shape(report)
    variants = {
        "renamed": re.sub(r"(?<!\.)\b(acc|mine|ph\d|[isx]\d+|p\d+|v\d)\b(?!<)", r"\1_x", _declared(text)),
        "crlf": text.replace("\n", "\r\n"),
        "padded": re.sub(r"(\tbar\.sync 0;\n)", r"\1\tadd.u32 pad, pad, 1;\n", text).replace(
            ".reg .b64 out,", ".reg .b32 pad;\n\t.reg .b64 out,"),
    }  # fmt: skip
    found: list[Disagreement] = []
    for name, variant in variants.items():
        shape = _shape(analysis.analyse(parse(variant)))
        if shape != base:
            found.append(Disagreement("unchanged", f"{name}: {shape}, not {base}"))
    return found


def _declared(text: str) -> str:
    """Ranges spelled out, so that every register can be renamed by its own name."""

    def spell(match: re.Match[str]) -> str:
        return ", ".join(f"{match[1]}{i}" for i in range(int(match[2])))

    return re.sub(r"\b(\w+)<(\d+)>", spell, text)


def monotone(kernel: Kernel, index: int, report: Report) -> list[Disagreement]:
    """(e) A fence more, before body line `index`, adds no pair."""
    more = kernel.with_line(index, "fence.proxy.async;")
    first_line = kernel.text(32)[: kernel.text(32).index("mov.u32 acc, 0;")].count("\n") + 2
    place = first_line + index
    before, after = _pairs(report), _pairs(analysis.analyse(parse(more.text(32))))
    back = {tuple(n - (n > place) for n in pair[:2]) for pair in after}
    extra = back - {pair[:2] for pair in before}
    return [Disagreement("monotone", f"fence at line {place} adds {sorted(extra)}")] if extra else []


def _pairs(report: Report) -> set[tuple[int, int]]:
    return {
        (first, f.second.line)
        for f in report.findings
        if family(f.rule) == "missing" and f.second is not None
        for first in _lines(f)
    }
