"""Launches taken apart and written as launch files, on objects shaped like Triton's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxfence.integrations import record
from ptxfence.rewrite.launch_spec import Argument, TensorMap, read_launch

PTX = """.visible .entry store(
	.param .u64 .ptr .global .align 1 p0,
	.param .align 64 .b8 p1[128],
	.param .u32 p2, .param .u32 p3, .param .u64 p4, .param .u64 p5,
	.param .u32 p6, .param .f32 p7, .param .u64 p8, .param .u64 p9
)
"""


@dataclass
class Tensor:
    """As much of a tensor as is asked for; its memory is an array."""

    values: Any
    dtype: str = "torch.float16"

    def element_size(self) -> int:
        return self.values.itemsize


@dataclass
class Descriptor:
    base: Tensor
    shape: list[int]
    strides: list[int]
    padding: str = "nan"


def _kernel(signature: dict[str, Any], **metadata: Any) -> Any:
    made = {"num_warps": 4, "num_ctas": 2, "shared": 4096, "global_scratch_size": 0, **metadata}
    return SimpleNamespace(
        name="store", hash="0123456789", asm={"ptx": PTX}, src=SimpleNamespace(signature=signature),
        metadata=SimpleNamespace(**made),
    )  # fmt: skip


SIGNATURE = {"p": "*fp16", "d": "tensordesc<fp16[64, 32]>", "n": "i32", "B": "constexpr", "s": "fp32"}
META = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 32], "fp4_padded": False}


@dataclass
class Arguments:
    pointer: Tensor = field(default_factory=lambda: Tensor(np.arange(6, dtype=np.float16)))
    base: Tensor = field(default_factory=lambda: Tensor(np.zeros(128 * 64, np.float16)))

    def listed(self) -> list[Any]:
        return [self.pointer, Descriptor(self.base, [128, 64], [64, 1]), 7, 64, 0.5]


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(record, "_flat", lambda tensor: tensor.values)


def test_a_launch_comes_back_as_it_was(tmp_path: Path):
    kernel = _kernel(SIGNATURE, tensordesc_meta=[META])
    record.Recording(kernel, (3, 5), Arguments().listed()).write(tmp_path)
    folder = tmp_path / "store-01234567"
    assert (folder / "kernel.ptx").read_text() == PTX
    assert np.load(folder / "p.npy").tolist() == list(range(6))
    launch = read_launch(folder / "launch.toml")
    assert (launch.kernel, launch.grid, launch.block, launch.cluster, launch.shared) == (
        "store", (6, 5, 1), (128, 1, 1), (2, 1, 1), 4096,
    )  # fmt: skip
    assert launch.tensormaps == {"d": TensorMap("d_data", "f16", (128, 64), (64, 32), (128,), "128B", True)}
    numbers = [Argument(type=kind, value=value) for kind, value in (("i32", 128), ("i32", 64), ("i64", 64), ("i64", 1))]
    tail = [Argument(type="i32", value=7), Argument(type="f32", value=0.5), *[Argument(type="u64")] * 2]
    assert list(launch.arguments) == [Argument(buffer="p"), Argument(tensormap="d"), *numbers, *tail]
    assert launch.buffers["p"].fill == "file:p.npy"
    assert launch.buffers["p"].output


def test_tuples_are_taken_apart(tmp_path: Path):
    kernel = _kernel({"pair": ("*fp16", ("i32", "constexpr")), "none": "*fp16"})
    arguments = [(Arguments().pointer, (3, 4)), None]
    record.Recording(kernel, (1,), arguments).write(tmp_path)
    launch = read_launch(tmp_path / "store-01234567" / "launch.toml")
    assert launch.arguments[:3] == (
        Argument(buffer="pair_0"), Argument(type="i32", value=3), Argument(type="u64"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (_kernel({"p": "*fp16"}, global_scratch_size=64), "scratch memory"),
        (_kernel({"p": "weird"}), "of type weird"),
        (_kernel({"p": "tensordesc<>"}, tensordesc_meta=[{**META, "fp4_padded": True}]), "not a plain tiled one"),
    ],
)
def test_what_cannot_be_recorded_is_refused(kernel: Any, message: str):
    with pytest.raises(ValueError, match=message):
        record.Recording(kernel, (1,), [Arguments().pointer])
