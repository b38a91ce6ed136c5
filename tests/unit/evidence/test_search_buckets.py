"""Search buckets: is each tag found with its places, and what was changed refused?"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.problems import SearchIndexDamaged
from evidence.search.buckets import (
    BITS,
    RUNS,
    SPANS,
    cut_span,
    decode_bucket,
    encode_bucket,
    find_in_bucket,
    find_parts,
    is_bucketed,
    part_of,
)
from evidence.search.language import parse
from evidence.search.tags import NameLookups, TagSpan, exact_spans, make_tag, prefix_span, term_spans

TAGS = st.builds(
    lambda kind, body: bytes((kind,)) + body,
    st.integers(1, 3),
    st.binary(min_size=1, max_size=20) | st.binary(min_size=10, max_size=10),
)
FIRST = 3 << 20
PLACES = st.lists(st.integers(FIRST, FIRST + SPANS[-1] - 1), min_size=1, max_size=9, unique=True).map(sorted)
CONTENTS = st.dictionaries(TAGS, PLACES, max_size=30)


def only(tag: bytes) -> TagSpan:
    return TagSpan(tag, tag + b"\0")


@pytest.mark.req("CARD-6")
@given(CONTENTS, TAGS)
def test_a_bucket_says_what_was_written_and_nothing_else(places: dict[bytes, list[int]], other: bytes) -> None:
    content = encode_bucket(places, first=FIRST)

    assert decode_bucket(content, first=FIRST) == places
    for tag in (*places, other):
        found = find_in_bucket(content, only(tag), first=FIRST)
        assert found == ({tag: places[tag]} if tag in places else {})


@pytest.mark.req("CARD-6")
@given(CONTENTS, TAGS, TAGS)
def test_a_span_has_all_tags_that_are_within_it(places: dict[bytes, list[int]], one: bytes, other: bytes) -> None:
    span = TagSpan(min(one, other), max(one, other))

    found = find_in_bucket(encode_bucket(places, first=FIRST), span, first=FIRST)

    assert found == {tag: of_tag for tag, of_tag in places.items() if span.holds(tag)}


@pytest.mark.req("CARD-6")
@given(CONTENTS, st.data())
def test_a_bucket_that_was_changed_is_refused(places: dict[bytes, list[int]], data: st.DataObject) -> None:
    content = bytearray(encode_bucket(places, first=FIRST))
    changed = data.draw(
        st.one_of(
            st.integers(0, len(content) - 1).flatmap(
                lambda at: st.integers(1, 255).map(
                    lambda by: bytes(content[:at]) + bytes([content[at] ^ by]) + bytes(content[at + 1 :])
                )
            ),
            st.integers(0, len(content) - 1).map(lambda length: bytes(content[:length])),
            st.binary(min_size=1, max_size=9).map(lambda more: bytes(content) + more),
        )
    )

    with pytest.raises(SearchIndexDamaged):
        decode_bucket(changed, first=FIRST)
    with pytest.raises(SearchIndexDamaged):
        find_in_bucket(changed, only(b"\1a"), first=FIRST)


@pytest.mark.req("CARD-6")
@given(TAGS, st.integers(0, len(BITS) - 1))
def test_a_tag_is_in_a_bucket_that_is_looked_into_for_it(tag: bytes, level: int) -> None:
    assert is_bucketed(tag)
    assert find_parts(only(tag), level) == (part_of(tag, level),) * 2
    assert 0 <= part_of(tag, level) < 1 << BITS[level]
    if level > 1:  # so that those of a bucket come from one of the shorter spans
        assert part_of(tag, level - 1) == part_of(tag, level) >> BITS[level] - BITS[level - 1]


@pytest.mark.req("CARD-6")
@given(st.binary(min_size=10, max_size=10), st.integers(8, 19), st.integers(0, len(BITS) - 1))
def test_a_hash_is_found_by_its_first_digits_in_few_buckets(hash: bytes, digits: int, level: int) -> None:
    tag = make_tag("hash", hash.hex())
    (term,) = parse(f"hash:{hash.hex()[:digits]}").terms

    parts = [parts for span in term_spans(term, NameLookups()) if (parts := find_parts(span, level))]

    assert parts == [(part_of(tag, level),) * 2]


@pytest.mark.req("CARD-6")
def test_tags_in_words_are_in_no_bucket() -> None:
    assert not is_bucketed(make_tag("tool", "a.b"))
    assert not is_bucketed(b"\4")
    assert not is_bucketed(b"\1")
    assert find_parts(prefix_span("tool", ""), 3) is None
    assert [find_parts(span, 3) is not None for span in exact_spans("trace", "ab" * 16)] == [True, False]


@pytest.mark.req("CARD-6")
def test_leaves_are_cut_into_spans_that_are_whole_and_runs() -> None:
    chosen = random.Random(4)
    for _ in range(300):
        low = chosen.randrange(3 * SPANS[-1])
        high = low + chosen.choice([1, 5, 700, 40_000, 2_500_000])
        pieces = list(cut_span(low, high))

        assert [begin for _, begin, _ in pieces] == [low, *(end for _, _, end in pieces[:-1])]
        assert pieces[-1][2] == high
        for level, begin, end in pieces:
            assert begin // SPANS[level] == (end - 1) // SPANS[level]
            assert level == RUNS or (begin % SPANS[level] == 0 and end - begin == SPANS[level])


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("at", ["begin", "end"])
def test_traces_that_a_caller_chose_to_be_alike_are_in_many_buckets(at: str) -> None:
    numbers = [f"{number:08x}" for number in range(4_096)]
    same = "7" * 24
    tags = [make_tag("trace", same + each if at == "begin" else each + same) for each in numbers]

    assert len({part_of(tag, 5) for tag in tags}) > 3_500
    assert len({part_of(tag, 1) for tag in tags}) == 16
