"""Calls: which operands they have, and what the functions of the device runtime do to memory."""

from __future__ import annotations

from collections.abc import Sequence

from ptxfence.grammar.model import Address, Operand, Symbol, Vector

BRANCH = "bra.uni"
"""Opcode of an unconditional branch, for control flow that an analysis puts in place of a call."""

# CUDA's device runtime: they read or write global or local memory through the generic proxy, synchronise nobody
# and never touch the caller's shared memory. memcpy and memset are not among them: they may be given any pointer.
HARMLESS = frozenset(
    (
        "vprintf",
        "__assertfail",
        "__assert_fail",
        "malloc",
        "free",
        "__nv_aligned_device_malloc",
        "cudaMalloc",
        "cudaFree",
        "__nvvm_reflect",
    )
)


def copy_opcode(kind: str) -> str:
    """Opcode of a register copy of type `kind` (`b32`, `f16`, `pred`, ...)."""
    return f"mov.{kind}"


def returns(opcode: str) -> bool:
    """Whether the instruction returns to a caller (others with the same flow end the thread)."""
    return opcode.split(".", 1)[0] == "ret"


def call_parts(operands: Sequence[Operand]) -> tuple[tuple[Operand, ...], str | None, tuple[Operand, ...]]:
    """Results, callee and arguments of a call (PTX ISA 9.7.12.5); the callee is None where a register holds it."""
    rest = list(operands)
    results: tuple[Operand, ...] = ()
    if rest and isinstance(rest[0], Vector):
        results = rest[0].items
        del rest[0]
    callee = rest.pop(0) if rest else None
    arguments = rest[0].items if rest and isinstance(rest[0], Vector) else ()
    return results, callee.name if isinstance(callee, Symbol) else None, arguments


def parameter_access(
    opcode: str, operands: Sequence[Operand]
) -> tuple[tuple[str, int], Operand, bool] | None:
    """What a scalar load or store of a parameter variable touches: (variable, offset), value, whether it stores."""
    stores = opcode.startswith("st.param")
    if not (stores or opcode.startswith("ld.param")) or len(operands) != 2:
        return None
    address, value = operands if stores else (operands[1], operands[0])
    if not isinstance(address, Address) or not isinstance(address.base, Symbol) or isinstance(value, Vector):
        return None
    return (address.base.name, address.base.offset + address.offset), value, stores


def harmless(callee: str | None) -> bool:
    """Whether a call of a function without a body leaves shared memory and synchronisation alone."""
    return callee in HARMLESS


def stores_tensor_memory(opcode: str) -> bool:
    """tcgen05.st: its value leaves the registers as with any store, in an order that ptxas keeps (PTX ISA 9.7.16)."""
    return opcode.startswith("tcgen05.st.")
