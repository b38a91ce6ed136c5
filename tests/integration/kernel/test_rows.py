"""Rows: do statements that are built once write and read what Django's own would, on either database?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.forms.models import model_to_dict

from access.models import Agent, Membership
from access.roles import Role
from evidence.models import Snapshot, SnapshotKind
from evidence.services import json_bytes
from kernel.database.prepared_statements import execute_prepared, fetch_prepared
from kernel.database.rows import PreparedQuery, delete_rows_later, insert_row, update_rows

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)
NAMED = PreparedQuery(
    lambda pk, name: Agent.objects.select_related("tenant").filter(pk=pk, name=name, disabled_at=None),
    pk=UUID,
    name=str,
)
OF_CALL = PreparedQuery(lambda call: Snapshot.objects.filter(invocation_id=call).order_by("kind"), call=UUID)

OF_PERSON = PreparedQuery(
    lambda tenant_id, user: Membership.objects.select_related("tenant").filter(tenant_id=tenant_id, user=user),
    tenant_id=UUID,
    user=int,
)


def make_snapshot(caller: Caller, invocation_id: UUID, kind: SnapshotKind = SnapshotKind.INPUT) -> Snapshot:
    return Snapshot(
        tenant_id=caller.agent.tenant_id,
        invocation_id=invocation_id,
        kind=kind,
        alg="none",
        commitment="sha256:" + "0" * 64,
        size=3,
        key_id="k",
        wrapped_key=b"\x00\xff",
        nonce=b"%s ? $1",
        ciphertext=json_bytes({"a": "ä"}),
        created_at=AT,
    )


def test_a_row_is_written_and_read_as_django_has_it(caller: Caller) -> None:
    written = insert_row(make_snapshot(caller, uuid4()))

    (read,) = OF_CALL.all(call=written.invocation_id)

    stored = Snapshot.objects.get(pk=written.pk)
    assert model_to_dict(read) == model_to_dict(stored)
    assert (stored.created_at, bytes(stored.nonce)) == (AT, b"%s ? $1")
    assert not read._state.adding


def test_a_row_is_found_by_an_id_that_is_a_number(operator: Person, auditor: Person, tenant: Tenant) -> None:
    found = {person: OF_PERSON.all(tenant_id=tenant.pk, user=person.user.pk) for person in (operator, auditor)}

    assert {person: [(row.role, row.tenant) for row in rows] for person, rows in found.items()} == {
        operator: [(Role.OPERATOR, tenant)],
        auditor: [(Role.AUDITOR, tenant)],
    }


def test_related_rows_come_with_a_row(caller: Caller, django_assert_num_queries: Any) -> None:
    agent = NAMED.get(pk=caller.agent.pk, name=caller.agent.name)

    with django_assert_num_queries(0):
        assert agent.tenant.pk == caller.agent.tenant_id
    assert model_to_dict(agent) == model_to_dict(Agent.objects.get(pk=agent.pk))
    assert NAMED.first(pk=uuid4(), name=caller.agent.name) is None
    with pytest.raises(Agent.DoesNotExist):
        NAMED.get(pk=agent.pk, name="another")


def test_only_rows_that_are_asked_for_are_changed_and_counted(caller: Caller) -> None:
    id = uuid4()
    for kind in (SnapshotKind.INPUT, SnapshotKind.OUTPUT, SnapshotKind.LOGS):
        insert_row(make_snapshot(caller, id, kind))
    asked = {"invocation_id": id, "kind__in": [SnapshotKind.INPUT, SnapshotKind.LOGS], "subject_key": None}

    assert update_rows(Snapshot, asked, {"size": 7}) == 2
    assert update_rows(Snapshot, {"invocation_id": uuid4()}, {"size": 8}) == 0
    assert {each.kind: each.size for each in OF_CALL.all(call=id)} == {"input": 7, "logs": 7, "output": 3}

    delete_rows_later(Snapshot, {"invocation_id": id, "kind": SnapshotKind.OUTPUT})
    assert [each.kind for each in OF_CALL.all(call=id)] == ["input", "logs"]


@pytest.mark.django_db(transaction=True)
def test_after_a_statement_that_failed_nothing_of_its_transaction_is_kept(caller: Caller) -> None:
    first = make_snapshot(caller, uuid4())
    again = make_snapshot(caller, first.invocation_id)
    again.pk = first.pk

    with pytest.raises(IntegrityError), transaction.atomic():
        insert_row(first)
        insert_row(again)
        OF_CALL.all(call=first.invocation_id)  # what waits on the connection goes with it

    assert OF_CALL.all(call=first.invocation_id) == []


@pytest.mark.django_db(transaction=True)
def test_within_a_broken_transaction_no_statement_is_run() -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        with pytest.raises(IntegrityError):
            execute_prepared(b"INSERT INTO access_agent (id) VALUES (%s)", [uuid4()])
        fetch_prepared(b"SELECT 1", ())


def test_values_find_their_places_whatever_they_are_written_as(caller: Caller) -> None:
    cast = "::text" if connection.vendor == "postgresql" else ""

    assert fetch_prepared(f"SELECT %s{cast}, '100%%', %s{cast}".encode(), ["a", "%s"]) == [("a", "100%", "%s")]
    assert fetch_prepared(f"SELECT %(b)s{cast}, %(a)s{cast}, %(b)s{cast}".encode(), {"a": "?", "b": ":a"}) == [
        (":a", "?", ":a")
    ]
