"""What an analysis returns: findings as data. Text, JSON and every other format are views of this."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum

from ptxfence.grammar.model import SourceLocation


class Severity(IntEnum):
    OFF = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3


class Confidence(Enum):
    CERTAIN = "certain"  # both byte ranges exact and overlapping
    LIKELY = "likely"  # both bounded
    POSSIBLE = "possible"  # one of them unbounded


class Verdict(Enum):
    HAZARD = "hazard"
    PROVEN = "proven"
    UNDECIDED = "undecided"


class Cause(Enum):
    """Why the fence that is there does not count (contract 2), in order of precedence."""

    NO_FENCE = "no-fence"
    HOISTED_OUT = "hoisted-out"
    FENCE_BEFORE_ACCESS = "fence-before-access"
    BEFORE_COMPLETION = "before-completion"
    FENCE_AFTER_USE = "fence-after-use"
    PARTIAL_THREADS = "partial-threads"
    OFF_PATH = "off-path"
    SOME_PATHS = "some-paths"
    WRONG_SPACE = "wrong-space"
    WRONG_DIRECTION = "wrong-direction"
    NOT_A_PROXY_FENCE = "not-a-proxy-fence"
    UNSYNCHRONISED = "unsynchronised"


@dataclass(frozen=True, slots=True)
class Place:
    """One instruction of a finding. `line` and `column` count from 1; `bytes` is for people."""

    instruction: int
    line: int
    column: int
    text: str
    source: SourceLocation | None = None
    bytes: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the witness path."""

    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Insert `insert` as a line of its own before line `line` (counting from 1, of the unpatched text).

    `rules` are named in the marker comment behind it. A non-empty `remove` is the text of line `line`, which goes
    (`insert` empty) or is replaced.
    """

    line: int
    insert: str
    rules: tuple[str, ...] = ()
    remove: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    `anchor` is the index of the instruction before which a covering fence would do (writer side where there is a
    synchronisation), `fence` its text; both None where no fence repairs it. `id`, `fix` and `suppressed` are
    filled in by later stages.
    """

    rule: str
    name: str
    severity: Severity
    confidence: Confidence
    kernel: str
    cause: Cause | None
    message: str
    first: Place
    second: Place | None
    path: tuple[Step, ...] = ()
    fix: tuple[Edit, ...] | None = None
    others: tuple[Place, ...] = ()  # further first accesses with the same cause
    anchor: int | None = None
    fence: str | None = None
    id: str = ""
    suppressed: str | None = None  # "baseline" | "comment" | "config"


@dataclass(frozen=True, slots=True)
class Counts:
    generic: int = 0
    asynchronous: int = 0
    fences: int = 0
    instructions: int = 0


@dataclass(frozen=True, slots=True)
class KernelReport:
    name: str
    line: int
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """The analysis of one file (or of one text)."""

    filename: str
    ptx_version: str
    target: str
    kernels: tuple[KernelReport, ...]
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the kernels: hazard over undecided over proven."""
        verdicts = {kernel.verdict for kernel in self.kernels}
        for worst in (Verdict.HAZARD, Verdict.UNDECIDED):
            if worst in verdicts:
                return worst
        return Verdict.PROVEN
