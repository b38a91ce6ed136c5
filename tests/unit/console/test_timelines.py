"""Timelines: does what repeats stand there once, and what differs by itself?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from kernel.components.timelines import group_by_day

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def fact(kind: str, subject: str = "inv_1", actor: str = "usr_1", minutes: int = 0) -> SimpleNamespace:
    return SimpleNamespace(
        kind=kind, subject=subject, actor_id=actor, outcome="", reason="", occurred_at=NOW + timedelta(minutes=minutes)
    )


def fold(*facts: SimpleNamespace) -> list[tuple[str, int]]:
    return [(entry.fact.kind, len(entry.again)) for day in group_by_day(facts) for entry in day.entries]


def test_what_one_did_to_the_same_thing_again_and_again_is_one_entry() -> None:
    reveals = [fact("snapshot.read", minutes=n) for n in range(6)]

    assert fold(*reveals, fact("invocation.resolved")) == [("snapshot.read", 5), ("invocation.resolved", 0)]


def test_another_person_another_thing_another_day_and_calls_stand_by_themselves() -> None:
    assert fold(fact("snapshot.read"), fact("snapshot.read", actor="usr_2")) == [("snapshot.read", 0)] * 2
    assert fold(fact("snapshot.read"), fact("snapshot.read", subject="inv_2")) == [("snapshot.read", 0)] * 2
    assert fold(fact("snapshot.read"), fact("snapshot.read", minutes=24 * 60)) == [("snapshot.read", 0)] * 2
    assert fold(fact("invocation.ended"), fact("invocation.ended")) == [("invocation.ended", 0)] * 2
