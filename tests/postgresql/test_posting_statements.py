"""Posting statements: is what a search asks for bounded by its time, and looked up, however many beginnings it names?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import ProgrammingError, connection, transaction

from evidence.search import postings
from evidence.search.bucket_rows import find_bucket_postings
from evidence.search.buckets import encode_bucket
from evidence.search.language import MAX_TERMS, parse
from evidence.search.posting_rows import read_posting_rows
from evidence.search.tags import NameLookups, build_tag_query, exact_span, prefix_span
from kernel.database.postgresql.base import ROLE, DatabaseWrapper
from kernel.ids import new_id

if TYPE_CHECKING:
    from kernel.database.prepared_statements import Parameters

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, Parameters]]:
    """Prepared statements, of each of which PostgreSQL counts the time anew."""
    noted, ask = list[tuple[bytes, Any]](), DatabaseWrapper.ask

    def note(self: DatabaseWrapper, *asked: tuple[bytes, Parameters]) -> list[list[tuple[Any, ...]]]:
        noted.extend(asked)
        return ask(self, *asked)

    monkeypatch.setattr(DatabaseWrapper, "ask", note)
    return noted


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("blocks", [range(40), [1, 90]])
def test_all_that_a_search_names_is_asked_for_in_one_statement(
    blocks: Any, asked: list[tuple[bytes, Parameters]]
) -> None:
    query = parse(" ".join(f"{letter}*" for letter in "abcdefghijklmnopqrstuvwxyz"[:MAX_TERMS]))
    spans = build_tag_query(query, NameLookups()).spans
    assert len(spans) > MAX_TERMS

    list(read_posting_rows(new_id(), spans, blocks))

    assert len(asked) == 1


@pytest.mark.parametrize("blocks", [range(3, 6), [3, 50]])
def test_each_beginning_is_looked_up_in_the_index(blocks: Any, asked: list[tuple[bytes, Parameters]]) -> None:
    """Joined, all rows of the blocks would be read and held against each of them."""
    tenant = new_id()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO evidence_posting (tenant_id, tag, block, places) SELECT %s, "
            "convert_to('word:w' || lpad(n::text, 3, '0'), 'UTF8'), block, 'x' "
            "FROM generate_series(1, 400) AS n, generate_series(0, 59) AS block",
            [tenant],
        )
        cursor.execute("ANALYZE evidence_posting")
        cursor.execute(f"SET LOCAL ROLE {ROLE}")  # behind the walls, as requests search
        cursor.execute("SELECT set_config('app.tenant', %s, true)", [str(tenant)])
        found = list(read_posting_rows(tenant, [prefix_span("word", "w01"), prefix_span("word", "w02")], blocks))
        [(statement, values)] = asked
        [plan] = connection.ask((b"EXPLAIN " + statement, values))  # type: ignore[attr-defined]
        cursor.execute("SET LOCAL ROLE NONE")
    lines = [line for (line,) in plan]

    assert len(found) == 2 * 10 * len(blocks)
    assert len([line for line in lines if "Index Cond" in line and "tag >= span.begins" in line]) == 1, lines
    assert [line for line in lines if "Seq Scan" in line] == []


@pytest.mark.req("CARD-6")
def test_buckets_are_looked_up_in_one_statement_within_the_wall(asked: list[tuple[bytes, Parameters]]) -> None:
    """However long the log is: by their first digits, or the last, on each level."""
    mine, theirs = new_id(), new_id()
    tag = exact_span("hash", "ab" * 10)
    content = encode_bucket({tag.low: [7]}, first=0)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO evidence_postingbucket (tenant_id, level, part, first, content) SELECT tenant, 3, part, first * 16384, %s "
            "FROM unnest(%s::uuid[]) AS tenant, generate_series(0, 1023) AS part, generate_series(0, 6) AS first",
            [content, [mine, theirs]],
        )
        cursor.execute("ANALYZE evidence_postingbucket")
        cursor.execute(f"SET LOCAL ROLE {ROLE}")  # behind the walls, as requests search
        cursor.execute("SELECT set_config('app.tenant', %s, true)", [str(mine)])
        found = find_bucket_postings(mine, [tag], block_size=2048)
        [(statement, values)] = asked
        [plan] = connection.ask((b"EXPLAIN " + statement, values))  # type: ignore[attr-defined]
        foreign = find_bucket_postings(theirs, [tag], block_size=2048)
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            cursor.execute(
                "INSERT INTO evidence_postingbucket (tenant_id, level, part, first, content) VALUES (%s, 0, 0, 0, '')",
                [mine],
            )
        cursor.execute("SET LOCAL ROLE NONE")
    lines = [line for (line,) in plan]

    assert {block: postings.decode(stored) for block, stored in found[tag.low].items()} == {
        first * 8: 1 << 7 for first in range(7)
    }
    assert foreign == {}
    assert len([line for line in lines if "Index Cond" in line and "part >= asked.low" in line]) == 1, lines
    assert [line for line in lines if "Seq Scan" in line] == []
