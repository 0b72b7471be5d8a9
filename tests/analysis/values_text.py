"""A kernel around a few lines of PTX, analysed."""

from __future__ import annotations

from ptxfence.analysis.cfg import Cfg
from ptxfence.analysis.effects import Access
from ptxfence.analysis.isa import effect
from ptxfence.analysis.region import Region
from ptxfence.analysis.values import Values
from ptxfence.grammar import parse

HEADER = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 smem[];
.shared .align 128 .b8 fixed[4096];
"""
REGISTERS = """.reg .b16 %rs<20>;
.reg .b32 %r<60>;
.reg .b64 %rd<60>;
.reg .pred %p<30>;
"""


def analysed(body: str, threads: str = ".reqntid 256") -> Values:
    text = f"{HEADER}.entry k(.param .u32 n, .param .u64 g)\n{threads}\n{{\n{REGISTERS}{body}\nret;\n}}\n"
    file = parse(text)
    assert not file.errors
    module = file.modules[0]
    function = module.functions[0]
    return Values(function, Cfg(function), module)


def access(values: Values, opcode: str, which: int = 0) -> tuple[int, Access]:
    found = [i for i in values.function.instructions if i.opcode.startswith(opcode)]
    instruction = found[which]
    return instruction.index, effect(instruction.opcode, instruction.operands).accesses[0]


def region(body: str, opcode: str = "st.shared", threads: str = ".reqntid 256") -> Region:
    values = analysed(body, threads)
    return values.region(*access(values, opcode))
