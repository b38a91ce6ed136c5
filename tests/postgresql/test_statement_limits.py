"""Statement limits: does a question of many statements end when its whole time is over, and cost nothing more where it is quick?"""

from __future__ import annotations

import contextlib

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from invocations.models import Invocation
from kernel.database import statement_limits
from kernel.database.statement_limits import StatementTooLong, check_time_left, limit_statements
from tests.support.statements import run_endless_statement

pytestmark = pytest.mark.django_db
LIMIT = "SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'"


class Clock:
    """The one of the process. That of PostgreSQL goes on as it does."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(statement_limits, "time", found)
    return found


def read_limit_ms() -> int:
    with connection.cursor() as cursor:
        cursor.execute(LIMIT)
        return int(cursor.fetchone()[0])


@pytest.mark.req("TOOLS-18")
def test_a_statement_that_begins_late_has_what_is_left_of_the_whole(clock: Clock) -> None:
    with limit_statements(2_000):
        assert read_limit_ms() == 2_000
        clock.seconds += 1.5
        assert read_limit_ms() == 500
        clock.seconds += 0.45
        check_time_left()  # before a statement that is prepared
        clock.seconds -= 0.2
        assert read_limit_ms() == 50
        clock.seconds += 0.3
        with pytest.raises(StatementTooLong):
            Invocation.objects.count()
        clock.seconds -= 0.3

    assert read_limit_ms() == 0


@pytest.mark.req("TOOLS-18")
def test_postgresql_ends_the_last_statement_when_the_whole_time_is_over(clock: Clock) -> None:
    """By what it was told at last: the process's clock stands still, and the ten minutes of the question were enough for hours."""
    with pytest.raises(StatementTooLong), limit_statements(600_000):
        clock.seconds += 599.95
        run_endless_statement()

    assert read_limit_ms() == 0


@pytest.mark.req("TOOLS-18")
def test_a_question_that_is_quick_costs_no_exchange_more(clock: Clock) -> None:
    with limit_statements(2_000), CaptureQueriesContext(connection) as sent:
        for _ in range(4):
            clock.seconds += 0.05
            Invocation.objects.count()

    assert len(sent) == 4


@pytest.mark.req("TOOLS-18")
def test_a_question_within_another_leaves_it_what_is_left(clock: Clock) -> None:
    with limit_statements(10_000):
        clock.seconds += 0.5
        with limit_statements(2_000):
            assert read_limit_ms() == 2_000
            clock.seconds += 1.5
            assert read_limit_ms() == 500
        assert read_limit_ms() == 8_000
        with pytest.raises(StatementTooLong), limit_statements(1_000):
            clock.seconds += 1.5
            Invocation.objects.count()
        assert read_limit_ms() == 6_500
        with limit_statements(600_000):
            assert read_limit_ms() == 6_500
        clock.seconds += 6.5
        with pytest.raises(StatementTooLong), limit_statements(2_000):
            Invocation.objects.count()

    assert read_limit_ms() == 0


@pytest.mark.req("TOOLS-18")
def test_what_was_told_within_a_savepoint_is_told_again_once_it_is_rolled_back(clock: Clock) -> None:
    with limit_statements(2_000):
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            clock.seconds += 1.5
            assert read_limit_ms() == 500
            raise ZeroDivisionError
        assert read_limit_ms() == 500
