"""PTX text -> files, modules, functions, instructions, operands. Knows syntax, no opcodes."""

from ptxfence.grammar.function import Function
from ptxfence.grammar.instruction import Instruction
from ptxfence.grammar.module import Module, PtxFile
from ptxfence.grammar.parse import parse
from ptxfence.grammar.validate import validate

__all__ = ["Function", "Instruction", "Module", "PtxFile", "parse", "validate"]
