"""One self-contained page: no network, no external file. Works on a phone and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files

from ptxfence import __version__
from ptxfence.analysis.report import Finding, KernelReport, Place, Verdict
from ptxfence.analysis.rules.remedies import remedy
from ptxfence.cli.formats.run import Run
from ptxfence.cli.formats.segments import clauses
from ptxfence.cli.formats.sources import source_line
from ptxfence.triage.result import FileResult

_CONTEXT = 2  # lines around an access, where they are known
_LEGEND = (
    ("#0757b344", "ordinary access"),
    ("#c1121f44", "asynchronous access"),
    ("#1a7f3766", "proxy fence"),
    ("#6f42c144", "synchronisation"),
    ("#9a670044", "completion"),
)


def render(run: Run) -> str:
    return "\n".join(_page(run)) + "\n"


def _page(run: Run) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>ptxfence: {escape(_headline(run))}</title><style>{_asset('page.css')}</style></head><body>"
    yield f"<h1>ptxfence</h1><p>{escape(_headline(run))} <span class='dim'>version {__version__}</span></p>"
    yield _filters()
    for result in run.results:
        yield from _file(result, run)
    yield f"<script>{_asset('page.js')}</script></body></html>"


def _headline(run: Run) -> str:
    total = run.summary
    return (
        f"{total.kernels} kernels in {total.files} files: {total.errors} errors, {total.warnings} warnings, "
        f"{total.notes} notes, {total.undecided} undecided, {total.failed_files} unreadable"
    )


def _filters() -> str:
    boxes = "".join(
        f'<label><input type="checkbox" value="{value}" checked> {value}</label>'
        for value in ("error", "warning", "note", "hazard", "undecided", "proven")
    )
    search = '<span class="dim">kernel, rule or text</span><input type="search" aria-label="kernel, rule or text">'
    return f'<div class="filters">{boxes}{search}</div>'


def _file(result: FileResult, run: Run) -> Iterator[str]:
    yield f'<section class="file"><h2>{escape(result.path)} <span class="dim">{escape(result.target)}</span></h2>'
    for error in result.errors:
        yield f'<div class="finding error broken"><p>line {error.line}: {error.kind} error: {escape(error.message)}</p>'
        yield f"<pre>{escape(error.picture)}</pre></div>"
    for note in result.unused:
        about = note.problem or "silences nothing"
        yield f'<p class="dim">line {note.line}: unused ignore comment: {escape(about)}</p>'
    for kernel in result.kernels:
        yield from _kernel(kernel, result, run)
    yield "</section>"


def _kernel(kernel: KernelReport, result: FileResult, run: Run) -> Iterator[str]:
    findings = [finding for finding in result.active if finding.kernel == kernel.name]
    verdict = kernel.verdict.value
    style = "hazard-verdict" if kernel.verdict is Verdict.HAZARD else verdict
    yield f'<section class="kernel-section" data-name="{escape(kernel.name)}" data-verdict="{verdict}">'
    counts = kernel.counts
    numbers = f"{counts.generic} ordinary, {counts.asynchronous} asynchronous accesses, {counts.fences} fences"
    badge = f'<span class="badge {style}">{verdict}</span>'
    yield f'<h3>{escape(kernel.name)} {badge} <span class="dim">{numbers}</span></h3>'
    for reason in kernel.reasons:
        yield f'<p class="dim">{escape(reason)}</p>'
    for text in kernel.assumptions:
        yield f'<p class="dim">assuming {escape(text)}</p>'
    for finding in findings:
        yield from _finding(finding, result)
    yield from _picture(kernel, findings, result, run)
    yield "</section>"


def _finding(finding: Finding, result: FileResult) -> Iterator[str]:
    level = finding.severity.name.lower()
    yield f'<article class="finding {level}" id="f-{finding.id}" data-level="{level}">'
    cause = f", cause {finding.cause.value}" if finding.cause else ""
    yield (
        f'<div class="head"><span class="badge">{level}</span> <b>{finding.rule} {finding.name}</b> '
        f'<span class="dim">{finding.confidence.value}{cause}, id {finding.id}</span></div>'
    )
    yield f"<p>{escape('; '.join(clauses(finding)))}</p>"
    for label, place in zip(("first", "then"), (finding.first, finding.second), strict=True):
        if place is not None:
            yield from _place(label if finding.second else "", place, result)
    if finding.others:
        lines = ", ".join(str(place.line) for place in finding.others)
        yield f'<p class="dim">also line {lines}</p>'
    if finding.path:
        steps = "".join(f"<li>line {step.line}: {escape(step.what)}</li>" for step in finding.path)
        yield f'<details open><summary>How it comes about</summary><ol class="path">{steps}</ol></details>'
    for edit in finding.fix or ():
        yield f'<p class="insert">insert before line {edit.line}: <code>{escape(edit.insert)}</code></p>'
    advice = remedy(result.producer, finding, result.producer_version)
    if advice:
        yield f'<p class="insert">in the source: {escape(advice)}</p>'
    yield "</article>"


def _place(label: str, place: Place, result: FileResult) -> Iterator[str]:
    known = dict(result.lines)
    around = range(place.line - _CONTEXT, place.line + _CONTEXT + 1)
    excerpt = "\n".join(
        f"{number:>6} {'>' if number == place.line else ' '} {escape(known[number])}"
        for number in around
        if number in known
    )
    yield f'<p class="dim">{label} {escape(place.bytes)}</p><pre>{excerpt or escape(place.text)}</pre>'
    if place.source is not None:
        code = source_line(place.source, result.path)
        where = f"{place.source.file}:{place.source.line}:{place.source.column}"
        yield f'<p class="where mono">{escape(where)} {escape(code)}</p>'


def _picture(kernel: KernelReport, findings: list[Finding], result: FileResult, run: Run) -> Iterator[str]:
    """The kernel drawn, where its text is at hand."""
    from ptxfence.cli.picture.svg import buffers_svg, kernel_svg

    text = run.texts.get(result.path)
    if text is None:
        return
    from ptxfence.cli.picture.graph import graph_of
    from ptxfence.grammar import parse

    file = parse(text, result.path)
    functions = [f for module in file.modules for f in module.functions if f.has_body and f.name == kernel.name]
    if not functions:
        return
    lines = {place.line for finding in findings for place in (finding.first, finding.second) if place is not None}
    graph = graph_of(file, functions[0], lines)
    legend = "".join(f'<span><i style="background:{colour}"></i>{name}</span>' for colour, name in _LEGEND)
    opened = " open" if findings else ""
    yield f"<details{opened}><summary>Picture</summary>"
    yield buffers_svg(findings)
    yield f'<div class="legend">{legend}<span>red line: path of a hazard</span></div>'
    yield f'<div class="picture">{kernel_svg(graph, findings)}</div></details>'


def _asset(name: str) -> str:
    return (files("ptxfence.cli.formats") / name).read_text(encoding="utf-8")
