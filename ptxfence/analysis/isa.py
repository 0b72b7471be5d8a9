"""The instruction table's public face."""

from __future__ import annotations

from ptxfence.analysis.isa_operations import Op, operation

__all__ = ["Op", "operation"]
