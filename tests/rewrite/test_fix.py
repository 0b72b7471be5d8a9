"""`fix` on the corpus: assembles, proven twice, only lines added, a second run adds none, no more than by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ptxfence.analysis import check
from ptxfence.analysis.effects import FenceKind
from ptxfence.analysis.isa import lookup
from ptxfence.analysis.report import Cause, Report, Severity, Verdict
from ptxfence.errors import RecheckError
from ptxfence.grammar import parse
from ptxfence.rewrite import assemble, patch
from ptxfence.rewrite.edits import diff
from ptxfence.rewrite.patch import Patch, fix
from ptxfence.rewrite.recheck import recheck
from ptxfence.rewrite.roots import roots
from ptxfence.rewrite.wishes import repairable

ROOT = Path(__file__).parent.parent.parent
HAND = ROOT / "corpus" / "hand"
BENCH = ROOT / "bench" / "hardware" / "ptx"
COMPILED = ROOT / "corpus" / "ptx"
SAMPLE = [
    *sorted(HAND.glob("*.ptx")),
    *sorted((COMPILED / "nvcc-13.0").glob("*.ptx")),
    *sorted((COMPILED / "triton-3.7.0").glob("*nofence.sm_90.ptx")),
    COMPILED / "triton-3.7.0" / "pointer_gemm.sm_90.ptx",
    COMPILED / "triton-3.7.0" / "attention.sm_90.ptx",
]


def report_of(text: str, name: str = "k.ptx") -> Report:
    return check.analyse(parse(text, name))


def fixed(text: str, *, level: Severity = Severity.WARNING, optimize: bool = False) -> Patch:
    file = parse(text, "k.ptx")
    return fix(file, check.analyse(file), level=level, optimize=optimize)


def fences(text: str) -> list[str]:
    return [
        instruction.opcode
        for module in parse(text).modules
        for function in module.functions
        if function.has_body
        for instruction in function.instructions
        if any(f.kind is FenceKind.ASYNC for f in lookup(instruction.opcode).fences)
    ]


def without_marked(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "// ptxfence PF" not in line)


def proven_twice(text: str) -> bool:
    file = parse(text, "k.ptx")
    return check.analyse(file).verdict is Verdict.PROVEN and not any(recheck(m, f) for m, f in roots(file))


@pytest.mark.parametrize("path", SAMPLE, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_corpus(path: Path) -> None:
    text = path.read_text()
    before = report_of(text, path.name)
    wanted = [f for f in before.findings if f.severity >= Severity.WARNING]
    result = fixed(text)
    assert without_marked(result.text) == text
    if not wanted:
        assert result.text == text
        return
    if all(repairable(f) for f in wanted):
        assert result.after.verdict is Verdict.PROVEN
        assert proven_twice(result.text)
    assert fixed(result.text).edits == ()
    if assemble.available() and ".version 9" not in text:
        assemble.assemble(result.text, filename=path.name)


TWINS = [
    ("copy_nofence", "copy_fence"),
    ("copy_early_fence", "copy_fence"),
    ("copy_mbarrier_nofence", "copy_mbarrier_fence"),
    ("bulk_store_nofence", "bulk_store_fence"),
    ("bulk_store_hoisted", "bulk_store_loop_fence"),
    ("cluster_store_nofence", "cluster_store_fence"),
    ("global_scratch_nofence", "global_scratch_fence"),
    ("overwrite_nofence", "overwrite_fence"),
    ("reload_nofence", "reload_fence"),
]


@pytest.mark.parametrize(("wrong", "right"), TWINS, ids=lambda name: name)
def test_no_more_fences_than_by_hand(wrong: str, right: str) -> None:
    ours = [edit.insert.rstrip(";") for edit in fixed((HAND / f"{wrong}.ptx").read_text()).edits]
    assert sorted(ours) == sorted(fences((HAND / f"{right}.ptx").read_text()))


@pytest.mark.parametrize("name", [p.name.split(".")[0] for p in sorted(BENCH.glob("*.nofence.*"))])
def test_hardware_kernels_get_one_fence(name: str) -> None:
    result = fixed((BENCH / f"{name}.nofence.sm_90.ptx").read_text(), level=Severity.ERROR)
    assert [edit.insert for edit in result.edits] == ["fence.proxy.async.shared::cta;"]
    assert not [f for f in result.after.findings if f.severity >= Severity.ERROR]


def test_level_and_policy() -> None:
    text = (HAND / "copy_mbarrier_nofence.ptx").read_text()  # a warning, and only the consumer can fence
    assert not fixed(text, level=Severity.ERROR).edits
    assert fixed(text, level=Severity.WARNING).after.verdict is Verdict.PROVEN


def test_suppressed_findings_stay() -> None:
    """The caller hands in the findings that count; what it left out must not be repaired in passing."""
    file = parse((HAND / "bulk_store_nofence.ptx").read_text(), "k.ptx")
    report = check.analyse(file)
    nothing = Report(report.filename, report.ptx_version, report.target, report.kernels, ())
    assert fix(file, nothing, level=Severity.NOTE).edits == ()


def test_unsynchronised_is_left_alone() -> None:
    result = fixed((HAND / "bulk_store_no_barrier.ptx").read_text())
    assert result.edits == ()
    assert [f.cause for f in result.after.findings] == [Cause.UNSYNCHRONISED]


def test_patch_applies_what_the_diff_shows(tmp_path: Path) -> None:
    path = COMPILED / "triton-3.7.0" / "store_tile_nofence.sm_90.ptx"
    text = path.read_text()
    result = fixed(text)
    (tmp_path / path.name).write_text(text)
    shown = diff(path.name, text, result.text)
    subprocess.run(["patch", "-p0"], input=shown, text=True, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / path.name).read_text() == result.text


def test_crlf_and_missing_newline_survive() -> None:
    text = (HAND / "bulk_store_nofence.ptx").read_text().replace("\n", "\r\n").removesuffix("\r\n")
    result = fixed(text)
    assert result.text != text
    assert without_marked(result.text) == text
    assert "\n" not in result.text.replace("\r\n", "")


def test_a_patch_that_fails_the_recheck_is_our_bug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (HAND / "bulk_store_nofence.ptx").read_text()
    real = patch.recheck

    def suspicious(*arguments: object) -> object:
        return real(*arguments) or real(*roots_of(text))  # type: ignore[arg-type]

    monkeypatch.setattr(patch, "recheck", suspicious)
    monkeypatch.setattr(patch, "gettempdir", lambda: str(tmp_path))
    with pytest.raises(RecheckError, match="bug of ptxfence"):
        fixed(text)
    (kept,) = tmp_path.iterdir()
    assert kept.read_text() == text


def roots_of(text: str) -> tuple[object, object]:
    return next(iter(roots(parse(text))))


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("fence_twice", ["fence.proxy.async.shared::cta"]),
        ("fence_wide", ["fence.proxy.async.shared::cta"]),
        ("fence_in_loop", ["fence.proxy.async.shared::cta"]),
        ("bulk_store_fence", ["fence.proxy.async.shared::cta"]),
        ("cluster_store_fence", ["fence.proxy.async.shared::cluster"]),
        ("global_scratch_fence", ["fence.proxy.async.global"]),
        ("bulk_store_late_fence", ["fence.proxy.async.shared::cta"]),
    ],
)
def test_optimize_hand(name: str, left: list[str]) -> None:
    text = (HAND / f"{name}.ptx").read_text()
    result = fixed(text, optimize=True)
    assert fences(result.text) == left
    assert proven_twice(result.text)
    assert not [f for f in result.after.findings if f.rule in ("PF201", "PF202", "PF203")]
    assert fixed(result.text, optimize=True).edits == ()
    assert bool(result.savings) == result.changed


def test_optimize_moves_out_of_the_loop() -> None:
    result = fixed((HAND / "fence_in_loop.ptx").read_text(), optimize=True)
    (saving,) = result.savings
    assert saving.rule == "PF203"
    assert saving.depth == 1
    assert saving.cycles > 20


def test_optimize_removes_the_useless_fence_of_a_specialised_gemm() -> None:
    text = (COMPILED / "triton-3.9.0" / "ws_cast_gemm.sm_100.ptx").read_text()
    result = fixed(text, optimize=True)
    assert len(fences(result.text)) == len(fences(text)) - 1
    assert result.after.verdict is Verdict.PROVEN


def test_undecided_kernels_are_not_optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (HAND / "fence_twice.ptx").read_text().replace("\tbar.sync", "\tunknown.op %r1, [%r4];\n\tbar.sync")
    assert report_of(text).verdict is Verdict.UNDECIDED
    assert fixed(text, optimize=True).edits == ()
