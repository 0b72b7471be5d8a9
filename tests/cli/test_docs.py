"""The documents lead somewhere: links, commands, options and modules that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxfence.cli.commands import COMMANDS
from ptxfence.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_architecture_names_existing_modules() -> None:
    names = set(re.findall(r"`(\w+\.py)`", (ROOT / "ARCHITECTURE.md").read_text()))
    there = {path.name for path in (ROOT / "ptxfence").rglob("*.py")}
    assert names - there == set()
    assert len(names) > 30


def _usage(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([command, "--help"]) == 0
    return capsys.readouterr().out


def test_contract_names_every_command_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "contract.md").read_text()
    section = text[text.index("## 3. Command line") : text.index("## 4. JSON")]
    parts = re.split(r"^    ptxfence (?=\w)", section, flags=re.MULTILINE)[1:]
    named = {part.split()[0]: part for part in parts}
    assert set(named) == set(COMMANDS)
    for command, part in named.items():
        usage = _usage(command, capsys)
        block = part.split("\n\n")[0].split("ptxfence-ptxas")[0]
        missing = [option for option in re.findall(r"--[a-z][a-z-]+", block) if option not in usage]
        assert not missing, f"{command} does not take {missing}"


def test_readme_commands_exist() -> None:
    text = (ROOT / "README.md").read_text()
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    used = set(re.findall(r"(?:^|bin/)ptxfence (\w+)", blocks, flags=re.MULTILINE))
    assert len(used) > 5
    assert used <= set(COMMANDS)
