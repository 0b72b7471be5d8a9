"""An oracle for proxy fences: run a PTX program with a few threads and see which accesses nothing separates.

The model, in prose (section numbers are those of the PTX ISA 9.1)

1. Threads execute their instructions in program order, interleaved one visible instruction at a time by a scheduler.
   Memory holds values so that addresses, loop bounds and flags work; values never decide whether there is a hazard.

2. Every execution of an access is an event with a bit of its own. A thread carries what it *knows*: the set of events
   that happened before its next instruction in base causality order (section 8.9.5: program order and
   synchronizes-with, transitively). A release (barrier arrival, mbarrier arrive, release store, fence + relaxed
   store) deposits the set in the object; the acquire that observes it adds the set to the acquirer's. `.relaxed`
   forms deposit only what an earlier thread fence froze; `fence.mbarrier_init` freezes the thread's own
   initialisations alone (9.7.13.4). A `.cta` release or acquire does not reach another CTA.

3. Beside it a thread carries which events it knows *through a covering proxy fence*. A generic/async proxy fence adds
   the events that the executing thread knows at that moment and whose bytes lie in the state space that the fence
   names (9.7.13.4): the executing CTA's own shared memory, the cluster's, global memory, or all. So the fence counts
   on the writer's side (the writer's events, before its release), on the issuer's side (after its acquire) and by a
   third thread in between, and never counts before the access, before the synchronisation, after the operation or by
   a thread off the chain. A fence counts only where it ran in the CTA of the access or of the operation. The release
   half of the one-way form covers generic -> async like the full fence, the acquire half covers nothing by itself,
   `::read` covers only the executing thread's own reads. Thread fences, `wgmma.fence`, `tcgen05.fence`,
   `fence.mbarrier_init` and the alias and tensormap proxy fences add nothing.

4. `cp.async`, `st.async`: generic accesses that happen at an unknown time (9.7.9.25.3, 9.7.9.12). Nobody knows their
   event until the completion is observed: `wait_group` in the issuing thread, or the mbarrier phase they complete.

5. An asynchronous operation (9.7.9.25.4, wgmma 9.7.15, tcgen05 9.7.16) reads and writes through the async proxy, some
   time after its issue. When it is issued, every earlier conflicting generic access of its bytes must be known to the
   issuer (else: unsynchronised) and known through a covering fence (else: RAW, WAW or WAR hazard). Its own accesses
   become known where its completion is observed: bulk groups in the issuing thread (`.read`: only the reads),
   `complete_tx` and `tcgen05.commit` in whoever waits for that mbarrier phase, `wgmma.wait_group`. Completion carries
   the implicit proxy fence (9.7.9.25.4.1), so a later generic access needs only to know it; an access that does not,
   generic or async, reuses bytes in flight. A wait of any scope observes a completion: kernels wait for the copies of a
   peer with the default `.cta` scope. `complete_tx` deposits the operation's own accesses, not what its issuer
   knows (8.9.1.1).

6. An async write replaces the bytes: older generic accesses of them have been judged and are dropped, or, if they
   were in hazard with it, kept as stale.

7. mbarrier objects are not data. Using one without knowing its `init` is a finding of its own; `inval` makes the bytes
   data again, last written by that instruction.

Simplifications, all of them harmless for the question asked: `elect.sync` elects the lowest lane; `wgmma` and
`tcgen05.mma` read plain ranges of the size that the shape names; a wait that may suspend suspends until it succeeds;
float arithmetic is integer arithmetic; two generic accesses are never compared.

It shares nothing with ptxfence but the parser.
"""

from tests.oracle.run import Hazard, Observations, run

__all__ = ["Hazard", "Observations", "run"]
