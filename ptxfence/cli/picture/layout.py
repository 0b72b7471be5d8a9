"""Where things go: blocks in layers from top to bottom, arms of a branch (the roles of a kernel) side by side."""

from __future__ import annotations

from dataclasses import dataclass

from ptxfence.cli.picture.graph import Graph, Node

ROW = 18  # pixels
PADDING = 8
WIDTH = 330
GAP_X = 46
GAP_Y = 34
MARGIN = 40


@dataclass(frozen=True, slots=True)
class Box:
    """A block's rectangle, in pixels."""

    node: Node
    x: float
    y: float
    height: float

    def row_y(self, number: int) -> float:
        """The middle of a row."""
        return self.y + PADDING + ROW + number * ROW + ROW / 2


@dataclass(frozen=True, slots=True)
class Layout:
    boxes: tuple[Box, ...]
    width: float
    height: float

    def at_line(self, line: int) -> tuple[float, float] | None:
        """The left end of the row that shows a PTX line, or of the last row before it."""
        best: tuple[int, float, float] | None = None
        for box in self.boxes:
            for number, row in enumerate(box.node.rows):
                if row.line <= line and (best is None or row.line > best[0]):
                    best = (row.line, box.x, box.row_y(number))
        return None if best is None else best[1:]


def lay_out(graph: Graph) -> Layout:
    """Place the blocks of a graph."""
    layers = _layers(graph)
    columns = _columns(graph, layers)
    heights = {node.index: PADDING * 2 + ROW * (len(node.rows) + 1) for node in graph.nodes}
    tops: dict[int, float] = {}
    y = float(MARGIN)
    for layer in range(max(layers.values(), default=-1) + 1):
        tops[layer] = y
        y += max(heights[index] for index, at in layers.items() if at == layer) + GAP_Y
    boxes = tuple(
        Box(node, MARGIN + columns[node.index] * (WIDTH + GAP_X), tops[layers[node.index]], heights[node.index])
        for node in graph.nodes
    )
    width = max((box.x for box in boxes), default=0.0) + WIDTH + MARGIN
    return Layout(boxes, width, max(y, 2.0 * MARGIN))


def _layers(graph: Graph) -> dict[int, int]:
    """The longest way from the entry, loops not counted."""
    layers = {node.index: 0 for node in graph.nodes}
    for node in graph.nodes:  # in reverse post-order, so that predecessors come first
        for a, b in graph.edges:
            if a == node.index and b > a:
                layers[b] = max(layers[b], layers[a] + 1)
    return layers


def _columns(graph: Graph, layers: dict[int, int]) -> dict[int, int]:
    """The column of a predecessor where it is free in this layer, else the next free one to the right."""
    taken: set[tuple[int, int]] = set()
    columns: dict[int, int] = {}
    for node in graph.nodes:
        layer = layers[node.index]
        above = [columns[a] for a, b in graph.edges if b == node.index and a in columns]
        column = min(above, default=0)
        while (layer, column) in taken:
            column += 1
        taken.add((layer, column))
        columns[node.index] = column
    return columns
