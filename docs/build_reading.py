"""Write docs/reading-a-report.md: ten reports of `ptxfence check`, each explained. `python docs/build_reading.py`.

The reports are made from files of the corpus, so that the page says what the tool says today.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ptxfence.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reading-a-report.md"
WIDTH = 118

INTRODUCTION = """\
# Reading a report

Written by `python docs/build_reading.py` from files of the corpus; `tests/test_messages.py` keeps it current.

What you need to know first. On sm_90 and later a kernel reaches memory in two ways. Ordinary loads, stores, atomics,
`ldmatrix`, `stmatrix` and `cp.async` go through the *generic proxy*. Bulk and tensor copies (`cp.async.bulk...`, TMA)
and the shared memory operands of `wgmma` and `tcgen05.mma` go through the *async proxy*. `__syncthreads()` and an
mbarrier order threads, but not these two ways against each other: if one thread stores a tile, everybody passes a
barrier and then a TMA store reads that tile, the TMA store may still see the old bytes. A *proxy fence*,
`fence.proxy.async`, executed by each thread that stored, between its stores and the barrier, closes that gap.

Every finding is built alike. Its first line has file, line and column of the second access (the one that goes wrong),
the severity and rule, the kernel, how sure the finding is (`certain`: both byte ranges are exact and overlap), the
*cause* and an id that survives edits elsewhere. Then come, a line each: the two accesses and the bytes they touch; the
synchronisation that orders the two threads; the cause again with the fence that was seen, and why it does not count.
Below stand the two lines of PTX, with the line of your source where the compiler left one; the way from the first to
the second; the line before which a fence has to be inserted; and how to write the fence in the language that the PTX
came from. The last lines give a verdict for each kernel: `hazard`, `proven` or `undecided`.
"""


@dataclass(frozen=True, slots=True)
class Example:
    """`path` is relative to the repository; its first finding is shown."""

    path: str
    title: str
    text: str


EXAMPLES = (
    Example(
        "corpus/hand/bulk_store_nofence.ptx",
        "No fence at all",
        """\
128 threads store 16 bytes each into `tile`, meet at `bar.sync`, and thread 0 has the copy engine read the tile. The
barrier makes sure that all stores were *executed*, not that the copy engine sees them. `no-fence` says that nothing
on the way was even meant as a proxy fence. `tile[0..2048)` are the bytes of the symbol that all threads together
touch; both ranges are exact, so the finding is `certain`. The remedy goes in front of the barrier, where every thread
that stored passes: `ptxfence fix` puts it there.""",
    ),
    Example(
        "corpus/ptx/triton-3.7.0/pointer_gemm.sm_100.ptx",
        "A compiler's omission",
        """\
A matrix product by Triton 3.7.0. The tile arrives by `cp.async`, which despite its name is a generic access: its data
is there after `cp.async.wait_group`, but only for the generic proxy. `tcgen05.mma` reads it through the async proxy.
A fence in front of the `cp.async` would be too early, since the data lands later; so the insertion stands behind the
wait and in front of the barrier. `(and ... more like it)` counts further copies into the same tile with the same
cause, of which some are listed. You did not write this fence and cannot: the last line names the release with the
repair.""",
    ),
    Example(
        "corpus/ptx/nvcc-13.0/war_bulk_load.nofence.sm_90.ptx",
        "A read, then a load over it",
        """\
The other direction. Threads read a buffer, meet at a barrier, and a bulk load fills the buffer with the next tile. A
load instruction may be *issued* before the barrier and have its data fetched after it; the copy engine does not wait
for that. So a thread may get bytes of the next tile. The fence belongs after the reads and before the barrier, in
every thread that read. Where each value is stored somewhere before the barrier, the load has finished by then, and the
finding is only a warning (see `ptxfence explain PF103`).""",
    ),
    Example(
        "corpus/hand/bulk_store_one_warp_fences.ptx",
        "A fence, but not by everybody",
        """\
