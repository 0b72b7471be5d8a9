"""The analysis of a file: one kernel after the other, each to one of three verdicts."""

from __future__ import annotations

import gc
import time
from collections import Counter
from itertools import islice

from ptxfence.analysis import globalmem, inflight, pdl, published, tensormaps
from ptxfence.analysis.advice import advise
from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.conflicts import Conflicts
from ptxfence.analysis.context import Context
from ptxfence.analysis.doubts import doubtful
from ptxfence.analysis.effects import FenceKind, Knowledge, Proxy, SyncKind
from ptxfence.analysis.effects import Flow as Control
from ptxfence.analysis.events import Events
from ptxfence.analysis.findings import Findings
from ptxfence.analysis.flow import Flow
from ptxfence.analysis.handoff import Handoffs
from ptxfence.analysis.inline import Inlined, Routine
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.isa_calls import call_parts, harmless
from ptxfence.analysis.paths import Paths
from ptxfence.analysis.program import Program
from ptxfence.analysis.report import Confidence, Counts, Finding, KernelReport, Report, Severity, Verdict
from ptxfence.analysis.rules import NAMES
from ptxfence.analysis.transfer import Hazard
from ptxfence.analysis.values import Values
from ptxfence.analysis.witness import Witness, place
from ptxfence.grammar.function import Function
from ptxfence.grammar.model import FunctionKind
from ptxfence.grammar.module import Module, PtxFile

MAX_REASONS = 8
ONE_CTA = "clusters have one CTA"
"""Assumed of a kernel that asks for no cluster and never waits for one, where it maps an address to a CTA of one."""


class _OutOfTime(Exception):
    """The time limit of one kernel has passed."""


def analyse(
    file: PtxFile, *, kernel: str | None = None, timeout: float | None = None, strict: bool = False
) -> Report:
    """Analyses every kernel of `file` (or only `kernel`), each for at most `timeout` seconds.

    Findings carry default severities; rules that are off by default come with `Severity.OFF` unless `strict`.
    """
    kernels: list[KernelReport] = []
    findings: list[Finding] = []
    for module in file.modules:
        for function in module.functions:
            if kernel not in (None, function.name) or not _is_root(module, function):
                continue
            report, found = _Kernel(file, module, function, timeout).run()
            kernels.append(report)
            findings.extend(found)
    first = file.modules[0] if file.modules else None
    return Report(
        filename=file.filename,
        ptx_version=first.version if first else "",
        target=first.target if first else "",
        kernels=tuple(kernels),
        findings=tuple(findings),
    )


def _is_root(module: Module, function: Function) -> bool:
    """Whether the function is analysed for itself: a kernel, or a device function that nothing in the file calls."""
    if not function.has_body:
        return False
    return function.kind is FunctionKind.ENTRY or function.name not in _called(module)


def _called(module: Module) -> frozenset[str]:
    names = (
        call_parts(instruction.operands)[1]
        for function in module.functions
        if function.has_body
        for instruction in function.instructions
        if lookup(instruction.opcode).flow is Control.CALL
    )
    return frozenset(name for name in names if name is not None)


