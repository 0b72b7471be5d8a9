"""Mutants of proven kernels: each async proxy fence deleted, moved, narrowed, ... and what the report then says.

A mutant must be reported, unless something else covers each pair of accesses that the fence ordered. `explain` names
it: the other fences, or the mutated fence itself, which still covers where it now stands (behind a barrier, in
the thread that issues). What it cannot explain is a mistake of the analysis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ptxfence.analysis.check import analyse
from ptxfence.analysis.effects import FenceKind, Mode, Proxy, Role, Space, SyncKind
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.report import Report, Severity, Verdict
from ptxfence.grammar.function import Function
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.module import PtxFile
from ptxfence.grammar.parse import parse
from ptxfence.rewrite.recheck import recheck
from ptxfence.rewrite.roots import roots, routine

KINDS = ("delete", "across", "early", "lone", "narrow", "twice", "thread")
_FENCE = "fence.proxy.async"
_BARRIERS = {SyncKind.BAR, SyncKind.BAR_ARRIVE, SyncKind.WARP, SyncKind.CLUSTER_ARRIVE, SyncKind.MBARRIER_ARRIVE}
_LONE = "{ .reg .pred lone_p; .reg .b32 lone_t; mov.u32 lone_t, %tid.x; setp.eq.u32 lone_p, lone_t, 0; @lone_p "
_NARROWED = {_FENCE: f"{_FENCE}.shared::cta"} | {
    f"{_FENCE}.shared::{s}": f"{_FENCE}.global" for s in ("cta", "cluster")
}

Pair = tuple[str, int, int]
"""Rule, line of the first access, line of the second."""


@dataclass(frozen=True, slots=True)
class Fence:
    """One async proxy fence: `[start, end)` runs from its guard through the `;`, `line` counts from 1."""

    start: int
    end: int
    line: int
    opcode: str
    guard: str
    across: int
    early: int | None


@dataclass(frozen=True, slots=True)
class Mutant:
    """`place` is where the mutated fence stands in `text`; None for a deleted one."""

    kind: str
    fence: Fence
    text: str
    place: tuple[int, int] | None


def fences(text: str) -> list[Fence]:
    """The generic-async proxy fences of a text, in its order."""
    file = parse(text, "<mutant>")
    found: list[Fence] = []
    for module in file.modules:
        for function in module.functions:
            if function.has_body:
                found += _of_function(file, function)
    return found


def _of_function(file: PtxFile, function: Function) -> Iterator[Fence]:
    instructions = list(function.instructions)
    early = next((i.start for i in instructions if _writes_shared(i)), None)
    barriers = [n for n, i in enumerate(instructions) if _is_barrier(i)]
    for number, instruction in enumerate(instructions):
        if not any(fence.kind is FenceKind.ASYNC for fence in lookup(instruction.opcode).fences):
            continue
        nearest = min(barriers, key=lambda n: (abs(n - number), n < number), default=None)
        across = instruction.start
        if nearest is not None:
            across = instructions[nearest].end if nearest > number else instructions[nearest].start
        guard = f"@{'!' if instruction.guard_negated else ''}{instruction.guard} " if instruction.guard else ""
        line = file.position(instruction.start)[0]
        yield Fence(instruction.start, instruction.end, line, instruction.opcode, guard, across, early)


def _is_barrier(instruction: Instruction) -> bool:
    sync = lookup(instruction.opcode).sync
    return sync is not None and sync.kind in _BARRIERS


def _writes_shared(instruction: Instruction) -> bool:
    return any(
        access.proxy is Proxy.GENERIC
        and access.mode & Mode.WRITE
        and access.role is Role.DATA
        and access.space in (Space.CTA, Space.CLUSTER)
        for access in lookup(instruction.opcode).accesses
    )


def mutate(text: str, fence: Fence, kind: str) -> Mutant | None:
    """The mutant, or None where the kind makes nothing new of this fence."""
    whole = text[fence.start : fence.end]
    match kind:
        case "delete":
            return Mutant(kind, fence, _replaced(text, fence, ""), None)
        case "thread":
            return Mutant(kind, fence, _replaced(text, fence, f"{fence.guard}fence.acq_rel.cta;"), None)
        case "twice":
            place = (fence.end + 1, fence.end + 1 + len(whole))
            return Mutant(kind, fence, f"{text[: fence.end]} {whole}{text[fence.end :]}", place)
        case "narrow":
            return _narrowed(text, fence)
        case "lone":
            if fence.guard:
                return None
            return _put(kind, text, fence, f"{_LONE}{whole} }}", whole)
        case "across":
            return _moved(kind, text, fence, fence.across)
        case _:
            return None if fence.early is None else _moved(kind, text, fence, fence.early)


def _narrowed(text: str, fence: Fence) -> Mutant | None:
    """`.global` in place of a shared form, `.shared::cta` in place of the unqualified one."""
    if fence.opcode not in _NARROWED:
        return None
    whole = f"{fence.guard}{_NARROWED[fence.opcode]};"
    return _put("narrow", text, fence, whole, whole)


def _put(kind: str, text: str, fence: Fence, new: str, whole: str) -> Mutant:
    start = fence.start + new.index(whole)
    return Mutant(kind, fence, _replaced(text, fence, new), (start, start + len(whole)))


def _replaced(text: str, fence: Fence, new: str) -> str:
    return text[: fence.start] + new + text[fence.end :]


def _moved(kind: str, text: str, fence: Fence, to: int) -> Mutant | None:
    whole = text[fence.start : fence.end]
    if to >= fence.end:
        text = f"{text[:to]} {whole}{text[to:]}"
        return Mutant(kind, fence, _blank(text, fence.start, fence.end), (to + 1, to + 1 + len(whole)))
    if to < fence.start:
        shift = len(whole) + 1
        text = _blank(text, fence.start, fence.end)
        return Mutant(kind, fence, f"{text[:to]}{whole} {text[to:]}", (to, to + shift - 1))
    return None


def _blank(text: str, start: int, end: int) -> str:
    """Lines and columns of everything else stay what they were."""
    return text[:start] + re.sub(r"[^\r\n]", " ", text[start:end]) + text[end:]


@cache
def judge(text: str) -> Report:
    return analyse(parse(text, "<mutant>"))


def clean(report: Report) -> bool:
    return report.verdict is Verdict.PROVEN and not any(_bad(f.rule, f.severity) for f in report.findings)


def _bad(rule: str, severity: Severity) -> bool:
    return rule.startswith("PF1") and severity >= Severity.WARNING


def pairs(text: str) -> frozenset[Pair]:
    """The pairs of accesses that are reported as unordered."""
    found: set[Pair] = set()
    for finding in judge(text).findings:
        if _bad(finding.rule, finding.severity) and finding.second is not None:
            family = "global" if finding.rule == "PF112" else "shared"
            found |= {(family, place.line, finding.second.line) for place in (finding.first, *finding.others)}
    return frozenset(found)


def without(text: str, gone: list[Fence]) -> str:
    for fence in gone:
        text = _blank(text, fence.start, fence.end)
    return text


def kernels(root: Path) -> list[Path]:
    """The files under `root` that are meant to be clean, are found clean and have async proxy fences."""
    found: list[Path] = []
    for path in sorted(root.glob("**/*.ptx")):
        text = path.read_text()
        meant = not re.search(r"// expect: [^\n]*PF1\d\d (error|warning)", text)
        if meant and _FENCE in text and clean(judge(text)) and fences(text):
            found.append(path)
    return found


def fault(text: str, mutant: Mutant) -> str:
    """What is wrong with the reports of `mutant` and of its like; empty where all is as it must be."""
    report, deleted = judge(mutant.text), pairs(without(text, [mutant.fence]))
    if mutant.kind == "twice":
        return _fault_of_copy(mutant, report)
    here = pairs(mutant.text)
    if not here <= deleted:
        return f"reports pairs that its absence does not: {sorted(here - deleted)}"
    useless = mutant.kind == "thread" or (mutant.kind == "narrow" and ".shared::" in mutant.fence.opcode)
    if useless and here != deleted:
        return f"a fence of another kind covers {sorted(deleted - here)}"
    if not clean(report):
        return ""
    if _second_opinion(mutant.text, deleted):
        return "proven, but the second opinion finds a pair uncovered"
    return "" if explain(text, mutant) else "nothing explains that it is not reported"


def _second_opinion(text: str, wanted: frozenset[Pair]) -> bool:
    """Whether recheck, which shares no flow analysis with check, finds one of the pairs in shared memory uncovered."""
    lines = {(first, second) for family, first, second in wanted if family == "shared"}
    file = parse(text, "<mutant>")
    for module, function in roots(file) if lines else ():
        body = routine(module, function)
        at = [file.position(instruction.start)[0] for instruction in body.instructions]
        if recheck(module, body, lambda a, o, at=at: (at[a], at[o]) in lines):
            return True
    return False


def _fault_of_copy(mutant: Mutant, report: Report) -> str:
    """A second fence right behind the first changes nothing, and is called redundant unless it covers global memory."""
    if not clean(report):
        return "a second fence right behind the first is reported"
    wide = ".shared::cta" not in mutant.fence.opcode
    named = any(f.rule == "PF201" and f.first.line == mutant.fence.line for f in report.findings)
    return "" if named or wide else "the copy is not called redundant"


def explain(text: str, mutant: Mutant) -> str:
    """Why the mutant is not reported; empty where nothing explains it."""
    if mutant.place is not None:
        rest = _blank(mutant.text, *mutant.place)
        if not clean(judge(rest)):
            return _still_covers(mutant)
    return _others(text, mutant.fence)


def _still_covers(mutant: Mutant) -> str:
    """The mutated fence is what keeps the kernel proven: say where it stands."""
    assert mutant.place is not None
    line = mutant.text.count("\n", 0, mutant.place[0]) + 1
    rules = {f.rule for f in judge(mutant.text).findings if f.first.line == line and f.second is None}
    if "PF204" in rules:
        return f"line {line}: still covers, behind the synchronisation on the issuer's side"
    if mutant.kind == "narrow":
        return f"line {line}: still covers all that needs it"
    return f"line {line}: still covers, between the accesses of its own threads and their hand-off"


def _others(text: str, fence: Fence) -> str:
    """The other fences that cover what this one orders."""
    everything = fences(text)
    bare = pairs(without(text, everything))
    alone = {other.line: bare - pairs(without(text, [f for f in everything if f != other])) for other in everything}
    mine = alone.pop(fence.line)
    if not mine:
        return "orders nothing: no pair needs it"
    named = sorted(line for line, theirs in alone.items() if theirs & mine)
    covered = frozenset[Pair]().union(*(alone[line] for line in named))
    if mine <= covered:
        return f"line {fence.line}: every pair is covered by the fence at line {', '.join(map(str, named))} as well"
    return ""
