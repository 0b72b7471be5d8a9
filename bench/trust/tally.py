"""What a trust run has counted, kept in a file so that a long run can be made in pieces."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

PRECISION = ("certain", "likely")


@dataclass(slots=True)
class Tally:
    """What a run of seeds gave. `failures` are (seed, property, text); `again` counts seeds examined once more."""

    counts: Counter[str] = field(default_factory=Counter[str])
    failures: list[tuple[int, str, str]] = field(default_factory=list[tuple[int, str, str]])
    again: int = 0
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        self.counts.update(other.counts)
        self.failures += other.failures
        self.again += other.again
        self.seconds += other.seconds

    def renew(self, seeds: Iterable[int], fresh: Iterable[tuple[int, str, str]]) -> None:
        """Puts what a second look at some seeds gave in the place of what the first gave."""
        seen = set(seeds)
        self.failures = sorted([f for f in self.failures if f[0] not in seen] + list(fresh))
        self.again += len(seen)

    def save(self, path: Path) -> None:
        data = {"counts": self.counts, "failures": self.failures, "again": self.again, "seconds": self.seconds}
        path.write_text(json.dumps(data, indent=1))

    @staticmethod
    def load(path: Path) -> Tally:
        data = json.loads(path.read_text())
        failures = [(int(seed), str(what), str(text)) for seed, what, text in data["failures"]]
        return Tally(Counter(data["counts"]), failures, int(data["again"]), float(data["seconds"]))

    def table(self, start: int) -> str:
        """The figures as a page shows them."""
        wrong = Counter(what for _, what, _ in self.failures)
        wrong.setdefault("soundness", 0)
        counts = Counter(self.counts)
        counts.update({f"disagreement {what}": count for what, count in wrong.items()})
        for what in ("soundness", "recheck", "certain", "likely", "fixed", "crash", "unchanged", "monotone"):
            counts.setdefault(f"disagreement {what}", 0)
        lines = [f"Seeds {start} to {start + self.counts['programs'] - 1}, {self.seconds:.0f} s.", ""]
        lines += ["| what | count |", "|---|---|"]
        lines += [f"| {name} | {count} |" for name, count in sorted(counts.items())]
        if self.again:
            lines.append(f"| seeds that failed and were run again after a correction | {self.again} |")
        for level in PRECISION:
            total = self.counts[f"findings {level}"]
            if total:
                lines.append(f"| precision of `{level}` | {100 * (1 - wrong[level] / total):.2f} % |")
        return "\n".join(lines)
