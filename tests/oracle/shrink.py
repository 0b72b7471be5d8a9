"""Makes a disagreeing kernel small: drops lines while the same kind of disagreement remains."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ptxfence.errors import PtxFenceError
from tests.oracle.kernels import Kernel
from tests.oracle.program import OracleError


def shrink(kernel: Kernel, disagrees: Callable[[Kernel], bool], rounds: int = 4) -> Kernel:
    """Greedy removal of runs of lines, long ones first. A kernel that no longer runs does not count."""
    for _ in range(rounds):
        before = len(kernel.body)
        for length in (8, 4, 2, 1):
            kernel = _pass(kernel, disagrees, length)
        if len(kernel.body) == before:
            break
    used = "\n".join(kernel.body)
    functions = tuple(f for f in kernel.functions if f"call {f.split()[1].split('(')[0]}" in used)
    return replace(kernel, functions=functions)


_SCRATCH = re.compile(r"(?<![.\w])(?:(?:v|ph|i|s|x|p)\d+|first|both|rank|other|peer|there|signal)\b")
_NUMBERS = re.compile(r"(?<!PF)\b\d+\b")


def signature(kernel: Kernel, what: str, text: str) -> tuple[str, ...]:
    """A disagreement without its line numbers: its kind, its words, the instructions that it names."""
    lines = kernel.text(32).splitlines()
    named = {lines[int(n) - 1].strip() for n in _NUMBERS.findall(text) if 0 < int(n) <= len(lines)}
    return what, _NUMBERS.sub("", text), *sorted(named)


def defined(kernel: Kernel) -> bool:
    """Whether each scratch register is written on an earlier line than it is read on."""
    known: set[str] = set()
    for line in kernel.body:
        names = _SCRATCH.findall(line)
        opcode = line.lstrip("@!").split()[0 if not line.startswith("@") else 1] if " " in line else ""
        stores = opcode.startswith(("st.", "red.", "cp.", "mbarrier.arrive", "bra", "call"))
        guard = names[:1] if line.startswith("@") and names and f"{names[0]} " in line[:5] else []
        reads = names if stores else [*guard, *names[len(guard) + 1 :]]
        if line.startswith(".reg"):
            continue
        if any(name not in known for name in reads):
            return False
        known.update(names)
    return True


def _pass(kernel: Kernel, disagrees: Callable[[Kernel], bool], length: int) -> Kernel:
    index = len(kernel.body) - length
    while index >= 0:
        body = kernel.body[:index] + kernel.body[index + length :]
        smaller = replace(kernel, body=body)
        try:
            if defined(smaller) and disagrees(smaller):
                kernel = smaller
        except (OracleError, PtxFenceError, KeyError):  # a label or register that the lines left need is gone
            pass
        index -= 1
    return kernel
