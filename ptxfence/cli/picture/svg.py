"""Draws a laid-out kernel as SVG. Colours come from the page's style sheet, so that it can be printed and themed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from ptxfence.analysis.report import Finding, Place
from ptxfence.cli.picture.graph import Graph, Row
from ptxfence.cli.picture.layout import PADDING, ROW, WIDTH, Box, Layout, lay_out
from ptxfence.triage.result import places

_CHARACTERS = 46  # of monospace text that fit into a block
_REGION = re.compile(r"(.+?)\[(\d+)\.\.(\d+)\)")
_BAR = 560  # pixels for a buffer


def kernel_svg(graph: Graph, findings: Sequence[Finding]) -> str:
    """The blocks of a kernel with the path of each finding and the proposed fences."""
    layout = lay_out(graph)
    inserts = {edit.line: edit.insert for finding in findings for edit in finding.fix or ()}
    parts = [
        f'<svg class="kernel" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" '
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" role="img">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z"/></marker></defs>',
        *_edges(graph, layout),
        *(part for box in layout.boxes for part in _block(box, findings)),
        *(_proposal(line, text, layout) for line, text in inserts.items()),
        *(_path(finding, layout) for finding in findings),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


def _edges(graph: Graph, layout: Layout) -> Iterator[str]:
    boxes = {box.node.index: box for box in layout.boxes}
    for a, b in graph.edges:
        start, end = boxes[a], boxes[b]
        if b > a:
            x1, y1, x2, y2 = start.x + WIDTH / 2, start.y + start.height, end.x + WIDTH / 2, end.y
            bend = max((y2 - y1) / 2, 12)
            curve = f"M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"
            yield f'<path class="edge" d="{curve}"/>'
        else:
            right = start.x + WIDTH
            y1, y2 = start.y + start.height - PADDING, end.y + PADDING
            side = max(right, end.x + WIDTH) + 20
            curve = f"M{right:.0f} {y1:.0f} C{side:.0f} {y1:.0f} {side:.0f} {y2:.0f} {end.x + WIDTH:.0f} {y2:.0f}"
            yield f'<path class="edge back" d="{curve}"/>'


def _block(box: Box, findings: Sequence[Finding]) -> Iterator[str]:
    node = box.node
    yield f'<g class="block" transform="translate({box.x:.0f} {box.y:.0f})">'
    yield f'<rect class="body" width="{WIDTH}" height="{box.height:.0f}" rx="6"/>'
    title = node.label or ("entry" if node.index == 0 else f"block {node.index}")
    loops = f"  in {node.loops} loop{'s' if node.loops > 1 else ''}" if node.loops else ""
    yield f'<text class="title" x="{PADDING}" y="{PADDING + 12}">{escape(title + loops)}</text>'
    for number, row in enumerate(node.rows):
        y = PADDING + ROW * (number + 1)
        marked = _mark(findings, row)
        yield f'<g class="row {row.kind.replace(" ", "-")}{marked}"><title>{escape(_title(row))}</title>'
        yield f'<rect x="4" y="{y}" width="{WIDTH - 8}" height="{ROW - 2}" rx="3"/>'
        yield f'<text x="{PADDING + 2}" y="{y + 12}">{escape(_caption(row))}</text></g>'
    yield "</g>"


def _caption(row: Row) -> str:
    text = f"{row.line}{f'-{row.last}' if row.count > 1 else ''} {f'{row.count}x ' if row.count > 1 else ''}{row.text}"
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


def _title(row: Row) -> str:
    return f"{row.kind}, line {row.line}: {row.text}"


def _mark(findings: Sequence[Finding], row: Row) -> str:
    """Whether a row is one of the two accesses of a finding, or one of the others like them."""
    if any(row.holds(place.line) for f in findings for place in (f.first, f.second) if place is not None):
        return " marked"
    return " also" if any(row.holds(place.line) for f in findings for place in places(f)) else ""


def _path(finding: Finding, layout: Layout) -> str:
    """The witness path of a finding, from row to row along the left of the blocks."""
    points = [point for step in finding.path if (point := layout.at_line(step.line)) is not None]
    if len(points) < 2:
        return ""
    x, y = points[0]
    curve = f"M{x:.0f} {y:.0f}"
    for x2, y2 in points[1:]:
        bend = 26 if x2 == x else 40
        curve += f" C{x - bend:.0f} {y:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
        x, y = x2, y2
    about = escape(f"{finding.rule}: line {finding.first.line} to line {(finding.second or finding.first).line}")
    tip = 'marker-end="url(#tip)"'
    return f'<path class="hazard" data-finding="{finding.id}" d="{curve}" {tip}><title>{about}</title></path>'


def _proposal(line: int, text: str, layout: Layout) -> str:
    """The proposed fence, between the row before its line and the row after."""
    point = layout.at_line(line - 1)
    if point is None:
        return ""
    x, y = point[0], point[1] + ROW / 2
    label = escape(f"+ {text}  (before line {line})")
    return (
        f'<g class="proposal"><path d="M{x:.0f} {y:.0f} h{WIDTH}"/>'
        f'<text x="{x + WIDTH - 6:.0f}" y="{y - 3:.0f}" text-anchor="end">{label}</text></g>'
    )


def buffers_svg(findings: Sequence[Finding]) -> str:
    """The buffers that the findings speak of, with the bytes of both sides of each."""
    spans = [
        (symbol, low, high, side, finding)
        for finding in findings
        for side, place in (("first", finding.first), ("second", finding.second))
        for symbol, low, high in _regions(place)
    ]
    if not spans:
        return ""
    parts: list[str] = []
    y = 0
    for symbol in dict.fromkeys(span[0] for span in spans):
        rows = [span for span in spans if span[0] == symbol]
        top = max(row[2] for row in rows) or 1
        parts.append(f'<text x="0" y="{y + 13}">{escape(symbol)} [0..{top})</text>')
        y += 20
        for _, low, high, side, finding in rows:
            left, width = low * _BAR / top, max((high - low) * _BAR / top, 2)
            parts.append(f'<rect class="track" x="0" y="{y}" width="{_BAR}" height="10"/>')
            parts.append(
                f'<rect class="{side}" data-finding="{finding.id}" x="{left:.1f}" y="{y}" width="{width:.1f}" '
                f'height="10"><title>{escape(f"{finding.rule} {side}: [{low}..{high})")}</title></rect>'
            )
            y += 13
        y += 8
    size = f'viewBox="0 0 {_BAR} {y}" width="{_BAR}" height="{y}"'
    head = f'<svg class="buffers" xmlns="http://www.w3.org/2000/svg" {size}>'
    return "\n".join([head, *parts, "</svg>"])


def _regions(place: Place | None) -> Iterator[tuple[str, int, int]]:
    match = _REGION.fullmatch(place.bytes) if place is not None else None
    if match:
        yield match[1], int(match[2]), int(match[3])
