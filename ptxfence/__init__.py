"""ptxfence proves, refutes and repairs the proxy fences of PTX kernels.

    report = ptxfence.check(text)      # .kernels .findings .verdict
    patch = ptxfence.fix(text)         # .text .edits .before .after
    cubin = ptxfence.assemble(text)    # bytes
    module = ptxfence.load(text)       # cuda.core ObjectCode, patched first

Everything is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxfence.errors import AssemblyError, DeviceError, PtxFenceError, PtxSyntaxError, UnsupportedPtxError

if TYPE_CHECKING:
    from ptxfence import integrations
    from ptxfence.analysis.report import Finding, Report
    from ptxfence.api import assemble, check, fix, load

__version__ = "0.1.0"

__all__ = [
    "AssemblyError",
    "DeviceError",
    "Finding",
    "PtxFenceError",
    "PtxSyntaxError",
    "Report",
    "UnsupportedPtxError",
    "__version__",
    "assemble",
    "check",
    "fix",
    "integrations",
    "load",
]

_LAZY = {
    "assemble": "ptxfence.api",
    "check": "ptxfence.api",
    "fix": "ptxfence.api",
    "load": "ptxfence.api",
    "Finding": "ptxfence.analysis.report",
    "Report": "ptxfence.analysis.report",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "integrations":
        return import_module("ptxfence.integrations")
    if name not in _LAZY:
        raise AttributeError(f"module 'ptxfence' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
