"""The commands as a user meets them: output, exit status, what is written."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ptxfence.analysis.rules import rule
from ptxfence.analysis.rules.example import kernel
from ptxfence.cli.main import main
from ptxfence.rewrite.assemble import available
from tests.litmus.rows import BY_NAME

BAD = kernel(rule("PF101").bad)
GOOD = kernel(rule("PF101").good)
FENCE = "fence.proxy.async.shared::cta;"


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A working folder and a cache of its own."""
    monkeypatch.setenv("PTXFENCE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    Path("bad.ptx").write_text(BAD)
    Path("good.ptx").write_text(GOOD)


def check_json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, list[dict[str, object]]]]:
    status = main(["check", "--format", "json", *words])
    return status, json.loads(capsys.readouterr().out)


def test_check_finds_and_does_not_accuse(capsys: pytest.CaptureFixture[str]):
    status, report = check_json(capsys, "bad.ptx")
    assert status == 1
    (finding,) = report["files"][0]["findings"]  # type: ignore[misc]
    assert (finding["rule"], finding["cause"]) == ("PF101", "no-fence")
    line = max(n for n, text in enumerate(BAD.splitlines(), start=1) if text == "    bar.sync 0;")
    assert finding["fix"] == {"edits": [{"line": line, "insert": FENCE}]}
    status, report = check_json(capsys, "good.ptx")
    assert status == 0
    assert report["files"][0]["findings"] == []
    assert report["files"][0]["kernels"][0]["verdict"] == "proven"  # type: ignore[index]


def test_text_on_standard_output(capsys: pytest.CaptureFixture[str]):
    assert main(["check", "bad.ptx", "good.ptx"]) == 1
    out = capsys.readouterr().out
    assert "error[PF101] missing-fence-raw" in out
    assert "kernel example: proven" in out


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    status, report = check_json(capsys, "-")
    assert status == 1
    assert report["files"][0]["path"] == "-"


