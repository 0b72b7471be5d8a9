"""Say of every proxy fence what it orders, or why it is not needed.

Each fence is taken out in turn and the kernel is checked again: what is reported then and was not before is what the
fence orders. Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxfence.cli.gather import Gathered
from ptxfence.cli.options import add_paths, resolver

if TYPE_CHECKING:
    from ptxfence.analysis.report import Finding
    from ptxfence.cli.formats.segments import Line
    from ptxfence.grammar import Function, Instruction, Module, PtxFile
    from ptxfence.triage.result import FileResult

_SHOWN = 6  # ordered pairs listed for one fence


@dataclass(frozen=True, slots=True)
class FenceUse:
    """One fence of a kernel or of a function that kernels call.

    `orders` are the findings that its absence causes; `kind` is the table's word for it.
    `removable` holds what the analysis itself says against the fence (PF201, PF202, PF203, PF204).
    """

    kernel: str
    line: int
    text: str
    kind: str
    is_proxy: bool
    orders: tuple[Finding, ...] = ()
    removable: tuple[Finding, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--kernel", metavar="NAME", help="this kernel only")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit per check of a kernel")
    parser.add_argument("--allow-empty", action="store_true", default=None, help="finding no kernel is no failure")
    parser.add_argument("--isolated", action="store_true", help="read no settings file")


def run(arguments: argparse.Namespace) -> int:
    from ptxfence.batch.examine import examine
    from ptxfence.triage.summary import exit_status

    gathered = Gathered(resolver(arguments))
    results: list[FileResult] = []
    rows: list[tuple[str, FenceUse]] = []
    for task in gathered.tasks(arguments.paths):
        result = examine(task)
        results.append(result)
        if not result.failed:
            rows.extend((task.path, use) for use in fences(task.text, task.path, result, arguments.timeout))
    results.extend(gathered.failures)
    _print(rows, arguments.format)
    for result in results:
        for error in result.errors:
            print(f"{result.path}:{error.line}:{error.column}: {error.kind} error: {error.message}", file=sys.stderr)
    status = exit_status(results, gathered.settings, allow_empty=bool(arguments.allow_empty))
    return status if any(result.failed for result in results) or not any(result.kernels for result in results) else 0


def fences(text: str, path: str, result: FileResult, timeout: float | None = None) -> Iterator[FenceUse]:
    """Every fence of the kernels in a result and of what they call, in the order of the text."""
    from ptxfence.grammar import parse

    file = parse(text, path)
    wanted = frozenset(kernel.name for kernel in result.kernels)
    for module in file.modules:
        used = _with_callees(module, wanted)
        for function in module.functions:
            if function.has_body and function.name in used:
                yield from _of_function(file, function, function.name in wanted, result, timeout)


def _with_callees(module: Module, names: frozenset[str]) -> set[str]:
    """The functions and all that they call."""
    from ptxfence.analysis.effects import Flow
    from ptxfence.analysis.isa import lookup
    from ptxfence.analysis.isa_calls import call_parts

    bodies = {function.name: function for function in module.functions if function.has_body}
    found: set[str] = set()
    work = [name for name in names if name in bodies]
    while work:
        name = work.pop()
        if name in found:
            continue
        found.add(name)
        calls = (i for i in bodies[name].instructions if lookup(i.opcode).flow is Flow.CALL)
        work.extend(callee for i in calls if (callee := call_parts(i.operands)[1]) in bodies)
    return found


def _of_function(
    file: PtxFile, function: Function, is_root: bool, result: FileResult, timeout: float | None
) -> Iterator[FenceUse]:
    """The fences of one body; those of a callee serve the kernels that call it."""
    from ptxfence.analysis.effects import FenceKind
    from ptxfence.analysis.isa import lookup

    kernel = function.name if is_root else None
    before = [finding for finding in result.findings if kernel in (None, finding.kernel)]
    for instruction in function.instructions:
        found = lookup(instruction.opcode).fences
        if not found:
            continue
        kinds = {fence.kind for fence in found}
        line = file.position(instruction.start)[0]
        text = " ".join(file.text[instruction.start : instruction.end].split())
        is_proxy = bool(kinds & {FenceKind.ASYNC, FenceKind.TENSORMAP})
        yield FenceUse(
            kernel=function.name,
            line=line,
            text=text,
            kind=", ".join(sorted(kind.value for kind in kinds)),
            is_proxy=is_proxy,
            orders=tuple(_missing_without(file, kernel, instruction, before, timeout)) if is_proxy else (),
            removable=tuple(f for f in before if f.rule.startswith("PF2") and f.first.line == line),
        )


def _missing_without(
    file: PtxFile, kernel: str | None, fence: Instruction, before: Iterable[Finding], timeout: float | None
) -> Iterator[Finding]:
    """The findings that appear when the fence is blanked out; lines and columns stay what they were."""
    from ptxfence.analysis.check import analyse
    from ptxfence.grammar import parse

    blank = "".join(char if char in "\r\n" else " " for char in file.text[fence.start : fence.end])
    without = parse(file.text[: fence.start] + blank + file.text[fence.end :], file.filename)
    known = {_pair(finding) for finding in before}
    for finding in analyse(without, kernel=kernel, timeout=timeout).findings:
        if finding.rule.startswith("PF1") and _pair(finding) not in known:
            yield finding


def _pair(finding: Finding) -> tuple[str, int, int]:
    second = finding.second or finding.first
    return (finding.rule, finding.first.line, second.line)


def _print(rows: list[tuple[str, FenceUse]], form: str) -> None:
    if form == "json":
        import json

        print(json.dumps([_as_json(path, use) for path, use in rows], indent=1))
        return
    from ptxfence.cli.formats.segments import show

    lines = [line for path, use in rows for line in _lines(path, use)]
    proxy = sum(use.is_proxy for _, use in rows)
    lines.append([(f"{proxy} proxy fences, {len(rows) - proxy} other fences", "bold")])
    show(lines, sys.stdout)


def _lines(path: str, use: FenceUse) -> list[Line]:
    head: Line = [(f"{path}:{use.line}: ", "bold"), (use.text, "cyan"), (f"  in kernel {use.kernel}", "dim")]
    if not use.is_proxy:
        return [head, [(f"    {use.kind}: orders no proxies", "dim")]]
    lines: list[Line] = [head]
    for finding in use.orders[:_SHOWN]:
        second = finding.second or finding.first
        more = f" (and {len(finding.others)} more like it)" if finding.others else ""
        lines.append([("    orders ", "green"), (f"line {finding.first.line}{more}, then line {second.line}", "")])
        lines[-1].append((f"  {finding.first.bytes}; without it {finding.rule} {finding.name}", "dim"))
    if len(use.orders) > _SHOWN:
        lines.append([(f"    and {len(use.orders) - _SHOWN} pairs more", "dim")])
    if not use.orders:
        lines.append([("    orders nothing that another fence does not order, or nothing at all", "yellow")])
    lines.extend([(f"    {f.rule} {f.name}: ", "yellow"), (f.message, "")] for f in use.removable)
    return lines


def _as_json(path: str, use: FenceUse) -> dict[str, object]:
    return {
        "path": path,
        "kernel": use.kernel,
        "line": use.line,
        "text": use.text,
        "kind": use.kind,
        "proxy": use.is_proxy,
        "orders": [
            {"rule": f.rule, "first": f.first.line, "second": (f.second or f.first).line, "bytes": f.first.bytes}
            for f in use.orders
        ],
        "removable": [{"rule": f.rule, "message": f.message} for f in use.removable],
    }
