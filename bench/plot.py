"""One logarithmic scatter plot as SVG, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

SIDE, MARGIN = 480, 56


def scatter(points: Sequence[tuple[float, float, str]], x_name: str, y_name: str, slope: float) -> str:
    """`points` are (x, y, name), both axes logarithmic, and the line `y = slope * x`."""
    low = 10 ** math.floor(math.log10(min(min(x, y) for x, y, _ in points)))
    high = 10 ** math.ceil(math.log10(max(max(x, y) for x, y, _ in points)))
    decades = math.log10(high / low)

    def place(value: float) -> float:
        return (math.log10(max(value, low) / low) / decades) * (SIDE - 2 * MARGIN)

    def at(x: float, y: float) -> tuple[float, float]:
        return MARGIN + place(x), SIDE - MARGIN - place(y)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" font-family="sans-serif" font-size="12">',
        f'<rect width="{SIDE}" height="{SIDE}" fill="white"/>',
    ]
    tick = low
    while tick <= high * 1.001:
        (x, bottom), (left, y) = at(tick, low), at(low, tick)
        parts.append(f'<path d="M{x:.1f} {MARGIN}V{bottom:.1f}M{left:.1f} {y:.1f}H{SIDE - MARGIN}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        tick *= 10
    (x1, y1), (x2, y2) = at(low / slope, low), at(high, high * slope)
    parts.append(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#c33" stroke-dasharray="4 3"/>')
    parts.append(f'<text x="{x2 - 4:.1f}" y="{y2 - 6:.1f}" text-anchor="end" fill="#c33">{slope:g} x</text>')
    for x, y, name in points:
        cx, cy = at(x, y)
        parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="3" fill="#36c"><title>{escape(name)}</title></circle>')
    parts.append(f'<text x="{SIDE / 2}" y="{SIDE - 14}" text-anchor="middle">{escape(x_name)}</text>')
    turn = f"rotate(-90 16 {SIDE / 2})"
    parts.append(f'<text x="16" y="{SIDE / 2}" text-anchor="middle" transform="{turn}">{escape(y_name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
