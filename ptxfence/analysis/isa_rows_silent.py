"""Opcodes that touch neither shared nor global memory through the proxies in question and that order nothing.

The name is one or more leading components of the opcode; their qualifiers do not matter. Texture and surface
instructions use the texture proxy (PTX ISA 8.6), `tcgen05.ld` and its like tensor memory: no proxy fence is about them.
"""

from __future__ import annotations

_ARITHMETIC = """
abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos cvt div dp2a dp4a ex2 fma fns lg2 lop3 mad mad24 madc max
min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub subc szext tanh
testp xor
"""
_VIDEO = """
vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl
vshr vsub vsub2 vsub4
"""
_REGISTERS = """
activemask match movmatrix mma redux shfl vote wmma.mma
clusterlaunchcontrol.query_cancel mbarrier.pending_count
"""
_ADDRESSES = "alloca cvta getctarank isspacep mapa stackrestore stacksave"
_HINTS = "applypriority createpolicy prefetchu"
_TEXTURES = "istypep suld suq sured sust tex tld4 txq"
_TENSOR_MEMORY = """
tcgen05.dealloc tcgen05.ld tcgen05.relinquish_alloc_permit tcgen05.shift tcgen05.st tcgen05.wait::ld tcgen05.wait::st
"""
_CONTROL = "brkpt nanosleep pmevent setmaxnreg"

SILENT = frozenset(
    f"{_ARITHMETIC} {_VIDEO} {_REGISTERS} {_ADDRESSES} {_HINTS} {_TEXTURES} {_TENSOR_MEMORY} {_CONTROL}".split()
)
