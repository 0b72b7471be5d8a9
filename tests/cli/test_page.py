"""The HTML page in a browser: Debian's chromium, headless, without network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from ptxfence.analysis.report import Severity, Verdict
from ptxfence.analysis.rules import rule
from ptxfence.analysis.rules.example import kernel as example
from ptxfence.batch.examine import Options, examine, task_of
from ptxfence.cli.formats import render
from tests.cli.results import broken, finding, kernel, result, run_of

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium (Debian: apt-get install chromium)")

PROBE = """(() => {
const report = {};
const shown = () => [...document.querySelectorAll(".finding[data-level]")].filter(f => f.offsetParent).map(f => f.id);
const search = document.querySelector("input[type=search]");
const box = value => document.querySelector(`input[value=${value}]`);
const type = text => { search.value = text; search.dispatchEvent(new Event("input")); };
const toggle = value => { box(value).click(); };
report.all = shown();
toggle("note"); report.withoutNotes = shown(); toggle("note");
type("attention"); report.search = shown(); report.kernels =
  [...document.querySelectorAll(".kernel-section")].filter(k => k.offsetParent).map(k => k.dataset.name); type("");
const first = document.querySelector(".finding[data-level]");
first.dispatchEvent(new Event("mouseenter"));
report.lit = document.querySelectorAll(".hazard.on").length;
first.dispatchEvent(new Event("mouseleave"));
report.dark = document.querySelectorAll(".hazard.on").length;
report.wide = document.documentElement.scrollWidth > window.innerWidth;
report.rows = [...document.querySelectorAll("svg.kernel .row text")].map(t => t.textContent);
report.proposals = document.querySelectorAll(".proposal").length;
report.outside = performance.getEntriesByType("resource").length;
document.title = "PROBE" + JSON.stringify(report); })();
"""


def page() -> str:
    text = example(rule("PF101").bad)
    real = replace(examine(task_of("example.ptx", text, Options())), path="example.ptx")
    note = finding(rule="PF201", name="redundant-fence", severity=Severity.NOTE, kernel="attention", cause=None)
    other = result(note, path="other.ptx", kernels=(kernel(name="attention", verdict=Verdict.PROVEN),))
    odd = result(finding(message="<script>alert(1)</script> & more"), path='<b>"odd".ptx')
    run = run_of(real, other, odd, broken())
    return render("html", replace(run, texts={"example.ptx": text}))


def browse(text: str, folder: Path, width: int) -> Any:
    file = folder / "page.html"
    file.write_text(text.replace("</body>", f"<script>{PROBE}</script></body>"))
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += [f"--window-size={width},900", "--dump-dom", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    match = re.search(r"<title>PROBE(.*?)</title>", dom, re.DOTALL)
    assert match, dom[:2000]
    return json.loads(unescape(match[1]))


@needs_browser
def test_filters_pictures_and_widths(tmp_path: Path):
    report = browse(page(), tmp_path, 1200)
    assert len(report["all"]) == 3
    assert len(report["withoutNotes"]) == 2
    assert len(report["search"]) == 1
    assert report["kernels"] == ["attention"]
    assert (report["lit"], report["dark"]) == (1, 0)
    assert report["proposals"] == 1
    assert report["outside"] == 0
    assert any("st.shared.b32" in row for row in report["rows"])
    assert not report["wide"]


@needs_browser
def test_fits_a_phone(tmp_path: Path):
    assert not browse(page(), tmp_path, 500)["wide"]


def test_foreign_text_is_escaped():
    text = page()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert '<b>"odd"' not in text


def test_page_is_self_contained():
    assert not re.search(r"""(src|href)=|url\((?!#)|@import|https?://(?!www\.w3\.org/2000/svg)""", page())
