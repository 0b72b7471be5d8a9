"""pytest plugin: `pytest --ptxfence` fails the test during which a kernel with a hazard is compiled.

Triton's kernels are watched by themselves; the fixture `ptxfence_check` hands over PTX of any other origin. The marker
`ptxfence_allow("PF103", ...)` (no argument: every rule) lets a test have known findings. Settings come from the file
nearest to pytest's root folder.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ptxfence.config import Settings
    from ptxfence.integrations.outcome import Mode, Outcome
    from ptxfence.triage.result import FileResult

_MARKER = "ptxfence_allow(*rules): findings of these rules (ids or names; none: of all) do not fail the test"
_SECTION = "ptxfence"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ptxfence")
    group.addoption("--ptxfence", action="store_true", help="check every kernel that is compiled during the tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("--ptxfence"):
        config.pluginmanager.register(Watcher(config), "ptxfence-watcher")


def pytest_report_header(config: pytest.Config) -> str | None:
    watcher = config.pluginmanager.get_plugin("ptxfence-watcher")
    return f"ptxfence: {watcher.watched}" if isinstance(watcher, Watcher) else None


@pytest.fixture
def ptxfence_check(request: pytest.FixtureRequest) -> Callable[..., FileResult]:
    """`ptxfence_check(text, name="kernel.ptx")` checks a PTX text as part of the test and returns what was found.

    With `--ptxfence` a finding at or above `fail-on` fails the test at its end; without, the fixture only returns it.
    """
    watcher: Any = request.config.pluginmanager.get_plugin("ptxfence-watcher")
    known = watcher if watcher is not None else Watcher(request.config, hook=False)
    return known.check


class Watcher:
    """Collects what is found during the phase of a test that is running, and fails it."""

    def __init__(self, config: pytest.Config, *, hook: bool = True) -> None:
        self._settings = _settings(config)
        self._folder = config.rootpath
        self._found: list[FileResult] = []
        self._lock = threading.Lock()
        self.watched = "kernels handed to the ptxfence_check fixture"
        if hook:
            self._install(config)

    def _install(self, config: pytest.Config) -> None:
        from importlib.util import find_spec

        from ptxfence.errors import UnsupportedPtxError

        if find_spec("triton") is None:
            return
        from ptxfence.integrations import triton

        try:
            triton.install("check", examiner=self._examine, children=False)
        except UnsupportedPtxError as error:
            self.watched += f" ({error})"
            return
        self.watched = f"Triton and {self.watched}"
        config.add_cleanup(triton.uninstall)

    def _examine(self, text: str, name: str, mode: Mode, seconds: float) -> Outcome:
        """Stands in for the analysis behind Triton's hook."""
        from ptxfence.integrations.outcome import Outcome

        result = self.check(text, name)
        return Outcome(text, kernels=tuple(kernel.name for kernel in result.kernels))

    def check(self, text: str, name: str = "kernel.ptx") -> FileResult:
        """Check a text and remember the result for the running test."""
        from ptxfence.batch.examine import Options, examine, task_of
        from ptxfence.triage.settle import settle

        settings = self._settings
        options = Options(settings.kernel, settings.timeout, settings.strict)
        result = settle(examine(task_of(name, text, options)), settings)
        with self._lock:
            self._found.append(result)
        return result

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, None]:
        outcome = yield
        report: pytest.TestReport = outcome.get_result()
        with self._lock:
            found, self._found = self._found, []
        speaking = [result for result in found if result.active or result.failed or result.undecided]
        if not speaking:
            return
        text = self._text(speaking)
        if report.passed and self._fails(speaking, _allowed(item)):
            report.outcome = "failed"
            report.longrepr = text
        else:
            report.sections.append((_SECTION, text))

    def _fails(self, results: list[FileResult], allowed: frozenset[str] | None) -> bool:
        from dataclasses import replace

        from ptxfence.triage.summary import CLEAN, file_status

        if allowed is None:
            return False
        kept = (
            replace(result, findings=tuple(f for f in result.findings if f.rule not in allowed)) for result in results
        )
        return any(file_status(result, self._settings) != CLEAN for result in kept)

    def _text(self, results: list[FileResult]) -> str:
        from ptxfence.cli.formats import render
        from ptxfence.cli.formats.run import Run
        from ptxfence.triage.summary import summarise

        settings = {result.path: self._settings for result in results}
        seconds = sum(result.seconds for result in results)
        return render("text", Run(tuple(results), summarise(results, seconds), settings, self._folder))


def _allowed(item: pytest.Item) -> frozenset[str] | None:
    """The rules that may be found during a test; None for all of them."""
    from ptxfence.analysis.rules import resolve

    rules: set[str] = set()
    for marker in item.iter_markers("ptxfence_allow"):
        if not marker.args:
            return None
        rules.update(resolve(word) for word in marker.args)
    return frozenset(rules)


def _settings(config: pytest.Config) -> Settings:
    from ptxfence.config import Settings, find_file, load
    from ptxfence.errors import ConfigError

    try:
        found = find_file(config.rootpath)
        return load(found) if found is not None else Settings()
    except ConfigError as error:
        raise pytest.UsageError(str(error)) from None
