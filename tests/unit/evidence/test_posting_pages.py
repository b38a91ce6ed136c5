"""Posting pages: are entries read as they were written, in a few bytes each?"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.search.posting_pages import ENTRIES, Entry, pack_page, unpack_page
from evidence.search.tags import make_tag

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTRY = st.builds(Entry, st.binary(min_size=1, max_size=900), st.integers(7, 2**31 - 1), st.binary(max_size=4))


@pytest.mark.req("CARD-6")
@given(st.lists(ENTRY).map(sorted))
def test_entries_are_read_as_they_were_written(entries: Sequence[Entry]) -> None:
    assert list(unpack_page(pack_page(entries, first_block=7), first_block=7)) == entries


@pytest.mark.req("CARD-6")
def test_an_id_or_a_hash_that_one_call_has_takes_under_twenty_bytes() -> None:
    chosen = random.Random(1)
    tags = sorted(make_tag("hash", chosen.randbytes(10).hex()) for _ in range(ENTRIES))
    entries = [Entry(tag, chosen.randrange(300), chosen.randbytes(2)) for tag in tags]

    assert len(pack_page(entries, first_block=0)) < 20 * ENTRIES
