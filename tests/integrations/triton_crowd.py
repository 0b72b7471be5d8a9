"""Run by test_triton.py: 32 processes compile the same and different kernels, half of them patching, into one cache."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from triton.runtime.cache import triton_key

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from ptxfence.integrations import journal
from ptxfence.integrations import triton as ours
from tests.integrations.triton_inside import MARK, marked, marking
from tests.integrations.triton_program import compile_kernel

KERNELS = ("store_tile_nofence", "store_tile_fence", "reload_loop_nofence", "overwrite")
PROCESSES = 32


def work(number: int, gate: int) -> bool:
    """Compiles one kernel when the gate opens; every other process patches."""
    os.read(gate, 1)
    kernel = KERNELS[number // 2 % len(KERNELS)]
    if number % 2:
        return not marked(compile_kernel(kernel))
    with ours.install("fix", examiner=marking):
        return marked(compile_kernel(kernel))


def main() -> None:
    triton_key()  # a hash over the whole of Triton: once here, not once a process
    reader, writer = os.pipe()
    children: list[int] = []
    for number in range(PROCESSES):
        child = os.fork()
        if child == 0:
            good = False
            try:
                good = work(number, reader)
            finally:
                os._exit(0 if good else 1)
        children.append(child)
    os.write(writer, b"x" * PROCESSES)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert statuses == [0] * PROCESSES, statuses

    for group in Path(os.environ["TRITON_CACHE_DIR"]).glob("*/__grp__*.json"):
        paths = json.loads(group.read_text())["child_paths"]
        texts = {Path(path).suffix: Path(path).read_bytes() for path in paths.values()}
        patched = "ptxfence" in json.loads(texts[".json"])
        assert texts[".cubin"].startswith(b"\x7fELF")
        assert (MARK.encode() in texts[".ptx"]) is patched
    entries = journal.read(Path(os.environ[journal.VARIABLE]))
    assert len({entry.pid for entry in entries}) == PROCESSES // 2
    assert not any(entry.failure for entry in entries)
    assert journal.totals(entries).patched == len(KERNELS)
    print("all done")


if __name__ == "__main__":
    main()
