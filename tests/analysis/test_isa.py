"""The instruction table against ptxas, against the ISA's list of instructions, and against forms that do not exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from isa_text import FOLDER, Sample, describe, is_known, module, samples

from ptxfence.analysis.effects import Direction, Fence, FenceKind, Knowledge, Space
from ptxfence.analysis.isa import OUTSIDE, ROWS, SILENT, effect, lookup, operation
from ptxfence.grammar import parse
from ptxfence.grammar.model import Address, Immediate, Opaque, Register, Vector

SAMPLES = list(samples())
NEWEST = (9, 5)  # the newest PTX version that a sample asks for
OPCODES = Path(__file__).with_name("isa_opcodes.txt")
_ROOT = Path(__file__).parents[2]


def _compilers() -> list[Path]:
    """ptxas of the test extra (nvidia-cuda-nvcc), then the one on PATH."""
    found = sorted(Path(sys.prefix).glob("lib/python*/site-packages/nvidia/*/bin/ptxas"), reverse=True)
    system = shutil.which("ptxas")
    return [*found, *([Path(system)] if system else [])]


def _ptx_version(compiler: Path) -> tuple[int, int]:
    """The newest PTX version that this ptxas takes: CUDA 13.x has 9.x, 12.9 has 8.8."""
    text = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.search(r"release (\d+)\.(\d+)", text)
    assert match is not None, text
    return (9, int(match[2])) if int(match[1]) == 13 else (8, 8)


def _parsed(chosen: list[Sample]) -> list[tuple[Sample, str]]:
    """The samples of one file with the description of what the table says of each."""
    file = parse(module([sample.statement for sample in chosen], chosen[0].target, "9.5"))
    assert not file.errors
    kernel = next(function for function in file.modules[0].functions if function.name == "kernel")
    instructions = kernel.instructions
    assert len(instructions) == len(chosen) + 1
    return [
        (sample, describe(effect(each.opcode, each.operands)))
        for sample, each in zip(chosen, instructions, strict=False)
    ]


FILES = sorted(path.name for path in FOLDER.glob("*.txt"))


@pytest.mark.parametrize("name", FILES)
def test_samples_have_the_expected_effect(name: str) -> None:
    chosen = [sample for sample in SAMPLES if sample.file == name]
    wrong = [(s.statement, s.expected, got) for s, got in _parsed(chosen) if s.expected != got]
    assert not wrong


@pytest.mark.parametrize("name", FILES)
def test_samples_assemble(name: str, tmp_path: Path) -> None:
    compilers = _compilers()
    if not compilers:
        pytest.skip("no ptxas: neither nvidia-cuda-nvcc nor PATH has one")
    compiler = max(compilers, key=_ptx_version)
    version = min(_ptx_version(compiler), NEWEST)
    chosen = [sample for sample in SAMPLES if sample.file == name and sample.version <= version]
    assert chosen
    target = chosen[0].target
    source = tmp_path / "samples.ptx"
    source.write_text(module([sample.statement for sample in chosen], target, f"{version[0]}.{version[1]}"))
    command = [compiler, "-arch", target, "-O1", source, "-o", tmp_path / "samples.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_lookup_agrees_with_effect() -> None:
    for sample in SAMPLES:
        opcode = re.sub(r"^@\S+ ", "", sample.statement.rstrip(";")).split()[0]
        plain = lookup(opcode)
        silent = plain.knowledge is Knowledge.IRRELEVANT
        assert silent == (sample.expected in ("irrelevant", "elects")), sample.statement
        assert is_known(plain) == (sample.expected != "unknown"), sample.statement
        assert lookup(opcode) is plain


def test_table_holds_every_instruction_of_the_isa() -> None:
    lines = OPCODES.read_text().splitlines()
    listed = {name for line in lines if not line.startswith("#") for name in line.split()}
    assert listed == {row.name for row in ROWS} | SILENT | OUTSIDE


def test_every_row_has_a_sample() -> None:
    seen = {lookup(sample.statement.rstrip(";").split()[0]).family for sample in SAMPLES}
    seen |= {lookup("bra").family}  # its sample starts with the guard
    assert {row.name for row in ROWS} | SILENT <= seen


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_instructions_out_of_scope_stay_unknown(name: str) -> None:
    assert lookup(name).knowledge is Knowledge.UNKNOWN
    assert lookup(name).relevant


@pytest.mark.parametrize(
    "opcode",
    [
        "fence.proxy.async.shared",
        "fence.proxy.async.cta",
        "fence.proxy.async.shared::cta.cta",
        "fence.proxy.async.global.gpu",
        "membar.proxy.async.shared::cta",
        "membar.proxy.async.global",
        "membar.proxy.tensormap::generic.acquire.gpu",
        "membar.cluster",
        "fence.proxy.tensormap",
        "fence.proxy.tensormap::generic",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cta.cluster",
        "fence.proxy.async::generic.release.sync_restrict::shared::cluster.cluster",
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cta",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster::read.cluster",
        "fence.proxy.async::generic.release.cluster",
        "fence.proxy.generic::async",
        "fence.mbarrier_init.release.cta",
        "fence",
        "fence.acq_rel",
        "mbarrier.arrive.acq_rel.cta.shared::cta.b64",
        "cp.async.cg.shared::cluster.global",
        "cp.async.bulk.shared.global.mbarrier::complete_tx::bytes",
        "cp.async.bulk.global.shared::cluster.bulk_group",
        "cp.async.bulk.shared::cta.global.bulk_group",
        "cp.async.bulk.tensor.2d.shared::cluster.global.bulk_group",
        "tcgen05.mma.cta_group::1.kind::new",
        "wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16",
        "ld.shared.new_qualifier.b32",
        "st.shared.async.b32",
        "frobnicate.b32",
        "",
    ],
)
def test_forms_that_ptxas_refuses_are_unknown(opcode: str) -> None:
    assert lookup(opcode).knowledge is Knowledge.UNKNOWN
    assert effect(opcode, ()).knowledge is Knowledge.UNKNOWN


def _fence(opcode: str) -> Fence:
    (fence,) = lookup(opcode).fences
    return fence


def test_only_proxy_fences_cover_a_space() -> None:
    for opcode in ("fence.sc.sys", "fence.acq_rel.gpu", "membar.sys", "fence.mbarrier_init.release.cluster"):
        assert _fence(opcode).kind is not FenceKind.ASYNC
        assert not _fence(opcode).covers
    for opcode in ("wgmma.fence.sync.aligned", "tcgen05.fence::before_thread_sync"):
        assert not _fence(opcode).covers


def test_spaces_and_directions_of_the_generic_async_fence() -> None:
    assert _fence("fence.proxy.async").covers >= {Space.CTA, Space.CLUSTER, Space.GLOBAL}
    assert _fence("fence.proxy.async.shared::cta").covers == {Space.CTA}
    assert _fence("fence.proxy.async.shared::cluster").covers == {Space.CTA, Space.CLUSTER}
    assert Space.CTA not in _fence("fence.proxy.async.global").covers
    read = _fence("fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cta")
    assert read.direction is Direction.RELEASE_READS


R, A, V, I = Register("r"), Address(Register("r")), Vector((Register("r"),)), Immediate(0)  # noqa: E741


def test_positions_follow_the_operands() -> None:
    arrive = "mbarrier.arrive.shared::cta.b64"
    counted, plain = effect(arrive, (R, A, I)).sync, effect(arrive, (R, A)).sync
    assert counted is not None
    assert plain is not None
    assert (counted.address, counted.count, plain.count) == (1, 2, None)
    product = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
    assert [x.operand for x in effect(product, (V, R, R, R, I, I, I, I)).accesses] == [1, 2]
    assert [x.operand for x in effect(product, (V, V, R, R, I, I, I)).accesses] == [2]


def test_a_missing_memory_operand_makes_the_instruction_unknown() -> None:
    copy = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
    assert is_known(effect(copy, (A, A, R, A)))
    assert not is_known(effect(copy, (A, A, R)))
    assert not is_known(effect("ld.shared.b32", (R,)))
    assert is_known(effect("ld.shared.b32", (R, Opaque("[x]"))))


@pytest.mark.parametrize("space", ["local", "param", "const"])
def test_private_memory_is_not_relevant(space: str) -> None:
    assert lookup(f"ld.{space}.b32").accesses
    assert not lookup(f"ld.{space}.b32").relevant
    assert lookup("ld.shared.b32").relevant
    assert lookup("ld.b32").relevant


@pytest.mark.parametrize(
    ("opcode", "expected"),
    [
        ("mad.wide.u16", {"name": "mad", "mode": "wide", "width": 16, "signed": False}),
        ("mul.hi.s64", {"mode": "hi", "width": 64, "signed": True}),
        ("setp.lt.and.s32", {"compare": "lt", "combine": "and", "signed": True}),
        ("setp.lo.u32", {"compare": "lo", "mode": ""}),
        ("cvt.u64.u32", {"type": "u64", "source": "u32", "width": 64, "source_width": 32}),
        ("cvt.rn.f16x2.f32", {"width": 32, "source_width": 32, "floating": True}),
        ("cvt.s64.s32", {"source_signed": True, "floating": False}),
        ("cvta.to.shared::cta.u64", {"to": True, "space": "shared::cta"}),
        ("cvta.shared.u64", {"to": False, "space": "shared"}),
        ("shf.l.wrap.b32", {"direction": "l", "clamp": "wrap"}),
        ("shfl.sync.idx.b32", {"shuffle": "idx", "width": 32}),
        ("prmt.b32.f4e", {"mode": "f4e"}),
        ("add.cc.u32", {"name": "add", "carry": True}),
        ("mov.pred", {"width": 1, "floating": False}),
        ("mov.b128", {"width": 128}),
        ("elect.sync", {"name": "elect", "width": 0}),
        ("add.sat.s32", {"saturate": True}),
        ("vote.sync.ballot.b32", {"mode": "ballot"}),
    ],
)
def test_operation(opcode: str, expected: dict[str, object]) -> None:
    op = operation(opcode)
    assert {name: getattr(op, name) for name in expected} == expected


def test_the_table_needs_no_slow_library() -> None:
    code = "import sys, ptxfence.analysis.isa; print(*sorted({'lark', 'networkx', 'rich', 'cuda'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_ROOT)
    assert done.stdout.split() == []
