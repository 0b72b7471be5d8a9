"""Run by test_triton.py in a process of its own: what install() must do beside patching."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import pytest
import triton
import triton.language as tl
from triton import knobs

from ptxfence.errors import HazardError
from ptxfence.integrations import journal
from ptxfence.integrations import triton as ours
from ptxfence.integrations.outcome import Mode, Outcome
from tests.integrations.triton_program import compile_kernel, use_fake_driver

KERNEL = "store_tile_nofence"
MARK = "// marked"


@triton.jit
def copy(source, target, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.load(source + offsets))


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=[])
@triton.jit
def tuned(source, target, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.load(source + offsets))


def marking(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
    """An analysis that is seen at work in every text."""
    return Outcome(f"{text}{MARK}\n" if mode is Mode.FIX else text, 1, (name,))


def broken(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
    raise RuntimeError("it broke")


def garbage(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
    return Outcome(text + "\nthis is no PTX\n", 1)


def marked(kernel: Any) -> bool:
    return MARK in kernel.asm["ptx"]


def others_keep_their_hooks() -> None:
    seen: list[str] = []

    def hook(*arguments: Any, **named: Any) -> tuple[str, str] | None:
        if not arguments and not named:
            return "theirs", "11"
        seen.append("stages")
        return None

    def listener(**event: Any) -> None:
        seen.append("compiled")

    knobs.runtime.add_stages_inspection_hook = hook
    knobs.compilation.listener = listener
    with ours.install("fix", examiner=marking):
        assert marked(compile_kernel(KERNEL))
        assert seen == ["stages", "compiled"]
    assert knobs.runtime.add_stages_inspection_hook is hook
    assert knobs.compilation.listener is listener
    assert not marked(compile_kernel(KERNEL))
    knobs.runtime.add_stages_inspection_hook = knobs.compilation.listener = None


def a_hook_put_over_ours_ends_with_us() -> None:
    installation = ours.install("fix", examiner=marking)
    inner = knobs.runtime.add_stages_inspection_hook

    def over(*arguments: Any, **named: Any) -> Any:
        return inner(*arguments, **named)

    knobs.runtime.add_stages_inspection_hook = over
    assert marked(compile_kernel(KERNEL))
    installation.__exit__(None, None, None)
    assert knobs.runtime.add_stages_inspection_hook is over
    assert not marked(compile_kernel(KERNEL))
    knobs.runtime.add_stages_inspection_hook = None


def installations_nest() -> None:
    with ours.install("fix", examiner=marking):
        with ours.install("check", examiner=marking):
            assert not marked(compile_kernel(KERNEL))
            assert os.environ["PTXFENCE"] == "check"
            assert "TORCH_COMPILE_CACHE_KEY_TAG" not in os.environ
        assert os.environ["TORCH_COMPILE_CACHE_KEY_TAG"].startswith("ptxfence-")
        assert marked(compile_kernel(KERNEL))
        assert os.environ["PTXFENCE"] == "fix"
    assert "PTXFENCE" not in os.environ
    assert not marked(compile_kernel(KERNEL))


def faults_change_nothing() -> None:
    plain = compile_kernel(KERNEL).asm
    for examiner, reason in ((broken, "RuntimeError: it broke"), (garbage, "ptxas refused the patched text")):
        forget(KERNEL)
        with ours.install("fix", examiner=examiner):
            assert compile_kernel(KERNEL).asm["cubin"] == plain["cubin"]
        assert failures()[-1].startswith(reason)
        # The unpatched kernel is not kept under our key: a working run patches it.
        with ours.install("fix", examiner=marking):
            assert marked(compile_kernel(KERNEL))
    with ours.install("error", examiner=broken), pytest.raises(HazardError, match="it broke"):
        compile_kernel(KERNEL)


def failures() -> list[str]:
    """What went wrong in this process so far."""
    entries = journal.read(Path(os.environ[journal.VARIABLE]))
    return [entry.failure for entry in entries if entry.failure and entry.pid == os.getpid()]


def forget(name: str) -> None:
    """Takes the patched entry out of the cache."""
    with ours.install("fix", examiner=marking):
        for path in compile_kernel(name).metadata_group.values():
            Path(path).with_name(f"__grp__{Path(path).name}").unlink(missing_ok=True)


def the_jit_keeps_memory_apart_and_launches_cost_nothing() -> None:
    use_fake_driver()
    pointers = (triton.MockTensor(tl.float32), triton.MockTensor(tl.float32))
    plain = copy.warmup(*pointers, BLOCK=128, grid=(1,))
    with ours.install("fix", examiner=marking):
        kernel = copy.warmup(*pointers, BLOCK=128, grid=(1,))
        assert marked(kernel)
        assert copy.warmup(*pointers, BLOCK=128, grid=(1,)) is kernel
        with_us = launch_seconds(pointers)
    assert copy.warmup(*pointers, BLOCK=128, grid=(1,)) is plain
    assert not marked(plain)
    without = launch_seconds(pointers)
    with ours.install("check", examiner=marking):
        checked = launch_seconds(pointers)
    print(f"launch path: {without * 1e6:.2f} us plain, {checked * 1e6:.2f} us check, {with_us * 1e6:.2f} us fix")
    assert with_us - without < 5e-6


def launch_seconds(pointers: tuple[Any, ...], count: int = 300) -> float:
    """Shortest time of Triton's launch path up to the driver call, for a compiled kernel."""
    best = 1.0
    for _ in range(count):
        start = time.perf_counter()
        copy.warmup(*pointers, BLOCK=128, grid=(1,))
        best = min(best, time.perf_counter() - start)
    return best


def autotuned_configurations_are_all_seen() -> None:
    seen: list[str] = []

    def counting(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
        seen.append(name)
        return marking(text, name, mode, seconds)

    with ours.install("fix", examiner=counting):
        kernels = tuned.warmup(triton.MockTensor(tl.float32), triton.MockTensor(tl.float32), grid=(1,))
    assert len(kernels) == 2
    assert all(marked(kernel) for kernel in kernels)
    assert seen == ["tuned", "tuned"]


def forked_workers_are_watched() -> None:
    context = multiprocessing.get_context("fork")
    with ours.install("fix", examiner=marking), context.Pool(2) as pool:
        assert pool.map(work, range(2)) == [True, True]


def work(_: int) -> bool:
    return marked(compile_kernel("store_tile_fence"))


def entries_without_ptx_are_named() -> None:
    knobs.compilation.store_binary_only = True
    try:
        with ours.install("check", examiner=marking):
            compile_kernel("reload_loop_fence")
    finally:
        knobs.compilation.store_binary_only = False
    assert any("no PTX in the cache entry" in failure for failure in failures())


if __name__ == "__main__":
    for step in (
        others_keep_their_hooks,
        a_hook_put_over_ours_ends_with_us,
        installations_nest,
        faults_change_nothing,
        forked_workers_are_watched,
        entries_without_ptx_are_named,
        the_jit_keeps_memory_apart_and_launches_cost_nothing,
        autotuned_configurations_are_all_seen,
    ):
        print(step.__name__, flush=True)
        step()
    assert importlib.import_module("triton.knobs").compilation.listener is None
    print("all done")
