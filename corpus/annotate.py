"""The findings expected in each compiled corpus file, as data, and the comments that carry them into the PTX.

The grammar of the comments is in docs/corpus.md. Hand-written files carry theirs in the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatch

Version = tuple[int, ...]
LAST_UNFENCED: Version = (3, 7, 0)
"""Last Triton release before triton-lang/triton PR 9610 (fences for cp.async and TMA-store sources)."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected finding.

    kernel: file-name pattern below corpus/ptx/<producer>-<version>/ without ``.ptx``.
    line: regular expression that selects instruction lines; occurrence: which of them, from 1.
    finding: ``RULE severity cause``; cause ``-`` where the rule has none, ``*`` where several are arguable.
    until: last producer version that has the bug; None: all.
    """

    kernel: str
    line: str
    occurrence: int
    finding: str
    until: Version | None = None


_WGMMA = r"wgmma\.mma_async"
_TCGEN = r"tcgen05\.mma"
_TMA_STORE = r"cp\.async\.bulk\.tensor\S*\.global\.shared"
_BULK_STORE = r"cp\.async\.bulk\.global\.shared"
_BULK_LOAD = r"cp\.async\.bulk\.shared::c\w+\.global"

EXPECTATIONS: tuple[Expectation, ...] = (
    # cp.async fills both tiles; the wait and the barrier are there, the proxy fence is not.
    Expectation("pointer_gemm*.sm_90", _WGMMA, 1, "PF104 error no-fence", LAST_UNFENCED),
    Expectation("pointer_gemm*.sm_100", _TCGEN, 1, "PF104 error no-fence", LAST_UNFENCED),
    Expectation("pointer_gemm.sm_100", _TCGEN, 5, "PF104 error no-fence", LAST_UNFENCED),
    # The fence for the generically stored Q stands before the loop; K and V complete inside it.
    Expectation("attention.sm_90", _WGMMA, 1, "PF104 error hoisted-out", LAST_UNFENCED),
    Expectation("attention.sm_90", _WGMMA, 9, "PF104 error hoisted-out", LAST_UNFENCED),
    # Peeled first P V product: the last fence precedes the wait for V. Loop: both products lack one.
    Expectation("attention.sm_100", _TCGEN, 5, "PF104 error before-completion", LAST_UNFENCED),
    Expectation("attention.sm_100", _TCGEN, 13, "PF104 error hoisted-out", LAST_UNFENCED),
    Expectation("attention.sm_100", _TCGEN, 17, "PF104 error hoisted-out", LAST_UNFENCED),
    Expectation("store_tile_nofence.*", _TMA_STORE, 1, "PF101 error no-fence", LAST_UNFENCED),
    Expectation("staged_wgmma_nofence.*", _WGMMA, 1, "PF101 error no-fence", LAST_UNFENCED),
    # Hand-overs between warp-specialised roles: no release inserts the fence.
    Expectation("ws_store_nofence.*", _TMA_STORE, 1, "PF101 error no-fence"),
    Expectation("ws_ring_nofence.*", _TMA_STORE, 1, "PF101 error no-fence"),
    Expectation("ws_copy_wgmma_nofence.*", _WGMMA, 1, "PF104 warning no-fence"),
    # CUDA C++.
    Expectation("transpose_bulk_store.nofence.*", _BULK_STORE, 1, "PF101 error no-fence"),
    Expectation("wgmma_staged_a.nofence.*", _WGMMA, 1, "PF101 error no-fence"),
    Expectation("war_bulk_load.nofence.*", _BULK_LOAD, 2, "PF103 error *"),
    Expectation("global_roundtrip.nofence.*", _BULK_LOAD, 1, "PF112 error *"),
    Expectation("tile_scale.nofence.*", _BULK_LOAD, 1, "PF103 warning no-fence"),
    Expectation("tile_scale.nofence.*", _BULK_STORE, 1, "PF101 error no-fence"),
)

ALLOWED: tuple[tuple[str, str], ...] = (
    # Every Blackwell kernel of Triton keeps the slot that tcgen05.alloc wrote where a TMA load lands later.
    ("host_tma_gemm*.sm_100", "PF102 note, PF103 note"),
    ("tma_*.sm_100", "PF102 note, PF103 note"),
    ("ws_*gemm.sm_100", "PF102 note, PF103 note, PF201 note"),
    # The fence for Q before the loop is covered by the one inside it; the last one follows the last use.
    ("attention.sm_*", "PF201 note"),
    ("tma_attention.sm_90", "PF201 note"),
    # The older convention: a proxy fence behind mbarrier.init.
    ("global_roundtrip.*", "PF201 note"),
    ("war_bulk_load.fence.*", "PF201 note"),
)
"""Findings that a whole file may, but need not, have."""


def annotate(text: str, kernel: str, version: Version) -> str:
    """Returns `text` with the expectation comments of `kernel` (file name without ``.ptx``).

    Raises LookupError if an expectation names a line that the text lacks.
    """
    lines = text.splitlines()
    wanted: dict[int, list[str]] = {}
    for item in EXPECTATIONS:
        if fnmatch(kernel, item.kernel) and (item.until is None or version <= item.until):
            wanted.setdefault(_find(lines, item, kernel), []).append(item.finding)
    for index, findings in wanted.items():
        lines[index] += " // expect: " + ", ".join(findings)
    allowed = [f"// allow: {findings}" for pattern, findings in ALLOWED if fnmatch(kernel, pattern)]
    return "\n".join([*allowed, *lines]) + "\n"


def _find(lines: list[str], item: Expectation, kernel: str) -> int:
    pattern = re.compile(item.line)
    hits = [index for index, line in enumerate(lines) if pattern.search(line) and not line.lstrip().startswith("//")]
    if len(hits) < item.occurrence:
        raise LookupError(f"{kernel}: no occurrence {item.occurrence} of {item.line}")
    return hits[item.occurrence - 1]
