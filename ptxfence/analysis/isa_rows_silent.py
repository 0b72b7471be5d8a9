"""Opcodes without rows: those that touch no memory of interest and order nothing, and those left unknown.

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

_FABRIC = """
fabric.submit fabric.try_atom.async fabric.try_get.async fabric.try_pullred.async fabric.try_put.async
fabric.try_red.async fabric.wait
"""
# The completion that `.sync_restrict::proxy::async` waits for does not reach the generic proxy (PTX ISA 9.5), and
# nothing says what it leaves behind. We have seen no documentation of `spcompress` and `spdecompress`.
_UNCLEAR = "cp.async.bulk.wait_group.sync_restrict::proxy::async spcompress spdecompress"

# Opcodes of the ISA that stay unknown on purpose: the fabric proxy is out of scope and may touch shared memory.
OUTSIDE = frozenset(f"{_FABRIC} {_UNCLEAR}".split())
