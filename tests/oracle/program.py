"""PTX text -> operations in one flat list, with symbols laid out and registers numbered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ptxfence.grammar.model import Operand, Register, Variable
from ptxfence.grammar.parse import parse

GENERIC_SHARED = 0x7F << 40  # generic addresses of shared memory
CTA_SHIFT = 24  # shared::cluster addresses: (rank + 1) << 24, 0 for the own CTA
GLOBAL_BASE = 0x20_0000_0000  # module variables
PARAM_BASE = 0x10_0000_0000  # default of the i-th 64-bit parameter: (i + 1) times this


class OracleError(Exception):
    """The program is outside the subset that the oracle runs."""


@dataclass(slots=True)
class Op:
    """One instruction. `words` is the opcode split at its dots."""

    words: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: int | None
    negated: bool
    line: int
    function: Frame
    index: int


@dataclass(slots=True)
class Frame:
    """A function: where it starts and how its registers and `.param` variables are numbered."""

    name: str
    start: int = 0
    slots: dict[str, int] = field(default_factory=dict[str, int])
    params: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    labels: dict[str, int] = field(default_factory=dict[str, int])
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))


@dataclass(slots=True)
class Program:
    """A kernel and the functions that it may call."""

    ops: list[Op]
    entry: Frame
    functions: dict[str, Frame]
    symbols: dict[str, int]  # shared offsets and global addresses
    params: tuple[Variable, ...]
    directives: dict[str, tuple[int, ...]]


_SPECIAL = ("%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%warpid", "%cluster_ctarank", "%cluster_nctarank",
            "%cluster_ctaid", "%nsmid", "%smid", "%clock", "%clock64")  # fmt: skip


def is_special(register: Register) -> bool:
    return register.name in _SPECIAL


def load(text: str) -> Program:
    """Reads a module with one `.entry`. Raises OracleError for text that does not parse or has none."""
    file = parse(text)
    if file.errors:
        raise OracleError(str(file.errors[0]))
    module = file.modules[0]
    ops: list[Op] = []
    frames: dict[str, Frame] = {}
    entry = None
    for function in module.functions:
        if not function.has_body:
            continue
        frame = Frame(function.name, start=len(ops))
        frames[function.name] = frame
        frame.params = tuple(p.name for p in function.params)
        frame.returns = tuple(p.name for p in function.returns)
        frame.targets = dict(function.targets)
        for name in frame.params + frame.returns:
            frame.slot(name)
        for inst in function.instructions:
            words = tuple(inst.opcode.split("."))
            guard = None if inst.guard is None else frame.slot(inst.guard)
            line = file.position(inst.start)[0]
            ops.append(Op(words, inst.operands, guard, inst.guard_negated, line, frame, len(ops)))
        ops.append(Op(("ret",), (), None, False, 0, frame, len(ops)))
        frame.labels = {label: frame.start + index for label, index in function.labels.items()}
        if function.kind.value == "entry":
            entry = function
    if entry is None:
        raise OracleError("no .entry")
    symbols = _layout(module.variables.values())
    return Program(ops, frames[entry.name], frames, symbols, entry.params, dict(entry.directives))


def _layout(variables: Iterable[Variable]) -> dict[str, int]:
    """Shared variables from offset 0, dynamic ones behind them all at one place; globals from GLOBAL_BASE."""
    symbols: dict[str, int] = {}
    ends = {"shared": 0, "global": GLOBAL_BASE}
    for variable in sorted(variables, key=lambda v: v.size is None):
        if variable.space not in ends:
            continue
        start = -(-ends[variable.space] // variable.align) * variable.align
        symbols[variable.name] = start
        if variable.size is not None:
            ends[variable.space] = start + variable.size
    return symbols
