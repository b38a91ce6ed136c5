"""Search language: is a query understood as it was meant, and is what cannot be meant refused with the place and what to write
instead?
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.kinds import Kind
from evidence.problems import SearchInvalid
from evidence.search.language import QUALIFIERS, Query, Term, fix_days, parse, parse_moment
from evidence.search.postings import BLOCK, decode, encode, iter_falling, iter_rising
from kernel.ids import encode as wire_id
from kernel.ids import new_id

TEXTS = st.text(min_size=1, max_size=30)
HASHES = st.text("0123456789abcdef", min_size=8, max_size=64)
MOMENTS = st.one_of(
    st.dates().map(str),
    st.datetimes().map(lambda each: each.isoformat()),
    st.sampled_from(["5m", "24h", "7d", "52w"]),
)
VALUES = {
    "kind": st.sampled_from(Kind.values),
    "hash": HASHES,
    "trace": st.text("0123456789abcdef", min_size=32, max_size=32),
    "proposed_by": st.one_of(
        st.uuids().map(partial(wire_id, "inv")), st.sampled_from(["model.openai.main", "model.a"])
    ),
    "after": MOMENTS,
    "before": MOMENTS,
    **{
        name: st.uuids().map(partial(wire_id, prefix))
        for name, prefix in {
            "call": "inv",
            "chain": "chn",
            "run": "run",
            "consent": "cns",
            "grant": "grt",
            "tenant": "ten",
        }.items()
    },
}


@st.composite
def terms(draw: st.DrawFn) -> Term:
    name = draw(st.sampled_from(["", *QUALIFIERS]))
    value = draw(VALUES.get(name, TEXTS))
    if not name:
        return Term("", value, draw(st.booleans()), draw(st.booleans()))
    qualifier = QUALIFIERS[name]
    starts = qualifier.start is not None and draw(st.booleans())
    return Term(name, qualifier.check(value), qualifier.excludes and draw(st.booleans()), starts)


QUERIES = st.lists(terms(), max_size=8, unique=True).map(lambda each: Query(tuple(each)))


@pytest.mark.req("CARD-6")
@given(QUERIES)
def test_what_is_printed_is_parsed_to_the_same_query(query: Query) -> None:
    assert parse(str(query)) == query


@pytest.mark.req("CARD-6")
@given(st.text(max_size=200))
def test_any_text_is_understood_or_refused_by_the_catalogue(text: str) -> None:
    try:
        query = parse(text)
    except SearchInvalid as refused:
        for finding in refused.details["findings"]:
            assert 0 <= finding["at"] <= len(text)
            assert finding["length"] >= 1
            assert finding["message"]
            assert finding["instead"]
    else:
        assert parse(str(query)) == query


@pytest.mark.req("CARD-6")
@given(
    st.lists(
        st.sampled_from(["tool", "kind", ":", "-", '"', "*", "\\", " ", "x", "after:", "7d", "nosuch:"]), max_size=20
    )
)
def test_pieces_of_queries_in_any_order_are_understood_or_refused(pieces: list[str]) -> None:
    try:
        query = parse("".join(pieces))
    except SearchInvalid:
        return
    assert parse(str(query)) == query


@pytest.mark.req("CARD-6")
def test_qualifiers_words_quotes_stars_and_exclusions() -> None:
    query = parse('tool:Commerce.* -code:quota.rate_limited "two words" user:"ann \\"a\\" 7" outcome:FAILED  quote')

    assert query.terms == (
        Term("tool", "commerce.", starts=True),
        Term("code", "QUOTA.RATE_LIMITED", negated=True),
        Term("", "two words"),
        Term("user", 'ann "a" 7'),
        Term("outcome", "failed"),
        Term("", "quote"),
    )


@pytest.mark.req("CARD-6")
def test_the_beginning_of_a_model_is_looked_for_as_its_whole_id_is() -> None:
    assert [term.value for term in parse("proposed_by:Model.OpenAI.main proposed_by:Model.OpenAI.*").terms] == [
        "model.openai.main",
        "model.openai.",
    ]


@pytest.mark.req("CARD-6")
def test_pasted_hashes_and_names_with_colons_are_words() -> None:
    digest = "sha256:" + "ab" * 32

    query = parse(f"{digest} -soul:tool:web.pages.read system:sweeper")

    assert [(term.name, term.value, term.negated) for term in query.terms] == [
        ("", digest, False),
        ("", "soul:tool:web.pages.read", True),
        ("", "system:sweeper", False),
    ]


WRONG = {
    "tol:x": (0, 5, "tool:x"),
    "a kind:consent.aproved": (2, 20, "consent.approved"),
    'tool:a "open': (7, 5, '"open"'),
    "call:inv_1": (0, 10, "an id like inv_…, as pages show it"),
    "-after:7d": (0, 9, "before:7d"),
    "after:yesterday": (0, 15, "a day as 2026-11-30, a time as 2026-11-30T14:00, or how long ago as 24h, 7d"),
    "x outcome:fail*": (2, 13, "outcome:fail"),
    "tool:": (0, 5, "tool:commerce.*"),
    "hash:xyz": (0, 8, "8 to 64 digits of a hash, 0-9 and a-f"),
    "http://somewhere": (0, 16, '"http://somewhere"'),
}


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("text", WRONG)
def test_a_mistake_is_told_with_its_place_and_what_to_write_instead(text: str) -> None:
    with pytest.raises(SearchInvalid) as refused:
        parse(text)

    (finding,) = refused.value.details["findings"]
    assert (finding["at"], finding["length"], finding["instead"]) == WRONG[text]
    assert refused.value.remedy == f"Write instead: {WRONG[text][2]}"


@pytest.mark.req("CARD-6")
def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(SearchInvalid) as refused:
        parse("tol:x after:soon trace:1")

    assert [finding["at"] for finding in refused.value.details["findings"]] == [0, 6, 17]


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("text", ["x" * 1001, " ".join(f"w{number}" for number in range(21))])
def test_a_query_has_an_end(text: str) -> None:
    with pytest.raises(SearchInvalid):
        parse(text)


NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
CHINA = timezone(timedelta(hours=8))


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("24h", NOW - timedelta(hours=24)),
        ("2w", NOW - timedelta(weeks=2)),
        ("2026-11-20", datetime(2026, 11, 19, 16, tzinfo=UTC)),
        ("2026-11-20T09:30", datetime(2026, 11, 20, 1, 30, tzinfo=UTC)),
        ("2026-11-20T09:30+00:00", datetime(2026, 11, 20, 9, 30, tzinfo=UTC)),
    ],
)
def test_times_are_those_of_the_reader(said: str, moment: datetime) -> None:
    assert parse_moment(said, now=NOW, zone=CHINA) == moment


# The leaves of a block.


@pytest.mark.req("CARD-6")
@given(st.sets(st.integers(0, BLOCK - 1)))
def test_places_are_read_as_they_were_written(found: set[int]) -> None:
    bits = sum(1 << place for place in found)

    stored = encode(bits)

    assert decode(stored) == bits
    assert len(stored) <= BLOCK // 8 + 1
    assert list(iter_rising(bits)) == sorted(found)
    assert list(iter_falling(bits)) == sorted(found, reverse=True)


@pytest.mark.req("CARD-6")
def test_an_id_is_found_without_saying_what_it_is_of() -> None:
    id = wire_id("inv", new_id())

    assert parse(id).terms == (Term("", id),)


@given(
    value=MOMENTS,
    zone=st.sampled_from(["Asia/Shanghai", "America/Santiago", "Australia/Lord_Howe"]).map(ZoneInfo),
)
def test_a_day_that_is_fixed_is_the_same_moment_in_every_zone(value: str, zone: ZoneInfo) -> None:
    now = datetime(2026, 11, 29, tzinfo=UTC)
    query = Query((Term("after", value), Term("", value)))

    after, word = fix_days(query, zone).terms

    assert word == Term("", value)
    for other in (UTC, ZoneInfo("Asia/Kolkata")):
        assert parse_moment(after.value, now=now, zone=other) == parse_moment(value, now=now, zone=zone)
    assert parse(str(Query((after,)))) == Query((after,))
