"""Samples of the instruction table as text: reading them, and one line that says all of an effect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ptxfence.analysis.effects import (
    Access,
    Box,
    Bytes,
    BytesOf,
    Copy,
    Effect,
    Fence,
    Flow,
    Footprint,
    Group,
    Knowledge,
    Mode,
    Role,
    Sync,
)

FOLDER = Path(__file__).with_name("isa_samples")
_LINE = re.compile(r"(?:\[(\d+)\.(\d+)\] )?(.*;) => (.*)")

HEADER = """\
.version {version}
.target {target}
.address_size 64
.global .align 128 .b8 glob[4096];
.const .align 4 .b32 cst = 5;
.global .texref texture;
.global .surfref surface;
.func (.reg .b32 o) callee (.reg .b32 i) {{ mov.b32 o, i; ret; }}
.visible .entry kernel(.param .align 64 .b8 arg[128]) .maxntid 128, 1, 1
{{
.reg .pred p<8>; .reg .b16 h<8>; .reg .b32 r<300>; .reg .b64 d<16>; .reg .b128 q<4>; .reg .f32 f<260>; .reg .f64 e<8>;
.shared .align 1024 .b8 buf[32768];
.local .align 16 .b8 loc[64];
targets: .branchtargets here;
here:
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One statement, the PTX version that it needs, and the effect that it must have."""

    file: str
    target: str
    version: tuple[int, int]
    statement: str
    expected: str


def samples() -> Iterator[Sample]:
    """All samples. A file is named after its target, with a suffix where two cannot stand in one kernel."""
    for path in sorted(FOLDER.glob("*.txt")):
        for line in path.read_text().splitlines():
            if not line or line.startswith("#"):
                continue
            match = _LINE.fullmatch(line)
            assert match is not None, line
            version = (int(match[1]), int(match[2])) if match[1] else (9, 0)
            yield Sample(path.name, path.stem.partition("-")[0], version, match[3], match[4])


def module(statements: list[str], target: str, version: str) -> str:
    """A module with one kernel that holds the statements, one a line."""
    return HEADER.format(version=version, target=target) + "\n".join(statements) + "\nret;\n}\n"


def describe(effect: Effect) -> str:
    """Everything an analysis can ask of an effect, on one line."""
    parts = [_access(access) for access in effect.accesses]
    parts += [_fence(fence) for fence in effect.fences]
    if effect.sync is not None:
        parts.append(_sync(effect.sync))
    if effect.group is not None:
        parts.append(_group(effect.group))
    if effect.flow is not Flow.NEXT:
        parts.append(effect.flow.value)
    flags = [name for name in ("elects", "collective") if getattr(effect, name)]
    return "; ".join([*parts, *flags]) or effect.knowledge.value


def _footprint(footprint: Footprint) -> str:
    match footprint:
        case Bytes(count):
            return f"{count}B"
        case BytesOf(operand):
            return f"(operand {operand})B"
        case Box():
            return "box"
        case Copy(count, rows, row_bytes, ctas):
            return f"cp {count}B={rows}x{row_bytes}B ctas={ctas}"
        case matrix:
            rows = matrix.rows if matrix.rows is not None else f"idesc({matrix.idesc})"
            turn = "" if matrix.mn_major is None else f" trans={matrix.mn_major}"
            ctas = f" ctas={matrix.ctas}" if matrix.ctas > 1 else ""
            return f"{matrix.which} {rows}x{matrix.row_bytes}B of {matrix.element_bits}-bit{turn}{ctas}"


def _access(access: Access) -> str:
    mode = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.BOTH: "updates"}[access.mode]
    words = [f"{access.proxy.value} {mode} {access.operand} {access.space.value} {_footprint(access.footprint)}"]
    if access.role is not Role.DATA:
        words.append(access.role.value)
    if access.completion.name != "SYNC":
        words.append(f"until {access.completion.value}")
    if access.mbarrier is not None:
        words.append(f"at {access.mbarrier}")
    if access.order is not None and access.scope is not None:
        words.append(f"{access.order.value}.{access.scope.name.lower()}")
    if access.value is not None:
        words.append(f"value={access.value}")
    words += [name for name in ("multicast", "both_ctas", "volatile", "atomic") if getattr(access, name)]
    return " ".join(words)


def _fence(fence: Fence) -> str:
    words = [fence.kind.value, f"({fence.direction.value})"]
    if fence.covers:
        words.append("of " + ",".join(sorted(space.value for space in fence.covers)))
    if fence.order is not None:
        words.append(fence.order.value)
    if fence.scope is not None:
        words.append(fence.scope.name.lower())
    if fence.address is not None:
        words.append(f"at {fence.address}")
    return " ".join(words)


def _sync(sync: Sync) -> str:
    words = [sync.kind.value, f"{sync.order.value}.{sync.scope.name.lower()}"]
    for name in ("address", "barrier", "count", "tx", "result", "parity"):
        if getattr(sync, name) is not None:
            words.append(f"{name}={getattr(sync, name)}")
    if sync.address is not None:
        words.append(sync.space.value)
    words += [name for name in ("multicast", "aligned", "drops", "increments") if getattr(sync, name)]
    return "sync " + " ".join(words)


def _group(group: Group) -> str:
    pending = "" if group.pending is None else f" pending={group.pending}"
    return f"{group.kind.value} {group.completion.value}{pending}{' read' if group.read else ''}"


def is_known(effect: Effect) -> bool:
    return effect.knowledge is not Knowledge.UNKNOWN