class _Kernel:
    """One run over one kernel."""

    def __init__(self, file: PtxFile, module: Module, function: Function, timeout: float | None) -> None:
        self.file = file
        self.module = module
        self.function: Routine = function
        self.opcodes = Counter([i.opcode for i in function.instructions])
        if any(lookup(opcode).flow is Control.CALL for opcode in self.opcodes):
            self.function = Inlined(module, function)
            self.opcodes = Counter([i.opcode for i in self.function.instructions])
        self.begin = time.perf_counter()
        self.deadline = None if timeout is None else self.begin + timeout
        self.reasons: dict[str, int | None] = {}  # what stopped the proof, and the instruction
        self.assumptions: dict[str, None] = {}
        self.findings: list[Finding] = []
        self.counts = Counts()

    def run(self) -> tuple[KernelReport, list[Finding]]:
        collecting = gc.isenabled()
        gc.disable()  # everything lives until the end: collections in between find nothing and cost a tenth of the time
        try:
            self._analyse()
        except _OutOfTime:
            self.reasons.setdefault("the time limit for one kernel has passed", None)
        finally:
            if collecting:
                gc.enable()
        verdict = self._verdict()
        self.findings.extend(self._undecided_notes())
        report = KernelReport(
            name=self.function.name,
            line=self.function.line,
            verdict=verdict,
            reasons=tuple(self.reasons)[:MAX_REASONS] if verdict is not Verdict.PROVEN else (),
            assumptions=tuple(self.assumptions),
            counts=self.counts,
            seconds=time.perf_counter() - self.begin,
        )
        return report, self.findings

    def _tick(self) -> None:
        if self.deadline is not None and time.perf_counter() > self.deadline:
            raise _OutOfTime

    def _analyse(self) -> None:
        self.counts = self._count()
        suspicious = self._unknowns()
        if not (self.counts.asynchronous or self.counts.fences or suspicious or self._has_mbarriers()):
            return
        cfg = Cfg(self.function)
        values = Values(self.function, cfg, self.module)
        self._tick()
        events = Events(self.module, self.function, cfg, values)
        self._tick()
        conflicts = Conflicts(events)
        self._tick()
        flow = Flow(Program(events, conflicts), Handoffs(events), self._tick)
        hazards: list[Hazard] = []
        flow.hazards(hazards.append)
        if hazards:
            self._report(flow, hazards)
        paths = Paths(cfg, flow.handoffs)
        self._undecided(cfg, events)
        for index in islice(doubtful(flow, paths), 1):
            self._reason(index, "a wait whose partners are not known: an address or a number is not resolved")
        witness = Witness(self.file, flow, paths)
        context = Context(self.file, events, conflicts, flow.handoffs, flow, witness, self._tick)
        for rule in (tensormaps.unfenced, globalmem.unfenced, pdl.unfenced, inflight.unobserved, published.unpublished):
            self._tick()
            self.findings.extend(rule(context))
        if values.builder.relies_on_alone:
            self.assumptions.setdefault(ONE_CTA)
        clear = not self.reasons and not any(waiter.uncertain for waiter in flow.handoffs.waiters.values())
        if clear and self._verdict() is Verdict.PROVEN and self.counts.fences:
            self.findings.extend(advise(flow, witness, hazards))

    def _report(self, flow: Flow, hazards: list[Hazard]) -> None:
        builder = Findings(self.file, flow)
        for hazard in hazards:
            self._tick()
            self.findings.extend(builder.of(hazard))
        self.reasons.update(builder.reasons)
        self.assumptions.update(builder.overwrites.assumptions)

    def _count(self) -> Counts:
        generic = asynchronous = fences = 0
        for opcode, times in self.opcodes.items():
            what = lookup(opcode)
            if not what.relevant:
                continue
            proxies = {access.proxy for access in what.accesses}
            asynchronous += times * (Proxy.ASYNC in proxies)
            generic += times * (Proxy.GENERIC in proxies and Proxy.ASYNC not in proxies)
            fences += times * any(fence.kind is FenceKind.ASYNC for fence in what.fences)
        return Counts(generic, asynchronous, fences, len(self.function.instructions))

    def _has_mbarriers(self) -> bool:
        syncs = (lookup(opcode).sync for opcode in self.opcodes)
        return any(sync is not None and sync.kind is SyncKind.MBARRIER_INIT for sync in syncs)

    def _unknowns(self) -> bool:
        """Names what no proof can step over: instructions the table does not know and calls."""
        effects = {opcode: lookup(opcode) for opcode in self.opcodes}
        barring = {o for o, e in effects.items() if e.knowledge is Knowledge.UNKNOWN or e.flow is Control.CALL}
        for instruction in self.function.instructions if barring else ():
            if instruction.opcode not in barring:
                continue
            what = effects[instruction.opcode]
            if what.knowledge is Knowledge.UNKNOWN:
                self._unknown(instruction.index)
            elif what.flow is Control.CALL:
                callee = call_parts(instruction.operands)[1]
                if not harmless(callee):
                    name = "an unknown function" if callee is None else f"`{callee}`"
                    self._reason(instruction.index, f"a call of {name}, whose effect on shared memory is not known")
        if self.function.kind is FunctionKind.FUNC:
            what = f"line {self.function.line}: a device function that nothing in the file calls"
            self.reasons.setdefault(what, None)
        return bool(self.reasons)

    def _unknown(self, index: int) -> None:
        opcode = self.function.instructions[index].opcode
        self._reason(index, f"unknown instruction `{opcode}` may touch shared memory")

    def _undecided(self, cfg: Cfg, events: Events) -> None:
        for index in events.unknown:  # also those that only their operands make unknown
            self._unknown(index)
        for index in cfg.unresolved:
            self._reason(index, "an indirect branch whose targets are not known")

    def _reason(self, index: int, what: str) -> None:
        line = self.file.position(self.function.instructions[index].start)[0]
        self.reasons.setdefault(f"line {line}: {what}", index)

    def _undecided_notes(self) -> list[Finding]:
        """PF301: what stopped the proof, most useful first."""
        return [
            Finding(
                rule="PF301",
                name=NAMES["PF301"],
                severity=Severity.NOTE,
                confidence=Confidence.POSSIBLE,
                kernel=self.function.name,
                cause=None,
                message=f"not decided: {reason}",
                first=place(self.file, self.function, index or 0),
                second=None,
            )
            for reason, index in list(self.reasons.items())[:MAX_REASONS]
        ]

    def _verdict(self) -> Verdict:
        if any(f.severity >= Severity.WARNING and f.rule.startswith("PF1") for f in self.findings):
            return Verdict.HAZARD
        return Verdict.UNDECIDED if self.reasons else Verdict.PROVEN


