"""What a verdict rests on besides the text is listed with it."""

from __future__ import annotations

import ptxfence
from tests.litmus.table import kernel

MAPPED = """
    mov.u32 r0, %cluster_ctarank;
    mapa.shared::cluster.u32 u, m1, r0;
    INITS 1 64
    ST
    FENCE
    mbarrier.arrive.shared::cluster.b64 _, [u];
    @!lead bra DONE;
    AWAIT
    ISSUE
    DONE:"""
ONE_CTA = "clusters have one CTA"


def assumptions(body: str, cluster: int = 0) -> tuple[str, ...]:
    (found,) = ptxfence.check(kernel("mapped", "clusters", "", body, cluster=cluster).text).kernels
    return found.assumptions


def test_an_address_of_the_cluster_in_a_kernel_that_asks_for_none() -> None:
    assert assumptions(MAPPED) == (ONE_CTA,)


def test_nothing_is_assumed_where_the_size_is_given_or_no_address_mapped() -> None:
    assert assumptions(MAPPED, cluster=2) == ()
    assert assumptions(MAPPED.replace("mapa.shared::cluster.u32 u, m1, r0;", "mov.u32 u, m1;")) == ()
