"""Opcode text of the arithmetic side, decoded once per distinct opcode: what the value analysis evaluates.

`operation` never fails: an opcode that no table knows gives its first component as the name. Whether an
instruction touches memory is the business of `isa.effect`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBERED = re.compile(r"([usbf])(\d+)(?:x(\d+))?")

# Types whose text does not say their width: PTX ISA 5.2.2-5.2.5 and, for the packed ones, 5.2.3.
_WIDTHS = {
    "pred": 1,
    "bf16": 16,
    "bf16x2": 32,
    "tf32": 32,
    "e4m3": 8,
    "e5m2": 8,
    "e3m2": 8,
    "e2m3": 8,
    "e2m1": 4,
    "ue8m0": 8,
    "ue4m3": 8,
    "e4m3x2": 16,
    "e5m2x2": 16,
    "e3m2x2": 16,
    "e2m3x2": 16,
    "e2m1x2": 8,
    "ue8m0x2": 16,
    "ue5m3x2": 16,
    "e4m3x4": 32,
    "e5m2x4": 32,
    "e3m2x4": 32,
    "e2m3x4": 32,
    "e2m1x4": 16,
    "s2f6x2": 16,
}

_COMPARE = (
    *("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"),
    *("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"),
)
_COMBINE = ("and", "or", "xor")
_COMPARING = frozenset(("setp", "set"))
_REDUCING = frozenset(("redux", "lop3", "bar", "barrier", "atom", "red", "setp", "set"))
_MODES = {
    "mul": ("lo", "hi", "wide"),
    "mad": ("lo", "hi", "wide"),
    "madc": ("lo", "hi"),
    "mul24": ("lo", "hi"),
    "mad24": ("lo", "hi"),
    "prmt": ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"),
    "vote": ("all", "any", "uni", "ballot"),
    "match": ("any", "all"),
    "dp2a": ("lo", "hi"),
    "redux": ("add", "min", "max"),
}
_SHUFFLES = ("up", "down", "bfly", "idx")
_SATURATING = frozenset(("sat", "satfinite", "relu"))
_CLAMPS = ("clamp", "wrap")
_SPACES = frozenset(
    ("shared", "shared::cta", "shared::cluster", "global", "local", "const", "param", "param::entry", "param::func")
)


@dataclass(frozen=True, slots=True)
class Op:
    """One decoded opcode.

    `name`: the first component of the opcode (`add`, `mad`, `shfl`, ...); `cvt.pack` keeps both.
    `type`, `width` (bits), `signed`: of the result, `source` and `source_width` of the operands where a second type
    stands (`cvt`, `set`, `slct`, ...), else equal to the first. `wide` results have twice the width of `type`.
    `mode`: `lo`, `hi` or `wide` of multiplications, the selection of `prmt`, `vote`, `match`, `redux`.
    `compare` and `combine`: comparison and boolean operator (`setp`, `set`, `lop3.or`, `redux.and`).
    `direction` and `clamp`: `l` or `r`, `clamp` or `wrap` of `shf`; `bmsk` and `szext` have a `clamp` too.
    `shuffle`: `up`, `down`, `bfly` or `idx` of `shfl`.
    `to`: `cvta.to`, from generic to `space`. `space`: the state space of `cvta`, `mapa`, `isspacep`, `getctarank`,
    and of loads and stores; empty for generic addressing.
    `carry`: the carry flag is written (`.cc`). `saturate`: the result is clamped (`.sat`, `.satfinite`, `.relu`).
    """

    name: str
    type: str = ""
    width: int = 0
    signed: bool = False
    mode: str = ""
    compare: str = ""
    combine: str = ""
    source: str = ""
    source_width: int = 0
    source_signed: bool = False
    direction: str = ""
    clamp: str = ""
    shuffle: str = ""
    to: bool = False
    space: str = ""
    carry: bool = False
    saturate: bool = False

    @property
    def floating(self) -> bool:
        """Whether the result is no integer."""
        match = _NUMBERED.fullmatch(self.type)
        return self.type not in ("", "pred") and (match is None or match[1] == "f")


def type_width(text: str) -> int:
    """Width in bits of a type's text (`u32`, `f16x2`, `pred`), 0 where it is no type."""
    match = _NUMBERED.fullmatch(text)
    if match is None:
        return _WIDTHS.get(text, 0)
    return int(match[2]) * int(match[3] or 1)


_cache: dict[str, Op] = {}


def operation(opcode: str) -> Op:
    """Decode `opcode` (dotted text without white space or guard). Memoised per distinct text."""
    found = _cache.get(opcode)
    if found is None:
        found = _cache[opcode] = _decode(opcode)
    return found


def _first(parts: list[str], choices: tuple[str, ...]) -> str:
    return next((part for part in parts if part in choices), "")


def _decode(opcode: str) -> Op:
    name, *parts = opcode.split(".")
    if name == "cvt" and "pack" in parts:
        name = "cvt.pack"
    types = [part for part in parts if type_width(part)]
    kind = types[0] if types else ""
    source = types[1] if len(types) > 1 else kind
    return Op(
        name=name,
        type=kind,
        width=type_width(kind),
        signed=kind.startswith("s"),
        mode=_first(parts, _MODES.get(name, ())),
        compare=_first(parts, _COMPARE) if name in _COMPARING else "",
        combine=_first(parts, _COMBINE) if name in _REDUCING else "",
        source=source,
        source_width=type_width(source),
        source_signed=source.startswith("s"),
        direction=_first(parts, ("l", "r")) if name == "shf" else "",
        clamp=_first(parts, _CLAMPS),
        shuffle=_first(parts, _SHUFFLES) if name == "shfl" else "",
        to="to" in parts,
        space=next((part for part in parts if part in _SPACES), ""),
        carry="cc" in parts,
        saturate=not _SATURATING.isdisjoint(parts),
    )
