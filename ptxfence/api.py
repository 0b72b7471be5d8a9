"""The Python interface (contract 5): the command line's work on texts, without files or output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxfence.analysis.report import Report
from ptxfence.config import Settings, settings_from
from ptxfence.errors import ConfigError, DeviceError

if TYPE_CHECKING:
    from ptxfence.grammar import PtxFile
    from ptxfence.rewrite.patch import Patch

Config = Settings | Mapping[str, object] | str | Path | None
"""Settings, a table of them as in `[tool.ptxfence]`, the path of a settings file, or None for the defaults."""


def check(text: str, filename: str = "<string>", config: Config = None) -> Report:
    """Check the kernels of a PTX text.

    The report's findings carry stable ids and the severities and suppressions of `config`. Raises PtxSyntaxError for
    text that is no PTX and ConfigError for settings that make no sense.
    """
    return _settled(_parsed(text, filename), _settings(config))


def fix(text: str, filename: str = "<string>", config: Config = None) -> Patch:
    """Insert the fences that the findings at or above `fix_level` ask for.

    Raises as `check` does, and RecheckError (nothing is lost) if the patch does not hold.
    """
    from ptxfence.rewrite.patch import fix as patch

    settings = _settings(config)
    file = _parsed(text, filename)
    report = _settled(file, settings)
    active = replace(report, findings=tuple(finding for finding in report.findings if finding.suppressed is None))
    return patch(file, active, level=settings.fix_level, policy=settings.policy, optimize=settings.optimize)


def assemble(text: str, arch: str | None = None) -> bytes:
    """The cubin that ptxas makes of a PTX text, for its own target or for `arch` (`sm_90a`).

    Raises AssemblyError with ptxas's own lines.
    """
    from ptxfence.rewrite.assemble import assemble as run

    return run(text, arch)


def load(text: str, mode: str = "fix", config: Config = None) -> Any:
    """Assemble a PTX text for its own target and hand it to cuda.core as an `ObjectCode`.

    `mode="fix"` patches first; `"check"` loads the text as it is and logs what `check` found at or above `fail_on`.
    Raises ConfigError for another mode, DeviceError where cuda.core is missing, AssemblyError, PtxSyntaxError.
    """
    if mode not in ("fix", "check"):
        raise ConfigError(f"mode {mode!r}: expected 'fix' or 'check'")
    if mode == "fix":
        text = fix(text, config=config).text
    else:
        _log(check(text, config=config), _settings(config))
    from importlib import import_module

    try:
        core: Any = import_module("cuda.core")
    except ImportError as error:
        raise DeviceError(f"cuda.core cannot be imported: {error}") from None
    return core.ObjectCode.from_cubin(assemble(text))


def _log(report: Report, settings: Settings) -> None:
    import logging

    for finding in report.findings:
        if settings.fail_on is not None and finding.severity >= settings.fail_on and finding.suppressed is None:
            where = f"{finding.kernel}, line {(finding.second or finding.first).line}"
            logging.getLogger("ptxfence").warning("%s in %s: %s", finding.rule, where, finding.message)


def _settings(config: Config) -> Settings:
    if config is None:
        return Settings()
    if isinstance(config, Settings):
        return config
    if isinstance(config, str | Path):
        from ptxfence.config import load as read

        return read(Path(config))
    return settings_from(config)


def _parsed(text: str, filename: str) -> PtxFile:
    """Raises the first PtxSyntaxError of the text."""
    from ptxfence.grammar import parse, validate

    file = parse(text, filename)
    for error in validate(file):
        raise error
    return file


def _settled(file: PtxFile, settings: Settings) -> Report:
    from ptxfence.batch.examine import Options, digest, raw_report, result_of
    from ptxfence.triage.baseline import load as read
    from ptxfence.triage.settle import settle

    report = raw_report(file, Options(settings.kernel, settings.timeout, settings.strict))
    result = settle(result_of(file, report, digest(file.text)), settings)
    if settings.baseline is not None:
        (result,) = read(settings.baseline).apply((result,))
    return replace(report, kernels=result.kernels, findings=result.findings)
