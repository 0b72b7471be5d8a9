"""Compares the machine code of the original and the patched kernel.

A fence may add its own instructions and move the rest around; it must not change what is computed. So the
opcode histograms are compared: what fences are made of is counted apart (ptxas 12.9 to 13.5, sm_90 to sm_120),
everything else that differs is shown, together with registers, spills and shared memory.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ptxfence.errors import AssemblyError
from ptxfence.rewrite.assemble import Assembly, Resources
from ptxfence.rewrite.tools import Tool, find, run

DISASSEMBLY_TIMEOUT = 300.0
"""Seconds that one run of a disassembler may take."""

_LISTING = 1 << 30  # bytes
# nvdisasm opens a function with ".text.NAME:", cuobjdump with "Function : NAME".
_FUNCTION = re.compile(r"^\s*(?:\.text\.(?P<a>[\w$.]+):|Function : (?P<b>[\w$.]+))\s*$")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\{?\s*(?:@!?\w+\s+)?(?P<opcode>[A-Z][\w.]*)")
# What the proxy fences become. MEMBAR.SC.* is fence.sc, which no patch inserts.
_FENCE = re.compile(r"^(?:FENCE\.VIEW\.ASYNC|MEMBAR\.ALL\.(?:CTA|GPU)|UTMACCTL\.IV)")
# Padding and the empty load that ptxas puts before a fence after cp.async carry no meaning.
_PADDING = frozenset({"NOP", "ERRBAR", "CGAERRBAR"})


@dataclass(frozen=True, slots=True)
class Change:
    """How the machine code of one function differs: `after - before` of each opcode whose count differs."""

    function: str
    fences: Mapping[str, int] = field(default_factory=dict[str, int])
    others: Mapping[str, int] = field(default_factory=dict[str, int])
    instructions: tuple[int, int] = (0, 0)
    before: Resources = field(default_factory=Resources)
    after: Resources = field(default_factory=Resources)

    @property
    def spills_more(self) -> bool:
        """Whether the patched function spills more bytes than the original."""
        return (self.after.spill_stores, self.after.spill_loads) > (self.before.spill_stores, self.before.spill_loads)

    @property
    def only_fences(self) -> bool:
        """Whether nothing but fence instructions differs."""
        return not self.others and self.before == self.after

    def lines(self) -> tuple[str, ...]:
        """For people: what changed, one fact a line; empty if nothing did."""
        result = [f"{self.function}: {_signed(self.fences)}"] if self.fences else []
        if self.others:
            result.append(f"{self.function}: also {_signed(self.others)}")
        for name in ("registers", "stack", "spill_stores", "spill_loads", "shared"):
            old, new = getattr(self.before, name), getattr(self.after, name)
            if old != new:
                result.append(f"{self.function}: {name.replace('_', ' ')} {old} -> {new}")
        return tuple(result)


def _signed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:+d} {opcode}" for opcode, count in sorted(counts.items()))


def compare(before: Assembly, after: Assembly) -> tuple[Change, ...]:
    """What differs between two cubins, one entry per function that differs or exists in one of them only.

    Without nvdisasm and cuobjdump only the resources that ptxas reported are compared. Raises AssemblyError if a
    disassembler that was found fails.
    """
    tool = disassembler()
    old = histogram(before.cubin, tool) if tool else {}
    new = histogram(after.cubin, tool) if tool else {}
    names = sorted({*old, *new, *before.resources, *after.resources})
    changes = (
        _change(n, old.get(n, Counter()), new.get(n, Counter()), before.resources.get(n), after.resources.get(n))
        for n in names
    )
    return tuple(c for c in changes if c.fences or not c.only_fences)


def _change(
    name: str, old: Counter[str], new: Counter[str], before: Resources | None, after: Resources | None
) -> Change:
    delta = {op: new[op] - old[op] for op in sorted({*old, *new}) if new[op] != old[op]}
    fences = {op: n for op, n in delta.items() if _FENCE.match(op)}
    others = {op: n for op, n in delta.items() if op not in fences and op not in _PADDING}
    total = (old.total(), new.total())
    return Change(name, fences, others, total, before or Resources(), after or Resources())


def disassembler() -> Tool | None:
    """nvdisasm if found, else cuobjdump, else None; the newest copy."""
    for name in ("nvdisasm", "cuobjdump"):
        if tools := find(name):
            return tools[0]
    return None


def histogram(cubin: bytes, tool: Tool | None = None) -> dict[str, Counter[str]]:
    """How often each SASS opcode (with modifiers) occurs in each function. Raises AssemblyError."""
    result: dict[str, Counter[str]] = {}
    counter: Counter[str] = Counter()
    for line in disassemble(cubin, tool).splitlines():
        if match := _FUNCTION.match(line):
            counter = result.setdefault(match["a"] or match["b"], Counter())
        elif match := _INSTRUCTION.match(line):
            counter[match["opcode"]] += 1
    return result


def disassemble(cubin: bytes, tool: Tool | None = None) -> str:
    """The listing of a cubin. Raises AssemblyError if there is no disassembler or it fails."""
    tool = tool or disassembler()
    if tool is None:
        raise AssemblyError("neither nvdisasm nor cuobjdump found: install nvidia-cuda-nvdisasm")
    option = "-sass" if Path(tool.path).name.startswith("cuobjdump") else "-c"
    with tempfile.TemporaryDirectory(prefix="ptxfence-") as name:
        path = Path(name) / "in.cubin"
        path.write_bytes(cubin)
        try:
            command = [tool.path, option, path.name]
            outcome = run(command, timeout=DISASSEMBLY_TIMEOUT, folder=Path(name), limit=_LISTING)
        except (OSError, TimeoutError) as error:
            raise AssemblyError(f"{tool.name}: {error}") from None
    if outcome.status != 0:
        raise AssemblyError(f"{tool.name} failed with status {outcome.status}", tuple(outcome.stderr.splitlines()))
    return outcome.stdout
