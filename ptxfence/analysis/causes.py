"""The cause of a missing-fence finding in words (contract 2)."""

from __future__ import annotations

from ptxfence.analysis.diagnosis import Sighting
from ptxfence.analysis.report import Cause
from ptxfence.analysis.witness import Witness

_WORDS = {
    Cause.NO_FENCE: "no proxy fence stands between",
    Cause.HOISTED_OUT: "the fence at line {line} runs before the loop, the access inside it",
    Cause.FENCE_BEFORE_ACCESS: "the fence at line {line} precedes the first access",
    Cause.BEFORE_COMPLETION: "the fence at line {line} runs before the copied data has landed",
    Cause.FENCE_AFTER_USE: "the fence at line {line} follows the async operation",
    Cause.PARTIAL_THREADS: "the fence at line {line} is not executed by every thread that made the first access",
    Cause.OFF_PATH: "the fence at line {line} is not on the way from the first access to the async operation",
    Cause.SOME_PATHS: "the fence at line {line} is executed on some paths only",
    Cause.WRONG_SPACE: "the fence at line {line} is limited to another state space",
    Cause.WRONG_DIRECTION: "the fence at line {line} orders the other direction only",
    Cause.NOT_A_PROXY_FENCE: "the fence at line {line} orders threads, not proxies",
    Cause.UNSYNCHRONISED: "nothing orders the first access before the thread that issues the async operation",
}


def explain(witness: Witness, cause: Cause, sighting: Sighting | None) -> str:
    """The cause's name and what it says of the fence that was seen."""
    if sighting is None:
        return f"{cause.value}: {_WORDS[cause]}"
    place = witness.place(sighting.event.index)
    return f"{cause.value}: {_WORDS[cause].format(line=place.line)} (`{place.text}`)"
