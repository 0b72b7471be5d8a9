"""Ids, comments, settings, baselines, exit statuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ptxfence.analysis.report import Finding, Place, Severity, Verdict
from ptxfence.config import Override, Settings, settings_from
from ptxfence.errors import ConfigError
from ptxfence.triage.baseline import dump, load, of_results
from ptxfence.triage.comments import find_comments
from ptxfence.triage.identity import identify
from ptxfence.triage.serial import pack, unpack
from ptxfence.triage.settle import settle
from ptxfence.triage.summary import exit_status, file_status, summarise
from tests.cli.results import TEXT, VARIABLES, broken, finding, kernel, result

OFF = finding(rule="PF204", name="issuer-side-fence", severity=Severity.OFF, cause=None, fix=None)


def ids(*findings: Finding) -> list[str]:
    return [item.id for item in identify(findings, VARIABLES)]


def moved(item: Finding, lines: int, rename: dict[str, str]) -> Finding:
    def shift(place: Place) -> Place:
        text = place.text
        for old, new in rename.items():
            text = text.replace(old, new)
        return replace(place, line=place.line + lines, instruction=place.instruction + lines, text=text)

    assert item.second is not None
    return replace(item, first=shift(item.first), second=shift(item.second))


def test_id_survives_lines_registers_and_offsets():
    edited = moved(finding(), 40, {"%r3": "%r117", "%rd2": "address", "%p0": "%elected"})
    edited = replace(edited, first=replace(edited.first, bytes="tile[4096..4608)"))
    assert ids(edited) == ids(finding())


@pytest.mark.parametrize(
    "other",
    [
        finding(rule="PF102"),
        finding(kernel="other"),
        finding(first=replace(finding().first, text="st.shared.b64 [%r3], %rd0;")),
        finding(first=replace(finding().first, bytes="full[0..8)")),
        finding(first=replace(finding().first, source=None)),
    ],
)
def test_id_tells_findings_apart(other: Finding):
    assert ids(other) != ids(finding())


def test_equal_findings_are_counted_in_text_order():
    first, second = finding(), moved(finding(), 3, {})
    assert len(set(ids(first, second))) == 2
    assert ids(first, second) == ids(second, first)


COMMENTED = """\
    st.shared.b32 [%r3], %r0; // ptxfence: ignore[PF101] padding
    // ptxfence: ignore[missing-fence-war, PF102] reviewed
    // another comment
    .loc 1 2 3
    bar.sync 0;
    // ptxfence: ignore[PF999]
    // ptxfence: ignore because
    ret;
