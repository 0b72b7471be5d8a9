"""The examples of docs/ci.md and the files that other systems read, executed as far as that goes on one machine."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ptxfence.analysis.rules import rule
from ptxfence.analysis.rules.example import kernel
from ptxfence.config import load

ROOT = Path(__file__).parents[2]
CI = (ROOT / "docs" / "ci.md").read_text()


def example(name: str) -> str:
    """The code block of docs/ci.md behind a marker."""
    match = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", CI, re.DOTALL)
    assert match, name
    return match[1]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A working folder with one good and one bad kernel."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "good.ptx").write_text(kernel(rule("PF101").good))
    (tmp_path / "kernels" / "bad.ptx").write_text(kernel(rule("PF101").bad))
    return tmp_path


def shell(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PTXFENCE_CACHE_DIR": str(folder / ".cache"), **variables}
    words = ["bash", "-eo", "pipefail", "-c", command]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def action_step(repository: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The action's report step with its inputs filled in as GitHub would."""
    action: Any = yaml.safe_load((ROOT / "action.yml").read_text())
    values = {name: item.get("default", "") for name, item in action["inputs"].items()} | inputs
    (step,) = [item for item in action["runs"]["steps"] if item.get("name") == "report"]
    filled = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match[1]], text)
        for name, text in step["env"].items()
    }
    return shell(step["run"], repository, **filled)


def test_action_annotates_and_reports(repository: Path):
    done = action_step(repository, paths="kernels")
    assert done.returncode == 1
    assert "::error file=kernels/bad.ptx," in done.stdout
    assert (repository / "ptxfence.sarif").stat().st_size > 1000


def test_action_with_a_baseline_is_quiet(repository: Path):
    shell("ptxfence check kernels --write-baseline known.json", repository)
    done = action_step(repository, paths="kernels", baseline="known.json")
    assert done.returncode == 0
    assert "::error" not in done.stdout


def test_action_fails_on_an_empty_dump(repository: Path):
    (repository / "none").mkdir()
    assert action_step(repository, paths="none").returncode == 2


def test_github_example_uses_inputs_that_exist():
    action: Any = yaml.safe_load((ROOT / "action.yml").read_text())
    (job,) = yaml.safe_load(example("github"))["jobs"].values()
    (step,) = [step for step in job["steps"] if "ptxfence@" in step.get("uses", "")]
    assert set(step["with"]) <= set(action["inputs"])
    required = {name for name, item in action["inputs"].items() if item.get("required")}
    assert required <= set(step["with"])
    upload = job["steps"][-1]
    assert upload["with"]["sarif_file"] == action["inputs"]["sarif"]["default"]


def test_gitlab_example_runs(repository: Path):
    job: Any = yaml.safe_load(example("gitlab"))["fences"]
    commands = [line for line in job["script"] if line.startswith("ptxfence")]
    done = shell("\n".join(commands), repository)
    assert done.returncode == 1
    for file in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
        assert (repository / file).stat().st_size > 200


def test_pre_commit_hooks_run(repository: Path):
    hooks: Any = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    (used,) = yaml.safe_load(example("pre-commit"))["repos"][0]["hooks"]
    assert used["id"] in hooks
    files = sorted(str(path.relative_to(repository)) for path in repository.rglob("*.ptx"))
    assert all(re.search(hook["files"], file) for hook in hooks.values() for file in files)
    command = f"{hooks['ptxfence']['entry']} {shlex.join(files)}"
    assert shell(command, repository).returncode == 1
    assert shell(f"{hooks['ptxfence-fix']['entry']} {shlex.join(files)}", repository).returncode == 0
    assert shell(command, repository).returncode == 0


def test_settings_example_is_valid(tmp_path: Path):
    (tmp_path / "ptxfence.toml").write_text(example("settings"))
    assert load(tmp_path / "ptxfence.toml").overrides


def test_readme_commands_are_the_ones_that_ci_runs():
    readme = (ROOT / "README.md").read_text()
    tests = re.search(r"<!-- tests -->\n```sh\n(.*)\n```", readme)
    assert tests
    script = (ROOT / ".ci" / "run").read_text()
    script = script.replace('exec sh -c "$command"', "exit 0")
    script = script.replace('cd "$(dirname "$0")/.."', f"cd {shlex.quote(str(ROOT))}")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"+ {tests[1]}"
    for word in re.findall(r"corpus/\S+", readme):
        assert (ROOT / word).exists()
    for link in re.findall(r"\]\(([^)]+)\)", readme):
        assert (ROOT / link).exists()
