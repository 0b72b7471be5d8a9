"""Where settings come from and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxfence.analysis.report import Severity
from ptxfence.config import Resolver, Settings, find_file, load, settings_from
from ptxfence.errors import ConfigError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_nearest_file_wins(tmp_path: Path):
    outer = write(tmp_path / "pyproject.toml", '[tool.ptxfence]\nfail-on = "warning"\n')
    inner = write(tmp_path / "a" / "ptxfence.toml", 'fail-on = "note"\n')
    write(tmp_path / "b" / "pyproject.toml", "[project]\n")  # has no table of ours
    write(tmp_path / "a" / "k.ptx", "")
    assert find_file(tmp_path / "a" / "k.ptx") == inner
    assert find_file(tmp_path / "b") == outer
    settings = Resolver({})
    assert settings.of(str(tmp_path / "a" / "k.ptx")).fail_on is Severity.NOTE
    assert settings.of(str(tmp_path / "b" / "k.ptx")).fail_on is Severity.WARNING
    assert Resolver({}, isolated=True).of(str(tmp_path / "a" / "k.ptx")) == Settings()


def test_command_line_wins_over_the_file(tmp_path: Path):
    write(tmp_path / "ptxfence.toml", 'fail-on = "note"\nstrict = true\n[severity]\nPF101 = "note"\nPF102 = "note"\n')
    chosen = Resolver({"fail_on": "never", "severity": {"PF101": "error"}}).of(str(tmp_path / "k.ptx"))
    assert chosen.fail_on is None
    assert chosen.strict
    assert chosen.severity == {"PF101": Severity.ERROR, "PF102": Severity.NOTE}


FULL = """
select = ["PF101", "cp-async-unfenced"]
ignore = "PF201,PF202"
fail-on = "warning"
strict = false
allow-empty = true
baseline = "known.json"
timeout = 5
jobs = 2
kernel = "k"
fix-level = "warning"
policy = "cheapest"
optimize = true
[severity]
missing-fence-war = "off"
[[per-path]]
path = "vendor/*"
ignore = ["PF103"]
[[per-kernel]]
kernel = "attn*"
severity = { PF101 = "note" }
"""


def test_every_setting(tmp_path: Path):
    settings = load(write(tmp_path / "ptxfence.toml", FULL))
    assert settings.select == {"PF101", "PF104"}
    assert settings.ignore == {"PF201", "PF202"}
    assert settings.baseline == tmp_path / "known.json"
    assert settings.severity == {"PF103": Severity.OFF}
    assert (settings.timeout, settings.jobs, settings.kernel) == (5.0, 2, "k")
    assert (settings.fix_level, settings.policy, settings.optimize) == (Severity.WARNING, "cheapest", True)
    vendor, attention = settings.overrides
    assert vendor.applies(str(tmp_path / "vendor" / "k.ptx"), "k")  # relative to the file, wherever we stand
    assert not vendor.applies(str(tmp_path / "k.ptx"), "k")
    assert attention.applies("x.ptx", "attn_fwd")
    assert not attention.applies("x.ptx", "gemm")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("fail-onn = 'error'", "fail-onn"),
        ("fail-on = 'fatal'", "fail-on"),
        ("fail-on = 3", "fail-on"),
        ("strict = 'yes'", "strict"),
        ("timeout = -1", "timeout"),
        ("timeout = true", "timeout"),
        ("jobs = 0", "jobs"),
        ("select = 7", "select"),
        ("ignore = ['PF999']", "PF999"),
        ("severity = 'error'", "severity"),
        ("[severity]\nPF101 = 'loud'", "severity.PF101"),
        ("policy = 'dearest'", "policy"),
        ("per-path = 1", "per-path"),
        ("[[per-path]]\nignore = []", "per-path"),
        ("[[per-path]]\npath = 'x'\nkernel = 'y'", "kernel"),
        ("[[per-kernel]]\nkernel = ''", "per-kernel.kernel"),
        ("not toml", "ptxfence.toml"),
    ],
)
def test_nonsense_is_named(tmp_path: Path, text: str, named: str):
    with pytest.raises(ConfigError, match=named) as error:
        load(write(tmp_path / "ptxfence.toml", text))
    assert "ptxfence.toml" in str(error.value)


def test_table_of_the_wrong_kind(tmp_path: Path):
    write(tmp_path / "pyproject.toml", "[tool]\nptxfence = 3\n")
    with pytest.raises(ConfigError, match=r"tool\.ptxfence"):
        find_file(tmp_path)


def test_underscores_are_dashes():
    assert settings_from({"fail_on": "note"}) == settings_from({"fail-on": "note"})
