"""docs/integrations.md: its launch file parses, its options exist, its recipes are the ones that are run."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest

from ptxfence.rewrite.launch_spec import TYPES, TensorMap, parse_launch
from tests.integrations.helpers import REPOSITORY, environment, run

PAGE = (REPOSITORY / "docs" / "integrations.md").read_text(encoding="utf-8")


def test_the_launch_file_is_one():
    launch = parse_launch(tomllib.loads(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]))
    assert launch.grid == ("4*sms", 1, 1)
    assert launch.tensormaps["map"] == TensorMap("input", "f32", (262144, 64), (64, 32), (256,), "128B")
    assert " ".join(TYPES) in PAGE


@pytest.mark.parametrize("command", ["run", "race"])
def test_every_option_is_named(command: str):
    text = run([sys.executable, "-m", "ptxfence", command, "--help"], environment()).stdout
    options = set(re.findall(r"--[a-z][a-z-]+", text)) - {"--help"}
    assert {option for option in options if option not in PAGE} == set()


def test_recipes_are_run_by_the_script_that_is_named():
    script = (REPOSITORY / "bench" / "hardware" / "recipes.py").read_text(encoding="utf-8")
    for call in ("loader.patched(", "loader.cuModuleLoadData(", "RawModule(path=", "compile_ptx(", "nvrtcGetPTX("):
        assert call in PAGE
        assert call in script
