"""Public cases and the scenarios of Triton's own tests, as PTX of ours: bug and fix (docs/cases.md).

`CNNN_name.bug.ptx` shows a case as it was reported, `CNNN_name.fix.ptx` as it was repaired; `T21_*` and `T22_*` are
scenarios of Triton's FenceInsertion and ProxyFenceInsertion tests. Expectations stand in the text (docs/corpus.md).
`// strict: RULE` names a rule that is off by default and speaks of this line under `--strict`; `// verdict: undecided`
stands where the proof is expected to stop, `// fix: none` where no fence repairs the bug.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from expectations import expected, mismatch, run

import ptxfence
from ptxfence.analysis.report import Severity, Verdict

CASES = Path(__file__).parent / "cases"
FILES = sorted(CASES.glob("*.ptx"))
_STRICT = re.compile(r"// strict: (\w+)")
_PARTLY = re.compile(r"^// fix: partly$", re.MULTILINE)  # fences are not all that is missing
_NO_FIX = re.compile(r"^// fix: none$", re.MULTILINE)
_UNDECIDED = re.compile(r"^// verdict: undecided$", re.MULTILINE)
_TARGET = re.compile(r"^\.target (\w+)", re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".ptx"))
def test_case(path: Path) -> None:
    text = path.read_text()
    assert mismatch(text, path.name) == ""
    assert run(text, path.name).verdict is _verdict(text)
    assert _strict_only(text, path.name) == _asked(text)


def _repairs() -> list[object]:
    names = [(path, path.name.removesuffix(".ptx")) for path in FILES if _missing_fences(path.read_text())]
    return [pytest.param(path, id=name) for path, name in names]


def _missing_fences(text: str) -> bool:
    """Whether the text is about missing fences and nothing else."""
    rules = {e.rule for e in expected(text) if e.rule.startswith("PF1") and e.severity in ("error", "warning")}
    return bool(rules) and rules <= {"PF101", "PF102", "PF103", "PF104", "PF111", "PF112"}


@pytest.mark.parametrize("path", _repairs())
def test_fix(path: Path) -> None:
    """Fences repair the case, or, where threads are not ordered, nothing is inserted."""
    text = path.read_text()
    patch = ptxfence.fix(text, filename=path.name)
    if _NO_FIX.search(text) or any(e.cause == "unsynchronised" for e in expected(text)):
        assert patch.edits == ()
    elif _PARTLY.search(text):
        assert patch.edits != ()
        assert patch.after.verdict is Verdict.HAZARD
    else:
        assert patch.after.verdict is Verdict.PROVEN


def _verdict(text: str) -> Verdict:
    """What the expectations imply; a line `// verdict: undecided` says where a construct stops the proof."""
    if _UNDECIDED.search(text):
        return Verdict.UNDECIDED
    bad = any(e.rule.startswith("PF1") and e.severity in ("error", "warning") for e in expected(text))
    return Verdict.HAZARD if bad else Verdict.PROVEN


def _asked(text: str) -> set[tuple[int, str]]:
    found: set[tuple[int, str]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        found |= {(number, rule) for rule in _STRICT.findall(line)}
    return found


def _strict_only(text: str, filename: str) -> set[tuple[int, str]]:
    """Lines and rules of the findings that only `--strict` shows."""
    findings = run(text, filename).findings
    return {((f.second or f.first).line, f.rule) for f in findings if f.severity is Severity.OFF}


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="no ptxas")
def test_every_case_assembles(tmp_path: Path) -> None:
    """One run of ptxas for all files of a target."""
    by_target: dict[str, list[Path]] = defaultdict(list)
    for path in FILES:
        match = _TARGET.search(path.read_text())
        assert match is not None, path.name
        by_target[match[1]].append(path)
    for target, paths in by_target.items():
        words = ["ptxas", f"-arch={target}", "-c", *map(str, paths)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_every_bug_has_its_fix() -> None:
    """Either both halves exist or the documentation says why one is missing."""
    halves: dict[str, set[str]] = defaultdict(set)
    for path in FILES:
        name, half, _ = path.name.split(".")
        halves[name].add(half)
    assert len(halves) > 90
    assert [name for name, found in halves.items() if found != {"bug", "fix"}] == []


def test_the_table_names_every_case() -> None:
    table = (CASES.parent.parent / "docs" / "cases.md").read_text()
    assert [path.name for path in FILES if f"`{path.name.split('.')[0]}`" not in table] == []


OLD_TARGET = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry barrier_init(.param .u64 barrier_init_param_0)
.reqntid 128
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<4>;
	.shared .align 16 .b8 tile[2048];
	.shared .align 8 .b8 full[8];
	ld.param.u64 %rd1, [barrier_init_param_0];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r1, %tid.x;
	setp.ne.s32 %p1, %r1, 0;
	@%p1 bra $INIT;
	mbarrier.init.shared.b64 [full], 128;
$INIT:
	bar.sync 0;
	shl.b32 %r2, %r1, 4;
	mov.u32 %r3, tile;
	add.s32 %r4, %r3, %r2;
	mul.wide.u32 %rd3, %r1, 16;
	add.s64 %rd2, %rd2, %rd3;
	cp.async.cg.shared.global [%r4], [%rd2], 16;
	cp.async.wait_all;
	bar.sync 0;
	ld.shared.b32 %r5, [%r4];
	st.global.b32 [%rd2], %r5;
	ret;
}
"""


def test_no_fence_where_the_target_has_none() -> None:
    """C079: below sm_90 there is no async proxy and no fence for it."""
    patch = ptxfence.fix(OLD_TARGET, filename="old.ptx")
    assert patch.before.verdict is Verdict.PROVEN
    assert patch.edits == ()