"""


def test_comments_are_read():
    found = find_comments(COMMENTED)
    assert [(note.line, note.covers, sorted(note.rules), note.reason) for note in found] == [
        (1, 1, ["PF101"], "padding"),
        (2, 5, ["PF102", "PF103"], "reviewed"),
        (6, 8, [], ""),
        (7, 8, [], "because"),
    ]
    assert "PF999" in found[2].problem
    assert "names no rule" in found[3].problem
    assert find_comments(TEXT) == ()
    assert find_comments(COMMENTED.replace("\n", "\r\n"))[1].covers == 5


@pytest.mark.parametrize("line", [5, 7, 12])
def test_comment_silences_either_access(line: int):
    text = "\n" * (line - 1) + "x; // ptxfence: ignore[PF101]"
    settled = settle(result(finding(), comments=find_comments(text)), Settings())
    silenced = settled.findings[0].suppressed == "comment"
    assert silenced is (line != 12)
    assert bool(settled.unused) is (line == 12)


def test_comment_of_another_rule_silences_nothing():
    comments = find_comments("\n" * 4 + "x; // ptxfence: ignore[PF103]")
    settled = settle(result(finding(), comments=comments), Settings())
    assert settled.findings[0].suppressed is None
    assert settled.unused == comments


def levels(settings: Settings, *findings: Finding, path: str = "k.ptx") -> list[tuple[Severity, str | None]]:
    settled = settle(result(*findings, path=path), settings)
    return [(item.severity, item.suppressed) for item in settled.findings]


def test_settings_grade_and_silence():
    error, note = Severity.ERROR, Severity.NOTE
    assert levels(Settings(), finding()) == [(error, None)]
    assert levels(Settings(ignore=frozenset({"PF101"})), finding()) == [(error, "config")]
    assert levels(Settings(select=frozenset({"PF103"})), finding()) == [(error, "config")]
    assert levels(Settings(severity={"PF101": note}), finding()) == [(note, None)]
    assert levels(Settings(severity={"PF101": Severity.OFF}), finding()) == [(error, "config")]


def test_rules_that_are_off_come_on():
    assert levels(Settings(), OFF) == []
    assert levels(Settings(strict=True), OFF) == [(Severity.NOTE, None)]
    assert levels(Settings(select=frozenset({"PF204"})), OFF) == [(Severity.NOTE, None)]
    assert levels(Settings(severity={"PF204": Severity.ERROR}), OFF) == [(Severity.ERROR, None)]


def test_strict_takes_no_proof_that_rests_on_an_assumption():
    proven = kernel(verdict=Verdict.PROVEN, assumptions=("clusters have one CTA",))
    for strict, verdict in ((False, Verdict.PROVEN), (True, Verdict.UNDECIDED)):
        (found,) = settle(result(kernels=(proven,)), Settings(strict=strict)).kernels
        assert found.verdict is verdict
    assert found.reasons == ("assumed, not proven: clusters have one CTA",)
    (found,) = settle(result(kernels=(replace(proven, assumptions=()),)), Settings(strict=True)).kernels
    assert found.verdict is Verdict.PROVEN


def test_overrides_by_path_and_kernel():
    here = Override(path="vendor/*.ptx", ignore=frozenset({"PF101"}))
    there = Override(kernel="k*", severity={"PF101": Severity.WARNING})
    settings = Settings(overrides=(here, there))
    assert levels(settings, finding(), path="vendor/k.ptx") == [(Severity.WARNING, "config")]
    assert levels(settings, finding(), path="k.ptx") == [(Severity.WARNING, None)]
    assert levels(settings, finding(kernel="other"), path="k.ptx") == [(Severity.ERROR, None)]


def test_silencing_proves_nothing_and_raising_accuses():
    silenced = settle(result(finding()), Settings(ignore=frozenset({"PF101"})))
    assert silenced.kernels[0].verdict is Verdict.HAZARD
    slot = finding(rule="PF103", severity=Severity.NOTE)
    quiet = result(slot, kernels=(kernel(verdict=Verdict.PROVEN),))
    assert settle(quiet, Settings()).kernels[0].verdict is Verdict.PROVEN
    assert settle(quiet, Settings(severity={"PF103": Severity.ERROR})).kernels[0].verdict is Verdict.HAZARD


def test_baseline_counts(tmp_path: Path):
    file = tmp_path / "baseline.json"
    file.write_text(dump([result(finding(), finding(rule="PF102")), result(finding(rule="PF102"), path="x")]))
    rows = [(entry["path"], entry["rule"], entry["count"]) for entry in json.loads(file.read_text())["findings"]]
    assert rows == [("k.ptx", "PF101", 1), ("k.ptx", "PF102", 1), ("x", "PF102", 1)]
    known = load(file)
    again = known.apply([result(finding(), path=path) for path in ("a", "b")])
    assert [item.findings[0].suppressed for item in again] == ["baseline", None]
    assert known.gone == 2
    assert dump([]).endswith("]\n}\n")
    assert json.loads(dump([]))["findings"] == []


def test_baseline_prefers_the_same_file_then_the_same_name():
    known = of_results([result(finding(), path="old/b.ptx")])
    found = known.apply([result(finding(), path=path) for path in ("new/a.ptx", "new/b.ptx", "new/c.ptx")])
    assert [item.findings[0].suppressed for item in found] == [None, "baseline", None]
    known = of_results([result(finding(), path="d/b.ptx")])
    found = known.apply([result(finding(), path=path) for path in ("e/b.ptx", "d/b.ptx")])
    assert [item.findings[0].suppressed for item in found] == [None, "baseline"]


def test_baseline_leaves_other_suppressions():
    silenced = settle(result(finding()), Settings(ignore=frozenset({"PF101"})))
    known = of_results([result(finding())])
    assert known.apply([silenced])[0].findings[0].suppressed == "config"
    assert known.gone == 1


def test_baseline_does_not_learn_what_is_silenced():
    silenced = settle(result(finding()), Settings(ignore=frozenset({"PF101"})))
    assert of_results([silenced]).gone == 0


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema": 2, "findings": []}', '{"schema": 1, "findings": [{"id": "x"}]}']
)
def test_bad_baseline(tmp_path: Path, text: str):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(ConfigError, match="baseline"):
        load(tmp_path / "b.json")


def test_cached_result_is_the_result():
    comments = find_comments(COMMENTED)
    full = result(finding(others=(finding().first,)), OFF, comments=comments, producer="cuda")
    again = unpack(json.loads(json.dumps(pack(full))))
    assert again == replace(full, seconds=again.seconds)
    assert unpack(json.loads(json.dumps(pack(broken())))) == broken()


def status(*results: object, **settings: object) -> int:
    chosen = settings_from(settings)
    return exit_status(results, {item.path: chosen for item in results}, allow_empty=False)  # type: ignore[attr-defined]


def test_exit_statuses():
    undecided = result(path="u", kernels=(kernel(verdict=Verdict.UNDECIDED),))
    warned = result(finding(severity=Severity.WARNING), path="w")
    hazard, clean = result(finding()), result(path="c")
    assert status(clean) == 0
    assert status(clean, hazard) == 1
    assert status(hazard, broken()) == 2
    assert status(broken(kind="internal")) == 2
    assert status(undecided) == 0
    assert status(undecided, strict=True) == 3
    assert status(undecided, hazard, strict=True) == 1
    assert status(undecided, broken(), strict=True) == 2
    assert status(warned) == 0
    assert status(warned, fail_on="warning") == 1
    assert status(hazard, fail_on="never") == 0
    assert status(replace(clean, kernels=())) == 2
    assert file_status(settle(hazard, Settings(ignore=frozenset({"PF101"}))), Settings()) == 0


def test_summary_leaves_suppressed_out():
    settled = settle(result(finding(), finding(rule="PF103")), Settings(ignore=frozenset({"PF103"})))
    total = summarise([settled, broken()], 1.0)
    assert (total.files, total.errors, total.suppressed, total.failed_files) == (2, 1, 1, 1)
