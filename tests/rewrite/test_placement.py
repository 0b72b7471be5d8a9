"""What placement chooses where it has a choice."""

from __future__ import annotations

import pytest

from ptxfence.analysis.check import analyse
from ptxfence.analysis.report import Confidence, Finding, Report, Severity, Verdict
from ptxfence.analysis.witness import place
from ptxfence.grammar import parse
from ptxfence.rewrite.draft import Draft
from ptxfence.rewrite.forms import OWN
from ptxfence.rewrite.kernel import Kernel
from ptxfence.rewrite.patch import fix
from ptxfence.rewrite.placement import Routes, plan, pruned
from ptxfence.rewrite.roots import roots
from ptxfence.rewrite.wishes import Wishes, demands
from tests.litmus.rows import BY_NAME
from tests.litmus.table import kernel

_LOOP = """
    mov.u32 i, 0;
    LOOP:
    ST
    bar.sync 0;
    add.u32 i, i, 1;
    setp.lt.u32 p, i, 4;
    @p bra LOOP;
    @lead ISSUE"""


@pytest.mark.parametrize(("policy", "following"), [("writer-side", "bar.sync"), ("cheapest", "@lead cp.async.bulk")])
def test_policies_differ_where_the_writers_synchronise_in_a_loop(policy: str, following: str) -> None:
    file = parse(kernel("loop", "", "", _LOOP).text)
    patch = fix(file, analyse(file), level=Severity.ERROR, policy=policy)
    assert patch.after.verdict is Verdict.PROVEN
    (edit,) = patch.edits
    assert file.text.splitlines()[edit.line - 1].strip().startswith(following)


def test_fences_that_others_make_needless_go() -> None:
    file = parse(BY_NAME["mp_none"].text)
    module, function = next(roots(file))
    subject = Kernel(file, module, function)
    nothing = Report("", "", "", (), ())
    asked = list(demands(subject, Wishes(nothing, nothing, Severity.NOTE), Draft(file.text)))
    (placed,), _ = plan(subject, asked, "writer-side")
    routes = [Routes(subject, demand) for demand in asked]
    everywhere = {spot: OWN for route in routes for spot in route.nodes if route.covers(spot, OWN)}
    assert placed.spot in everywhere
    assert len(everywhere) > 1
    assert len(pruned(subject, everywhere, routes)) == 1


def test_advice_that_would_undo_the_proof_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the fence the kernel is undecided: its mbarrier is not resolved, so that nothing is reported."""
    body = """
        INITS 1 32
        mad.lo.u32 m1, n, 8, m1;
        @w0 bra CONSUMER;
        ST
        FENCE
        ARRIVE
        bra DONE;
        CONSUMER:
        AWAIT
        @lead ISSUE
        DONE:"""
    file = parse(kernel("lost", "", "", body).text)
    _, function = next(roots(file))
    fence = next(i.index for i in function.instructions if i.opcode.startswith("fence.proxy.async"))
    where = place(file, function, fence)
    advice = Finding("PF201", "", Severity.NOTE, Confidence.CERTAIN, function.name, None, "", where, None)
    monkeypatch.setattr("ptxfence.rewrite.optimize._advice", lambda _: iter((advice,)))
    result = fix(file, analyse(file), level=Severity.WARNING, optimize=True)
    assert (result.edits, result.after.verdict) == ((), Verdict.PROVEN)
