"""One missing fence is one finding, however many copies it would serve; buffers apart have findings of their own."""

from __future__ import annotations

import ptxfence
from tests.litmus.table import kernel

_TILES = """
    ST
    st.shared.u32 [mine+1024], tid;
    st.shared.u32 [mine+{third}], tid;
    BAR
    @lead cp.async.bulk.global.shared::cta.bulk_group [out], [buf], 2048;
    @lead cp.async.bulk.global.shared::cta.bulk_group [in], [buf+{second}], {size};
    @lead cp.async.bulk.commit_group;"""


def _found(third: int, second: int, size: int) -> list[int]:
    """How many accesses each finding names."""
    text = kernel("tiles", "", "", _TILES.format(third=third, second=second, size=size)).text
    return [1 + len(finding.others) for finding in ptxfence.check(text).findings]


def test_copies_that_overlap_pairwise_are_one_class() -> None:
    assert _found(2048, 1024, 2048) == [2]


def test_copies_of_buffers_apart_are_not() -> None:
    assert _found(4096, 4096, 1024) == [2, 1]
