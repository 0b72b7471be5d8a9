"""PTX on its way into the driver through cuda-python, on a driver made up for tests."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxfence.errors import HazardError
from ptxfence.integrations import loader
from ptxfence.integrations.outcome import Mode, Notice, Outcome
from tests.integrations.helpers import BUGGY, FENCE, HERE, environment, run

PTX = b".version 8.0\n.target sm_90a\n"
NOTICE = Notice("PF101", "missing-fence-raw", "error", "k", "no fence", 7, "x")


def _mark(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
    return Outcome(text + "// marked\n" if mode is Mode.FIX else text, 1, ("k",), (), (NOTICE,), (NOTICE,))


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A fresh fake `cuda.bindings.driver`."""
    for name in [name for name in sys.modules if name == "cuda" or name.startswith("cuda.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(HERE / "fake_cuda"))
    yield importlib.import_module("cuda.bindings.driver")
    loader.uninstall()
    for name in [name for name in sys.modules if name == "cuda" or name.startswith("cuda.")]:
        del sys.modules[name]


def test_every_way_of_loading_ptx_is_patched(driver: Any, tmp_path: Path):
    loader.install("fix", examiner=_mark)
    want = PTX + b"// marked\n\0"
    assert driver.cuModuleLoadData(PTX) == (0, want)
    assert driver.cuModuleLoadData(PTX + b"\0") == (0, want)
    assert driver.cuModuleLoadDataEx(PTX, 0, [], []) == (0, want)
    assert driver.cuLibraryLoadData(PTX, [], [], 0, [], [], 0) == (0, want)
    memory = ctypes.create_string_buffer(PTX)
    assert driver.cuModuleLoadData(ctypes.addressof(memory)) == (0, want)
    assert driver.cuModuleLoadData(memory) == (0, want)
    (tmp_path / "k.ptx").write_bytes(PTX)
    assert driver.cuModuleLoad(str(tmp_path / "k.ptx").encode()) == (0, want)
    driver.cuLinkAddData("state", 1, PTX, len(PTX), b"k", 0, [], [])
    assert driver.MEMORY[0] == want


def test_text_with_nothing_to_patch_reaches_the_driver_as_bytes(driver: Any):
    """numba-cuda's `compile_ptx` gives a `str`, which the driver's bindings refuse."""
    text = PTX.decode() + ".address_size 64\n"
    assert loader.cuModuleLoadData(text) == (0, text.encode() + b"\0")


@pytest.mark.parametrize("image", [b"\x7fELF.version", b"\x50\xed\x55\xba.version", b"no ptx", 0, object()])
def test_what_is_no_ptx_passes_untouched(image: Any, driver: Any):
    loader.install("fix", examiner=_mark)
    assert driver.cuModuleLoadFatBinary(image)[1] is image


def test_check_looks_on_and_error_refuses(driver: Any):
    loader.install("check", examiner=_mark)
    assert driver.cuModuleLoadData(PTX) == (0, PTX)
    loader.install("error", examiner=_mark)
    with pytest.raises(HazardError, match="PF101"):
        driver.cuModuleLoadData(PTX)
    loader.uninstall()
    assert driver.cuModuleLoadData(PTX) == (0, PTX)


def test_a_patch_that_the_driver_refuses_is_dropped(driver: Any):
    loader.install("fix", examiner=lambda text, *_: Outcome(text + "// refused by the driver\n", 1))
    assert driver.cuModuleLoadData(PTX) == (0, PTX)


def test_a_fault_of_ours_loads_the_original(driver: Any):
    def broken(text: str, name: str, mode: Mode, seconds: float) -> Outcome:
        raise MemoryError

    loader.install("fix", examiner=broken)
    assert driver.cuModuleLoadData(PTX) == (0, PTX)


def test_a_file_that_cannot_be_read_is_the_driver_s_business(driver: Any, tmp_path: Path):
    loader.install("fix", examiner=_mark)
    with pytest.raises(FileNotFoundError):
        driver.cuModuleLoad(str(tmp_path / "nothing.ptx"))


def test_drop_ins_patch_for_real(driver: Any):
    text = BUGGY.read_bytes()
    for function in (loader.cuModuleLoadData, loader.cuLibraryLoadData):
        assert function(text)[1].count(FENCE.encode()) == 1
    assert loader.cuModuleLoadDataEx(text, 0, [], [])[1].count(FENCE.encode()) == 1
    assert loader.cuModuleLoadData(text, mode="check")[1] is text


def test_object_code_of_cuda_core():
    core: Any = pytest.importorskip("cuda.core")
    code = core.ObjectCode.from_ptx(BUGGY.read_bytes(), name="store", symbol_mapping={"f": "store_tile"})
    after = loader.patched(code)
    assert after.code.count(FENCE.encode()) == 1
    assert (after.name, after.code_type, after.symbol_mapping) == ("store", "ptx", {"f": "store_tile"})
    assert loader.patched(code, "check").code == code.code
    with pytest.raises(HazardError):
        loader.patched(code, "error")
    cubin = core.ObjectCode.from_cubin(b"\x7fELF", name="x")
    assert loader.patched(cubin) is cubin


def test_the_environment_covers_cuda_python(tmp_path: Path):
    program = (
        "import ptxfence.integrations.activate\nfrom cuda.bindings import driver\n"
        f"print(driver.cuModuleLoadData(open({str(BUGGY)!r}, 'rb').read())[1].count(b'{FENCE}'))"
    )
    env = environment(PYTHONPATH=str(HERE / "fake_cuda"), PTXFENCE="fix")
    result = run([sys.executable, "-c", program], env)
    assert (result.returncode, result.stdout) == (0, "1\n"), result.stderr
