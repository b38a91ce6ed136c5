"""The hub's role: what can somebody do with evidence who has taken over a request, or a process of the hub that owns no table?"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction

from kernel.database.postgresql.base import ROLE
from tests.integration.evidence.facts.test_append_only import ANYWHERE, ON_POSTGRESQL, everything, from_outside, sealed
from toolhub.database.hub_role import HUB_ROLE, grant_rights, may_alter_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evidence.models import Fact
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell

__all__ = ["sealed"]
pytestmark = pytest.mark.django_db(transaction=True)
BEYOND = [
    "ALTER TABLE evidence_fact DISABLE TRIGGER ALL",
    "ALTER TABLE evidence_fact DISABLE TRIGGER toolhub_no_update",
    "DROP TRIGGER toolhub_no_update ON evidence_fact",
    "CREATE OR REPLACE FUNCTION toolhub_refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "DROP TABLE evidence_fact CASCADE",
    "ALTER TABLE evidence_fact DISABLE ROW LEVEL SECURITY",
    "SET session_replication_role = replica",
]
REFUSED = ("append-only", "permission denied", "must be owner")


@pytest.fixture
def login() -> Iterator[str]:
    """How somebody connects who may log in, and is a member of the hub's role."""
    name, password = f"toolhub_test_{secrets.token_hex(6)}", secrets.token_hex(12)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}' IN ROLE {HUB_ROLE}")
    told = connection.settings_dict
    yield f"host={told['HOST']} port={told['PORT']} dbname={told['NAME']} user={name} password={password}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP ROLE {name}")


@pytest.mark.req("TOOLS-18")
def test_a_request_adds_to_evidence_and_does_nothing_else_with_it(sealed: Fact) -> None:
    before = everything()
    statements = [
        f"SET ROLE {ROLE}; SET app.tenant = '{sealed.tenant_id}'; {each}" for each in ANYWHERE + ON_POSTGRESQL + BEYOND
    ]

    found = from_outside(statements)

    assert {each: said for each, said in found.items() if not any(word in said for word in REFUSED)} == {}
    assert everything() == before


@pytest.mark.req("TOOLS-18")
def test_a_process_of_the_hub_that_owns_no_table_cannot_rewrite_evidence_either(sealed: Fact, login: str) -> None:
    before = everything()

    found = from_outside(ANYWHERE + ON_POSTGRESQL + BEYOND, at=login)

    assert {each: said for each, said in found.items() if not any(word in said for word in REFUSED)} == {}
    assert everything() == before


@pytest.mark.req("TOOLS-22")
def test_it_sees_all_tenants_as_the_hub_and_one_as_a_request(
    sealed: Fact, login: str, caller: Caller, foreign_caller: Caller
) -> None:
    with psycopg.connect(login) as outside:
        all_of_them = {row[0] for row in outside.execute("SELECT tenant_id FROM evidence_fact")}
        outside.execute(f"SET ROLE {ROLE}")
        nobodys = outside.execute("SELECT count(*) FROM evidence_fact").fetchone()
        outside.execute("SELECT set_config('app.tenant', %s, false)", [str(caller.by.tenant_id)])
        one = {row[0] for row in outside.execute("SELECT tenant_id FROM evidence_fact")}

    assert all_of_them >= {caller.by.tenant_id, foreign_caller.by.tenant_id}
    assert (nobodys, one) == ((0,), {caller.by.tenant_id})


@pytest.mark.req("TOOLS-22")
def test_nobody_makes_anything_among_the_tables_but_their_owner() -> None:
    asked = "SELECT has_schema_privilege(%s, 'public', 'CREATE'), has_schema_privilege(%s, 'public', 'CREATE')"
    with connection.cursor() as cursor:
        cursor.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")  # as until PostgreSQL 15

    grant_rights(connection)

    with connection.cursor() as cursor:
        cursor.execute(asked, [ROLE, HUB_ROLE])
        assert cursor.fetchone() == (False, False)


@pytest.mark.req("TOOLS-18")
def test_a_call_is_made_and_ends_over_a_connection_that_owns_no_table(
    login: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., None],
    bell: Bell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable()
    grant()
    owner = may_alter_tables(connection)
    user = psycopg.conninfo.conninfo_to_dict(login)
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "USER", user["user"])
    monkeypatch.setitem(connection.settings_dict, "PASSWORD", user["password"])
    try:
        answer = caller.invoke("sample.tools.echo", {"text": "x"})
        nobody = may_alter_tables(connection)
        with connection.cursor() as cursor, transaction.atomic():
            cursor.execute("SELECT session_user::text")
            who = cursor.fetchone()
    finally:
        connection.close()
        monkeypatch.undo()

    assert (answer.status_code, who) == (200, (user["user"],))
    assert "could switch off" in owner
    assert nobody == ""


@pytest.mark.req("TOOLS-18")
def test_doctor_says_who_could_take_the_triggers_down(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("doctor")

    (line,) = [each for each in capsys.readouterr().out.splitlines() if " evidence " in each]
    assert line.startswith("note")
    assert "could switch off what keeps evidence append-only" in line


@pytest.mark.req("TOOLS-18")
def test_a_missing_trigger_is_something_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE evidence_fact DISABLE TRIGGER toolhub_no_update")
    try:
        with pytest.raises(SystemExit):
            call_command("doctor")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE evidence_fact ENABLE ALWAYS TRIGGER toolhub_no_update")

    (line,) = [each for each in capsys.readouterr().out.splitlines() if " evidence " in each]
    assert line.startswith("WRONG")
    assert "toolhub_no_update on evidence_fact" in line
