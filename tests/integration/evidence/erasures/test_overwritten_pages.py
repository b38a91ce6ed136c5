"""Overwritten pages: is what an erasure removed gone from the log of the database's file as well, also after somebody read it?"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from access import services as access
from access.roles import Role
from evidence.erasures import services as erasures
from kernel.database import overwritten_pages
from kernel.database.overwritten_pages import drop_overwritten_pages
from kernel.loops import Rest
from tests.conftest import make_person
from tests.support.erasures import REASON

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db(transaction=True)
WORD = "zqLindqvist"


def open_database() -> sqlite3.Connection:
    """As another process has it: the log outlives every connection of this one."""
    opened = sqlite3.connect(connection.settings_dict["NAME"] if connection.vendor == "sqlite" else ":memory:")
    opened.execute("SELECT * FROM sqlite_master").fetchall()
    return opened


def read_log() -> bytes:
    """Of the database's file; PostgreSQL's is its server's."""
    log = Path(f"{connection.settings_dict['NAME']}-wal")
    return log.read_bytes() if log.exists() else b""


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "oona", Role.OWNER)


def ask(owner: Person) -> None:
    named: dict[str, Any] = {"user_id": "user-ann-4711", "names": [WORD], "by": owner.by}
    _, confirm = erasures.preview_erasure(**named)
    erasures.erase_subject(reason=REASON, confirm=confirm, **named)


@pytest.mark.req("SPEC-10")
def test_what_a_reader_keeps_in_the_log_is_gone_with_the_pass_after_it(
    caller: Caller, operator: Person, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(overwritten_pages.log, "warning", lambda *said: told.append(said))
    monkeypatch.setattr(overwritten_pages, "TOLD_AFTER_S", 0.0)
    assert drop_overwritten_pages()
    access.give_grant(agent_id=caller.agent.pk, tools="sample.*", reason=f"asked by {WORD}", by=operator.by)
    in_file = connection.vendor == "sqlite"

    with closing(open_database()) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM sqlite_master").fetchall()
        ask(owner)
        passes = [erasures.advance_erasures() for _ in range(2)]
        kept = read_log()
    last = erasures.advance_erasures()

    assert (WORD.encode() in kept) is in_file
    assert passes == [Rest(erasures.EVERY_S) if in_file else None] * 2
    assert (read_log(), last) == (b"", None)
    assert len(told) == in_file  # and not with every pass


@pytest.mark.req("SPEC-10")
def test_a_process_that_begins_takes_no_log_for_clean(
    caller: Caller, operator: Person, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drop_overwritten_pages()
    access.give_grant(agent_id=caller.agent.pk, tools="sample.*", reason=f"asked by {WORD}", by=operator.by)
    with closing(open_database()):
        with monkeypatch.context() as dying:
            dying.setattr(erasures, "drop_overwritten_pages", lambda: True)
            ask(owner)
            erasures.advance_erasures()
        left = read_log()

        monkeypatch.setattr(overwritten_pages, "_file_log", overwritten_pages._FileLog())
        erasures.advance_erasures()

        assert (WORD.encode() in left) is (connection.vendor == "sqlite")
        assert read_log() == b""
