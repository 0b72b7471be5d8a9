"""Special registers (PTX ISA 10) and the launch shape that bounds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ptxfence.analysis.values_domain import interval
from ptxfence.analysis.values_nodes import Node

if TYPE_CHECKING:
    from ptxfence.analysis.values_build import Builder

MAX_THREADS = 1024  # of one CTA, all targets
WARP = 32

# Registers that every thread of a CTA reads alike, with their largest value.
_UNIFORM = {
    "%ctaid": (1 << 31) - 1,
    "%nctaid": (1 << 31) - 1,
    "%clusterid": (1 << 31) - 1,
    "%nclusterid": (1 << 31) - 1,
    "%cluster_ctaid": 15,
    "%cluster_nctaid": 16,
    "%cluster_ctarank": 15,
    "%cluster_nctarank": 16,
    "%is_explicit_cluster": 1,
    "%dynamic_smem_size": (1 << 18) - 1,
    "%total_smem_size": (1 << 18) - 1,
    "%aggr_smem_size": (1 << 18) - 1,
    "%reserved_smem_offset_begin": (1 << 18) - 1,
    "%reserved_smem_offset_end": (1 << 18) - 1,
    "%reserved_smem_offset_cap": (1 << 18) - 1,
    "%gridid": (1 << 64) - 1,
}
_VARYING = {
    "%warpid": 63,
    "%nwarpid": 64,
    "%smid": (1 << 16) - 1,
    "%nsmid": (1 << 16) - 1,
    "%lanemask_eq": (1 << 32) - 1,
    "%lanemask_le": (1 << 32) - 1,
    "%lanemask_lt": (1 << 32) - 1,
    "%lanemask_ge": (1 << 32) - 1,
    "%lanemask_gt": (1 << 32) - 1,
    "%clock": (1 << 32) - 1,
    "%clock_hi": (1 << 32) - 1,
    "%clock64": (1 << 64) - 1,
    "%globaltimer": (1 << 64) - 1,
    "%globaltimer_lo": (1 << 32) - 1,
    "%globaltimer_hi": (1 << 32) - 1,
}
_CHANGING = frozenset(
    ("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi", "%smid", "%warpid")
)
SPECIAL = frozenset(("%tid", "%ntid", "%laneid", *_UNIFORM, *_VARYING)) - _CHANGING


class Launch:
    """Threads of a CTA: `exact` per dimension where `.reqntid` says it, else `limit` from `.maxntid`."""

    def __init__(self, directives: Mapping[str, tuple[int, ...]]) -> None:
        required, most = directives.get("reqntid"), directives.get("maxntid")
        self.exact: tuple[int, int, int] | None = None
        self.limit = (MAX_THREADS, MAX_THREADS, 64)
        if required:
            self.exact = self.limit = _three(required)
        elif most:
            x, y, z = _three(most)
            total = x * y * z
            self.limit = (x, y, z) if y == z == 1 else (total, total, min(total, 64))
        self.flat = self.limit[1] == self.limit[2] == 1
        self.threads = self.exact[0] * self.exact[1] * self.exact[2] if self.exact else None


def _three(values: tuple[int, ...]) -> tuple[int, int, int]:
    padded = (*values, 1, 1, 1)
    return padded[0], padded[1], padded[2]


def special_register(builder: Builder, name: str, component: str) -> Node | None:
    """The node of a special register, None for any other name."""
    if name not in SPECIAL:
        return None
    graph, launch = builder.graph, builder.launch
    axis = "xyz".find(component) if component else 0
    if name in ("%tid", "%ntid") and component:
        if name == "%tid":
            if launch.limit[axis] == 1:
                return graph.const(0)
            builder.solver.leaves.setdefault(f"tid.{component}", interval(0, launch.limit[axis] - 1))
            return graph.var(f"tid.{component}")
        if launch.exact:
            return graph.const(launch.exact[axis])
        builder.solver.leaves.setdefault(f"ntid.{component}", interval(1, launch.limit[axis]))
        return graph.var(f"ntid.{component}")
    if name == "%laneid":
        return lane(builder)
    return _other(builder, name, component)


def lane(builder: Builder) -> Node:
    """The lane number: `tid.x & 31` where the CTA has one dimension."""
    if builder.launch.flat:
        return builder.graph.and_const(_tid(builder), WARP - 1, 32)
    builder.solver.leaves["laneid"] = interval(0, WARP - 1)
    return builder.graph.var("laneid")


def _tid(builder: Builder) -> Node:
    builder.solver.leaves.setdefault("tid.x", interval(0, builder.launch.limit[0] - 1))
    return builder.graph.var("tid.x")


def _other(builder: Builder, name: str, component: str) -> Node | None:
    most = _UNIFORM.get(name, _VARYING.get(name))
    if most is None:
        return None
    key = name[1:] + (f".{component}" if component else "")
    builder.solver.leaves.setdefault(key, interval(0, most))
    return builder.graph.var(key, 64 if most >> 32 else 32)


def is_uniform_name(name: str) -> bool:
    """Whether a variable of this name holds one value per CTA."""
    return name.startswith(("param ", "ntid")) or "%" + name.split(".")[0] in _UNIFORM
