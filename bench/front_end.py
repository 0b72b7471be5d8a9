"""Every PTX file under the given folders: does ptxas take it, do we? Counts by producer.

`python bench/front_end.py FOLDER...`: the folders of `corpus/farm` builds, one producer a folder. A file that
ptxas takes and we refuse is listed, and the exit status is 1.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ptxfence.grammar import parse, validate
from ptxfence.grammar.source import read_sources
from tests.grammar.assembler import Verdict, assemble

_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)


def main() -> int:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    for folder in sys.argv[1:]:
        for source in read_sources(folder):
            target = _TARGET.search(source.text)
            name = Path(folder).name
            refused = validate(parse(source.text, source.path))
            counts[name]["files"] += 1
            counts[name]["KB"] += len(source.text) // 1000
            counts[name]["parsed"] += not refused
            if not refused:
                continue
            verdict, _ = assemble(source.text, target[1] if target else "sm_90a")
            if verdict is Verdict.ACCEPTED:
                wrong.append(str(refused[0]))
    for name, count in sorted(counts.items()):
        print(f"| {name} | {count['files']} | {count['KB']} | {count['parsed']} |")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
