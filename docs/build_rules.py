"""Write docs/rules from the rules' own texts. Run it after a change of a rule: `python docs/build_rules.py`."""

from __future__ import annotations

from pathlib import Path

from ptxfence.analysis.rules import all_rules
from ptxfence.cli.pages import index, page


def build(folder: Path) -> None:
    """Write one page per rule and their table into a folder."""
    rules = all_rules()
    folder.mkdir(parents=True, exist_ok=True)
    for rule in rules:
        (folder / f"{rule.id}.md").write_text(page(rule), encoding="utf-8")
    (folder / "README.md").write_text(index(rules), encoding="utf-8")


if __name__ == "__main__":
    build(Path(__file__).parent / "rules")