There is a fence in front of the barrier, in the right place, but under a branch that only the first warp takes. A
proxy fence works for the thread that executes it (and for what that thread has been told of before). The stores of
the other three warps stay unfenced: `partial-threads`. The message names the fence, so that you can move it out of
the branch instead of adding another.""",
    ),
    Example(
        "corpus/hand/bulk_store_hoisted.ptx",
        "A fence in front of the loop",
        """\
The kernel stores a tile and copies it out in every iteration, but the fence stands in front of the loop: it covers
what was stored before it, not the stores of the iterations. Compilers make this mistake when they hoist what looks
invariant. The cause is `hoisted-out`; the insertion is inside the loop.""",
    ),
    Example(
        "corpus/hand/copy_early_fence.ptx",
        "A fence before the data is there",
        """\
`cp.async` was started, then comes the fence, then the wait. The fence orders what has been written when it runs, and
the copy has not written yet: `before-completion`. The way shows it: the fence is listed with `does not cover this
access`, the wait follows it. Swap the two.""",
    ),
    Example(
        "corpus/hand/bulk_store_thread_fence.ptx",
        "The wrong kind of fence",
        """\
`__threadfence_block()` and its relatives (`fence.acq_rel`, `membar`) order memory accesses of *threads*, all of them
within the generic proxy. They do nothing between proxies, whatever their scope. The same holds for `wgmma.fence`
(registers) and `fence.mbarrier_init`. The fence that is there may stay, if threads need it; the proxy fence comes in
addition.""",
    ),
    Example(
        "corpus/hand/cluster_store_narrow_fence.ptx",
        "A fence for the wrong memory",
        """\
Two CTAs of a cluster: each thread stores into the *other* CTA's shared memory. `fence.proxy.async.shared::cta` speaks
of the shared memory of the CTA whose thread executes it, so it does not cover these bytes. Rule PF111 is used where a
fence stands where it should, but names another state space; the repair is the wider form, here `.shared::cluster`.""",
    ),
    Example(
        "corpus/hand/store_in_flight.ptx",
        "Not a fence but a wait is missing",
        """\
The bulk store is asynchronous: the instruction returns at once and the copy engine reads the tile later. The threads
overwrite the tile while it may still be read. No fence helps, because nothing says when the copy is done; so there is
no insertion, and the message names the wait that is missing. Bulk copies of this kind are waited for by the thread
that issued them; the others learn of it through a barrier after that wait.""",
    ),
    Example(
        "corpus/hand/fence_twice.ptx",
        "A fence too many",
        """\
A note, not an error: the kernel is `proven`. Proxy fences cost time, and this one orders nothing that the other does
not order: without it the kernel is still proven. `ptxfence fences` lists for each fence the pairs that it orders, and
`ptxfence fix --optimize` takes such fences out.""",
    ),
)


def report(path: str) -> str:
    """The first finding of a file, and the verdicts, as the command prints them."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.chdir(ROOT):
        main(["check", "--isolated", path])
    blocks = written.getvalue().strip().split("\n\n")
    verdicts = re.sub(r" \([0-9.]+ s\)$", "", blocks[-1])
    shown = "\n\n".join([blocks[0], verdicts] if len(blocks) > 1 else [verdicts])
    return "\n".join(_wrapped(line) for line in shown.splitlines())


def _wrapped(line: str) -> str:
    """Long lines continue indented, broken at spaces."""
    parts: list[str] = []
    while len(line) > WIDTH and " " in line[20:WIDTH]:
        cut = line.rindex(" ", 20, WIDTH)
        parts.append(line[:cut])
        line = "        " + line[cut + 1 :]
    return "\n".join([*parts, line])


def page() -> str:
    parts = [INTRODUCTION]
    for number, example in enumerate(EXAMPLES, 1):
        parts.append(f"## {number}. {example.title}\n")
        parts.append(f"`{example.path}`\n\n```text\n{report(example.path)}\n```\n\n{example.text}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    os.environ["NO_COLOR"] = "1"
    PAGE.write_text(page(), encoding="utf-8")
