"""Faults of what is made of the facts: verdicts, excuses, other rules, patches."""

from __future__ import annotations

from tests.faults.fault import Fault

FAULTS = (
    Fault(
        "timeout_is_clean", "analysis/check.py",
        'self.reasons.setdefault("the time limit for one kernel has passed", None)',
        "pass",
        "a kernel whose time ran out is proven", "",
    ),
    Fault(
        "unknown_is_clean", "analysis/check.py",
        "if what.knowledge is Knowledge.UNKNOWN:\n                self._reason(",
        "if what.knowledge is Knowledge.UNKNOWN:\n                _ = (",
        "an unknown instruction is harmless", "",
    ),
    Fault(
        "call_is_clean", "analysis/check.py",
        "if not harmless(callee):",
        "if False:",
        "a call of a function that the file does not hold is harmless", "",
    ),
    Fault(
        "branch_is_clean", "analysis/check.py",
        "for index in cfg.unresolved:",
        "for index in ():",
        "an indirect branch goes nowhere", "",
    ),
    Fault(
        "address_is_clean", "analysis/check.py",
        "self.reasons.update(builder.reasons)",
        "pass",
        "an address that cannot be followed does not stop the proof", "",
    ),
    Fault(
        "warning_is_clean", "analysis/check.py",
        "f.severity >= Severity.WARNING and",
        "f.severity >= Severity.ERROR and",
        "a kernel with warnings is proven", "",
    ),
    Fault(
        "overwritten_unwaited", "analysis/overwrite.py",
        "if not waits or self.paths.reaches(",
        "if False and self.paths.reaches(",
        "a bulk load replaces the bytes before anybody has waited for it", "",
    ),
    Fault(
        "race_excused", "analysis/unordered.py",
        "return not self.overwrites.retired(access, operation)",
        "return False",
        "accesses that nothing orders are no race", "",
    ),
    Fault(
        "pinned_by_arithmetic", "analysis/pinned.py",
        "    return bool(registers) and all(",
        "    return bool(registers) or all(",
        "every load is pinned, so that a read before a refill is a warning", "",
    ),
    Fault(
        "pinned_never", "analysis/pinned.py",
        "    if value is None:\n        return False",
        "    if True:\n        return False",
        "a load whose value is stored before the barrier is not pinned", "",
    ),
    Fault(
        "slot_load", "analysis/findings.py",
        "return not self.paths.reaches(access.index, operation.index, self.flow.events.barriers)",
        "return False",
        "the load of a tensor memory address counts as data", "",
    ),
    Fault(
        "rule_of_atomics", "analysis/findings.py",
        'return ("PF102", "PF103") if returns else ("PF102",)',
        'return ("PF103",) if returns else ("PF102",)',
        "an atomic before an async write is no write", "",
    ),
    Fault(
        "wait_by_another", "analysis/inflight.py",
        "self._end(ended & (self._solo & step.alone | self._shared), state)",
        "self._end(ended, state)",
        "a thread's wait_group waits for the operations of others", "",
    ),
    Fault(
        "bulk_wait_leaves", "analysis/inflight.py",
        "(group.kind is GroupKind.WAIT and event.pending == 0)",
        "group.kind is GroupKind.WAIT",
        "wait_group 1 waits for everything", "",
    ),
    Fault(
        "inflight_silent", "analysis/inflight.py",
        "if not tracked or not reuses:",
        "if True:",
        "operations in flight are left out", "",
    ),
    Fault(
        "init_unpublished", "analysis/published.py",
        "    if not inits or not uses:\n        return",
        "    return",
        "an mbarrier may be used before its initialisation is published", "",
    ),
    Fault(
        "tensormap_release", "analysis/tensormaps.py",
        "if half is Direction.ACQUIRE or subset(write.threads, threads(event.index))",
        "",
        "one thread's release publishes what all have written into a tensor map", "",
    ),
    Fault(
        "redundant_always", "rewrite/optimize.py",
        "if any(k.name == kernel and k.verdict is not Verdict.PROVEN for k in report.kernels):",
        "if False:",
        "--optimize keeps a step after which the kernel is not proven", "",
    ),
    Fault(
        "cut_is_empty", "rewrite/placement.py",
        "return not reached & self.sinks",
        "return True",
        "no fence is ever needed", "",
    ),
    Fault(
        "carried_is_covered", "rewrite/placement.py",
        "if level.carried & bits:\n            return False",
        "",
        "a fence is placed between arrive and wait of the cluster barrier", "",
    ),
    Fault(
        "narrow_for_peers", "rewrite/placement.py",
        "form.covers >= OWN.covers and not (level.near & bits & remote or far & ~remote)",
        "form.covers >= OWN.covers",
        "a fence of shared::cta is placed for the peer's memory", "",
    ),
    Fault(
        "loops_cost_nothing", "rewrite/placement.py",
        "LOOP_FACTOR = 8",
        "LOOP_FACTOR = 1",
        "a fence inside a loop costs as much as one before it", "",
    ),
    Fault(
        "not_pruned", "rewrite/placement.py",
        "        if not all(r.is_cut(left) for r in routes):\n            left[spot]",
        "        if True:\n            left[spot]",
        "fences that others make needless stay", "",
    ),
    Fault(
        "policy", "rewrite/placement.py",
        'if policy == "writer-side" and',
        "if False and",
        "fences go to the issuer's side although the writers' was asked for", "",
    ),
    Fault(
        "before_the_label", "rewrite/layout.py",
        "(b for b in gap.boundaries if b.labels_before == gap.labels)",
        "(b for b in gap.boundaries if b.labels_before == 0)",
        "a fence stands before the label of its block, where jumps pass it by", "",
    ),
    Fault(
        "inside_a_wait", "rewrite/layout.py",
        "legal = tuple(b for b in found if b.block is None or b.block.works)",
        "legal = tuple(found)",
        "a fence stands inside a wait loop's braces", "",
    ),
    Fault(
        "recheck_acquire_half", "rewrite/trails.py",
        "if fence.kind is not FenceKind.ASYNC or fence.direction is Direction.ACQUIRE:",
        "if fence.kind is not FenceKind.ASYNC:",
        "the recheck takes the acquire half for a cover", "",
    ),
    Fault(
        "recheck_flying", "rewrite/trails.py",
        "if phase in (Phase.FLYING, Phase.CARRIED):\n            return False",
        "",
        "the recheck takes a fence before the data has landed for a cover", "",
    ),
    Fault(
        "recheck_hand_off", "rewrite/partners.py",
        "return [w for w in self._waits if w.barrier is not None and _same(w.barrier, barrier)]",
        "return []",
        "the recheck sees no hand-off through mbarriers", "",
    ),
    Fault(
        "recheck_skipped", "rewrite/patch.py",
        "if not draft.edits or not pairs:",
        "if True:",
        "patches are not rechecked", "",
    ),
    Fault(
        "changed_meanwhile", "rewrite/atomic.py",
        "if snapshot.path.read_bytes() != snapshot.data:",
        "if False:",
        "a file that was changed since it was read is overwritten", "",
    ),
)  # fmt: skip