INPUTS = {
    "garbage.ptx": (b"not ptx at all\n", "syntax"),
    "truncated.ptx": (BAD[: len(BAD) // 2].encode(), "syntax"),
    "binary.ptx": (bytes(range(256)) * 40, "io"),
    "utf16.ptx": (BAD.encode("utf-16"), "io"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_bad_input_is_an_error_of_its_file(name: str, capsys: pytest.CaptureFixture[str]):
    data, kind = INPUTS[name]
    Path(name).write_bytes(data)
    status, report = check_json(capsys, name, "good.ptx")
    assert status == 2
    broken = next(item for item in report["files"] if item["path"] == name)
    assert broken["error"]["kind"] == kind  # type: ignore[index]
    assert any(item["path"] == "good.ptx" and item["kernels"] for item in report["files"])  # the rest is checked


def test_nothing_to_check(capsys: pytest.CaptureFixture[str]):
    Path("empty").mkdir()
    Path("empty.ptx").write_text("")
    Path("declares.ptx").write_text(".version 8.0\n.target sm_90\n.address_size 64\n")
    assert main(["check", "empty"]) == 2
    assert "no kernel found" in capsys.readouterr().err
    assert main(["check", "empty", "--allow-empty"]) == 0
    assert main(["check", "missing.ptx"]) == 2
    assert "missing.ptx" in capsys.readouterr().out
    assert main(["check", "empty.ptx"]) == 2
    assert main(["check", "declares.ptx"]) == 2
    assert main(["check", "good.ptx", "--kernel", "other"]) == 2


def test_older_targets_are_proven(capsys: pytest.CaptureFixture[str]):
    Path("old.ptx").write_text(
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n    bar.sync 0;\n    ret;\n}\n"
    )
    status, report = check_json(capsys, "old.ptx")
    assert status == 0
    assert report["files"][0]["kernels"][0]["verdict"] == "proven"  # type: ignore[index]


@pytest.mark.parametrize(
    "words",
    [
        ["check"],
        ["check", "--format", "xml", "bad.ptx"],
        ["check", "--severity", "PF101", "bad.ptx"],
        ["check", "--select", "PF999", "bad.ptx"],
        ["check", "--baseline", "none.json", "bad.ptx"],
        ["check", "--shard", "3/2", "bad.ptx"],
        ["check", "--timeout", "-1", "bad.ptx"],
        ["check", "--baseline", "b.json", "--diff-against", "x", "bad.ptx"],
        ["fix", "--write", "--check", "bad.ptx"],
        ["fix", "--write", "-"],
        ["frobnicate"],
        [],
    ],
)
def test_usage_errors(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error
    assert "Traceback" not in error


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([name, "--help"] for name in ("check", "fix", "show"))])
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == 0
    assert "ptxfence" in capsys.readouterr().out


def test_an_internal_error_stays_with_its_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    import ptxfence.analysis.check as check

    real = check.analyse

    def analyse(file: object, **options: object) -> object:
        if getattr(file, "filename", "") == "bad.ptx":
            raise RecursionError("deep")
        return real(file, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "analyse", analyse)
    status, report = check_json(capsys, "bad.ptx", "good.ptx")
    assert status == 2
    assert report["files"][0]["error"] == {  # type: ignore[comparison-overlap]
        "line": 1,
        "column": 1,
        "message": "internal error of ptxfence: RecursionError: deep",
        "kind": "internal",
    }
    assert report["files"][1]["kernels"]
    monkeypatch.setenv("PTXFENCE_DEBUG", "1")
    assert main(["check", "bad.ptx"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_comment_in_the_text(capsys: pytest.CaptureFixture[str]):
    commented = BAD.replace("st.shared.b32 [%r3], %r0;", "st.shared.b32 [%r3], %r0; // ptxfence: ignore[PF101] demo")
    Path("bad.ptx").write_text(commented)
    status, report = check_json(capsys, "bad.ptx")
    assert status == 0
    assert [item["suppressed"] for item in report["files"][0]["findings"]] == ["comment"]  # type: ignore[attr-defined]
    Path("good.ptx").write_text(GOOD.replace("    ret;", "    // ptxfence: ignore[PF101] nothing here\n    ret;"))
    assert main(["check", "good.ptx"]) == 0
    assert "unused suppression" in capsys.readouterr().out


def test_settings_file_counts(capsys: pytest.CaptureFixture[str]):
    Path("ptxfence.toml").write_text('fail-on = "never"\n')
    assert main(["check", "bad.ptx"]) == 1 - 1
    assert main(["check", "bad.ptx", "--isolated"]) == 1
    Path("ptxfence.toml").write_text('fail-onn = "never"\n')
    assert main(["check", "bad.ptx"]) == 2
    assert "fail-onn" in capsys.readouterr().err


def renamed(text: str) -> str:
    """The same kernel with other registers, shifted lines and another file name."""
    for number in range(15, -1, -1):
        text = text.replace(f"%r{number},", f"%r{number + 100},").replace(f"%r{number}]", f"%r{number + 100}]")
        text = text.replace(f"%r{number};", f"%r{number + 100};")
    return text.replace("%r<16>", "%r<120>").replace("{\n", "{\n\n// shifted\n\n", 1)


def test_baseline_knows_what_was_there(capsys: pytest.CaptureFixture[str]):
    assert main(["check", "bad.ptx", "--write-baseline", "known.json"]) == 1
    Path("bad.ptx").write_text(renamed(BAD))
    assert main(["check", "bad.ptx", "--baseline", "known.json"]) == 0
    Path("war.ptx").write_text(kernel(rule("PF103").bad))
    capsys.readouterr()
    status, report = check_json(capsys, ".", "--baseline", "known.json")
    assert status == 1
    fresh = [f["rule"] for item in report["files"] for f in item["findings"] if f["suppressed"] is None]  # type: ignore
    assert fresh == ["PF103"]


def test_diff_against_another_dump(capsys: pytest.CaptureFixture[str]):
    Path("old").mkdir()
    Path("new").mkdir()
    Path("old/a.ptx").write_text(BAD)
    Path("old/b.ptx").write_text(GOOD)
    Path("new/a.ptx").write_text(renamed(BAD))
    Path("new/b.ptx").write_text(renamed(GOOD))
    assert main(["check", "new", "--diff-against", "old"]) == 0
    Path("new/b.ptx").write_text(renamed(GOOD).replace(FENCE, ""))
    capsys.readouterr()
    status, report = check_json(capsys, "new", "--diff-against", "old")
    assert status == 1
    assert sum(f["suppressed"] is None for item in report["files"] for f in item["findings"]) == 1  # type: ignore


def test_fix_shows_a_difference_that_patch_applies(capfdbinary: pytest.CaptureFixture[bytes]):
    before = Path("bad.ptx").read_bytes()
    assert main(["fix", "bad.ptx", "--no-assemble"]) == 0
    captured = capfdbinary.readouterr()
    assert Path("bad.ptx").read_bytes() == before
    assert b"1 edit" in captured.err
    subprocess.run(["patch", "-s", "bad.ptx"], input=captured.out, check=True)
    assert main(["check", "bad.ptx"]) == 0


@pytest.mark.skipif(not available(), reason="no ptxas found")
def test_fix_writes_in_place_and_stops_there(capsys: pytest.CaptureFixture[str]):
    os.chmod("bad.ptx", 0o640)
    assert main(["fix", "bad.ptx", "--check"]) == 1
    assert Path("bad.ptx").read_text() == BAD
    assert main(["fix", "bad.ptx", "--write"]) == 0
    assert "ptxas:" in capsys.readouterr().err
    patched = Path("bad.ptx").read_text()
    assert stat.S_IMODE(Path("bad.ptx").stat().st_mode) == 0o640
    added = [line for line in patched.splitlines() if line not in BAD.splitlines()]
    assert [line.split(";")[0].strip() for line in added] == [FENCE.rstrip(";")]
    assert main(["fix", "bad.ptx", "--write"]) == 0
    assert main(["fix", "bad.ptx", "--check"]) == 0
    assert Path("bad.ptx").read_text() == patched


def test_fix_refuses_a_file_that_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    import ptxfence.cli.patching as patching

    real = patching.patch

    def slow(*words: object, **options: object) -> object:
        outcome = real(*words, **options)  # type: ignore[arg-type]
        Path("bad.ptx").write_text("// somebody else was here\n")
        return outcome

    monkeypatch.setattr(patching, "patch", slow)
    assert main(["fix", "bad.ptx", "--write", "--no-assemble"]) == 2
    assert Path("bad.ptx").read_text() == "// somebody else was here\n"
    assert "changed since it was read" in capsys.readouterr().err


def test_fix_of_a_folder_into_a_folder():
    Path("in/deep").mkdir(parents=True)
    Path("in/deep/a.ptx").write_bytes(BAD.replace("\n", "\r\n").encode())
    Path("in/b.ptx").write_text(GOOD)
    assert main(["fix", "in", "-o", "out", "--no-assemble"]) == 0
    written = Path("out/deep/a.ptx").read_bytes()
    assert written.count(b"\r\n") == written.count(b"\n") == BAD.count("\n") + 1
    assert Path("out/b.ptx").read_text() == GOOD


def test_fix_filters(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert main(["fix", "-", "--no-assemble"]) == 0
    assert FENCE.encode() in capfdbinary.readouterr().out


def test_fix_leaves_silenced_findings_alone():
    silenced = BAD.replace("st.shared.b32 [%r3], %r0;", "st.shared.b32 [%r3], %r0; // ptxfence: ignore[PF101] demo")
    Path("bad.ptx").write_text(silenced)
    assert main(["fix", "bad.ptx", "--write", "--no-assemble"]) == 0
    assert Path("bad.ptx").read_text() == silenced


def test_fix_reports_what_no_fence_repairs():
    Path("flight.ptx").write_text(kernel(rule("PF121").bad))
    before = Path("flight.ptx").read_text()
    status = main(["fix", "flight.ptx", "--write", "--no-assemble"])
    assert status == main(["check", "flight.ptx"])
    assert Path("flight.ptx").read_text() == before


def test_fences(capsys: pytest.CaptureFixture[str]):
    assert main(["fences", "good.ptx", "--format", "json"]) == 0
    (fence,) = json.loads(capsys.readouterr().out)
    assert fence["proxy"] is True
    assert [pair["rule"] for pair in fence["orders"]] == ["PF101"]
    Path("double.ptx").write_text(GOOD.replace(FENCE, FENCE + "\n    " + FENCE))
    assert main(["fences", "double.ptx"]) == 0
    assert capsys.readouterr().out.count("orders nothing that another fence does not order") == 2
    assert main(["fences", "missing.ptx"]) == 2


def test_fences_of_callees(capsys: pytest.CaptureFixture[str]):
    row = BY_NAME["call_fence_inside"]
    Path("calls.ptx").write_text(row.text)
    assert main(["fences", "calls.ptx", "--format", "json"]) == 0
    (fence,) = json.loads(capsys.readouterr().out)
    assert fence["kernel"] == "copy"
    assert [pair["rule"] for pair in fence["orders"]] == ["PF101"]


def test_show_is_a_page(capsys: pytest.CaptureFixture[str]):
    assert main(["show", "bad.ptx", "-o", "page.html"]) == 0
    page = Path("page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert '<path class="hazard"' in page
    assert f"+ {FENCE}" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")  # nothing is fetched
    assert main(["show", "missing.ptx"]) == 2


def test_module_runs():
    done = subprocess.run([sys.executable, "-m", "ptxfence", "check", "bad.ptx"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "PF101" in done.stdout


def test_path_names_the_proxy_of_each_end(capsys: pytest.CaptureFixture[str]):
    Path("flight.ptx").write_text(kernel(rule("PF120").bad))
    _, report = check_json(capsys, "flight.ptx")
    (finding,) = report["files"][0]["findings"]  # type: ignore[misc]
    ends = [finding["path"][at]["what"].rpartition("(")[2] for at in (0, -1)]
    assert ends == ["async proxy)", "generic proxy)"]
