"""Run a kernel and its patched form on a GPU and compare what they compute.

    ptxfence race kernel.ptx --launch kernel.toml

The launch file is described in docs/integrations.md; `ptxfence run --record DIR` writes one for each Triton kernel.
Exit status: 0 both are right in every run; 1 words were wrong; 2 no GPU, or a launch failed or hung.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ptxfence.errors import ConfigError, InputError

if TYPE_CHECKING:
    from ptxfence.rewrite.launch import Track
    from ptxfence.rewrite.launch_spec import Launch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="KERNEL.ptx")
    parser.add_argument("--launch", type=Path, required=True, metavar="SPEC.toml", help="how the kernel is launched")
    parser.add_argument("--patched", type=Path, metavar="FILE", help="a patched text to race (default: what fix makes)")
    parser.add_argument("--runs", type=int, metavar="N", help="launches of each variant, besides the warm-up")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit for each variant")
    parser.add_argument("--route", choices=("cubin", "ptx", "cuda-core"), help="ptxas, the driver's JIT, or cuda.core")
    parser.add_argument("--device", type=int, default=0, metavar="N")
    parser.add_argument("--format", choices=("text", "json"), default="text")


def run(arguments: argparse.Namespace) -> int:
    from ptxfence.rewrite.launch import default_route, race
    from ptxfence.rewrite.launch_spec import read_launch

    original = _read(arguments.path)
    launch = _named(read_launch(arguments.launch), original)
    if arguments.runs is not None:
        launch = replace(launch, runs=max(1, arguments.runs))
    if arguments.timeout is not None:
        launch = replace(launch, timeout=arguments.timeout)
    patched = _read(arguments.patched) if arguments.patched else _fixed(original, arguments.path)
    route = arguments.route or default_route()
    tracks = race(original, patched, launch, device=arguments.device, route=route)
    print(json.dumps(_data(launch, route, tracks), indent=1) if arguments.format == "json" else _table(launch, tracks))
    return 1 if any(track.wrong_runs for track in tracks) else 0


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None


def _fixed(text: str, path: Path) -> str:
    import ptxfence

    return ptxfence.fix(text, str(path)).text


def _named(launch: Launch, text: str) -> Launch:
    """The launch with its kernel's name, taken from the text where there is only one."""
    if launch.kernel:
        return launch
    import re

    names = re.findall(r"^\s*(?:\.(?:visible|weak|extern)\s+)*\.entry\s+([\w$.]+)", text, re.MULTILINE)
    if len(names) != 1:
        raise ConfigError(f"the launch file must name the kernel; there are {len(names)}: {', '.join(names)}")
    return replace(launch, kernel=names[0])


def _table(launch: Launch, tracks: tuple[Track, Track]) -> str:
    rows = [("kernel " + launch.kernel, "runs", "wrong runs", "wrong words", "of words each", "first difference", "ms")]
    for track in tracks:
        wrong = [run.wrong for run in track.runs]
        first = next((run.first for run in track.runs if run.first is not None), None)
        place = "-" if first is None else f"{first.output}[{first.word}] {first.found:#010x} not {first.expected:#010x}"
        spread = "0" if not any(wrong) else f"{min(wrong)} to {max(wrong)}"
        rows.append(
            (track.variant, str(len(wrong)), str(track.wrong_runs), spread, str(track.words), place,
             f"{track.milliseconds:.3f}")
        )  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.append("compared with: " + "; ".join(f"{track.variant}: {track.against}" for track in tracks))
    return "\n".join(lines)


def _data(launch: Launch, route: str, tracks: tuple[Track, Track]) -> dict[str, object]:
    return {
        "schema": 1,
        "kernel": launch.kernel,
        "route": route,
        "tracks": [
            {**asdict(track), "wrong_runs": track.wrong_runs, "milliseconds": track.milliseconds} for track in tracks
        ],
    }
