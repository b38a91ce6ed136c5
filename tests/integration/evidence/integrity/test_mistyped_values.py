"""Mistyped values: is a value of another type than its column has named at its place, and does it keep nobody from reading the
rest?

SQLite lets any column hold any type. PostgreSQL refuses the write, so these tests run on SQLite alone.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError, connection, models, transaction
from django.utils import timezone

from evidence.exports.jobs import advance_next as advance_exports
from evidence.exports.services import make_export
from evidence.integrity import verifier as integrity_verifier
from evidence.integrity.alarms import list_alarms
from evidence.integrity.loop import Verifier
from evidence.integrity.verifier import advance_next, begin_passes, verify_whole
from evidence.log import sealer
from evidence.log.tree import LogDamaged
from evidence.models import Checkpoint, Fact, Log, LogKey, Seal, Snapshot, Tile, Verification
from evidence.problems import KeyUnavailable
from evidence.search.indexer import index_tenant
from kernel.ids import encode
from kernel.loops import Rest
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.parameters import try_one_in
from tests.support.raw_database import sql, take_down_triggers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.unpaired]
BAD, ALSO_BAD = 11, 30
COLUMNS = [
    *("kind", "subject", "actor_kind", "actor_id", "tool", "outcome", "reason", "trace_id"),
    *("occurred_at", "leaf", "leaf_hash", "tenant_id"),
]
OTHER = {
    "text": "CAST({column} AS TEXT)",
    "bytes": "CAST({column} AS BLOB)",
    "a number": "5",
    "a fraction": "2.5",
    "a word": "'never'",
}
THEIRS = {"leaf": "bytes", "leaf_hash": "bytes"}  # what the others hold is text


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, settings: Any) -> Iterator[Any]:
    settings.TOOLHUB_KEPT_CHECKPOINT_FILE = tmp_path / "kept"
    with signing_with() as found:
        yield found


@pytest.fixture
def log(tenant: Tenant) -> Log:
    take_down_triggers()
    write_facts(tenant.pk, 40)
    seal_everything()
    return Log.objects.get(pk=tenant.pk)


@contextmanager
def refused_or_not() -> Iterator[None]:
    """Also by SQLite, where a column takes no NULL."""
    with suppress(DatabaseError), transaction.atomic():
        yield


def put(column: str, value: str, index: int = BAD) -> bool:
    """``value`` into a column of a fact; whether the database took it."""
    fact_id = Seal.objects.get(tenant_id=Log.objects.get(origin__contains="ten_").pk, leaf_index=index).fact_id
    with refused_or_not():
        sql(f"UPDATE evidence_fact SET {column} = {value.format(column=column)} WHERE id = %s", fact_id)
        return True
    return False


@pytest.mark.req("CARD-6", "TOOLS-18")
@pytest.mark.parametrize(
    ("column", "other"),
    try_one_in(3, [(name, other) for name in COLUMNS for other in OTHER if other != THEIRS.get(name, "text")]),
)
def test_a_value_of_another_type_is_a_finding_at_its_leaf_and_the_rest_is_read(
    column: str, other: str, log: Log, auditor: Person, caller: Caller
) -> None:
    if not put(column, OTHER[other]):
        return  # a column that takes no NULL, or an index: nothing was changed, so nothing is there to be found
    put("subject", "'x'", ALSO_BAD)

    found = list(verify_whole(log))

    assert {finding.index for finding in found} <= {BAD, ALSO_BAD, None}
    assert ALSO_BAD in {finding.index for finding in found}
    assert BAD in {finding.index for finding in found}
    index_tenant(log.pk)
    client = auditor.client()
    for path in ("/evidence", "/evidence?view=timeline", "/evidence?q=kind:tool.paused", "/evidence/integrity"):
        assert client.get(path).status_code == 200, path
    id = encode("fct", Seal.objects.get(tenant_id=log.pk, leaf_index=BAD).fact_id)
    if column != "tenant_id":  # of another tenant, or of none: nobody of this one reads it
        page = client.get(f"/evidence/{id}")
        assert page.status_code == 200
        assert b"This fact was changed." in page.content
        assert client.get(f"/evidence/{id}/proof").status_code == 200
        assert caller.get(f"/evidence/facts/{id}/proof").status_code == 200
    assert caller.get("/evidence/facts?limit=100").status_code == 200
    assert caller.get("/evidence/log/checkpoint").status_code == 200
    assert caller.get("/evidence/log/tile/entries/000.p/40").status_code == 200


PLACES = {"tenant_id", "level", "n", "id", "name"}  # say which row it is: of another it is the one that is missing
AS_LONG_AS_A_KEY = "'these are thirty-two letters, not'"
BESIDE = [
    (model, field.column)
    for model in (Tile, Checkpoint, Log, LogKey, Snapshot)
    for field in model._meta.concrete_fields
    if field.column not in PLACES
]


def types_in(model: type[models.Model], column: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT DISTINCT typeof({column}) FROM {model._meta.db_table}")
        return {found for (found,) in cursor.fetchall()} - {"null"}


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(("model", "column"), BESIDE, ids=[f"{model.__name__} {column}" for model, column in BESIDE])
@pytest.mark.parametrize("value", ["CAST({column} AS TEXT)", "CAST({column} AS BLOB)", AS_LONG_AS_A_KEY])
def test_a_value_of_another_type_beside_the_facts_is_named_with_its_column(
    model: type[models.Model], column: str, value: str, log: Log
) -> None:
    write_facts(log.pk, 1, reason="so that there is a stored value")
    seal_everything()
    right = types_in(model, column) or {"text"}
    taken = False
    with refused_or_not():
        sql(f"UPDATE {model._meta.db_table} SET {column} = {value.format(column=column)}")
        taken = True
    if not taken:
        return  # as above
    begin_passes()
    while advance_next():
        pass

    found = [each for row in Verification.objects.all() for each in row.findings]
    named = {each["detail"].rpartition(": ")[2] for each in found if each["code"] in ("row.type", "checkpoint.type")}
    if types_in(model, column) - right:
        assert column in named or column == "size", found  # of another size, it is the one of this size that is missing
        assert found
    elif "CAST" in value:
        assert found == []


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("value", ["CAST(leaf AS TEXT)", "5", "NULL"])
def test_the_continuous_verifier_names_the_leaf_and_goes_on(value: str, log: Log) -> None:
    taken = put("leaf", value)
    put("subject", "'x'", ALSO_BAD)
    begin_passes()
    while advance_next():
        pass

    row = Verification.objects.get(tenant_id=log.pk)
    assert (row.position, row.tries) == (log.size, 0)
    assert row.first_bad == (BAD if taken else ALSO_BAD)


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("format", ["bundle", "jsonl", "csv"])
@pytest.mark.parametrize("value", ["CAST(leaf AS TEXT)", "5"])
def test_exports_are_made_of_what_is_there(value: str, format: str, log: Log, auditor: Person) -> None:
    put("leaf", value)
    job = make_export(format=format, stop=log.size, by=auditor.by)
    while advance_exports():
        pass

    job.refresh_from_db()
    assert job.state == "done"


@pytest.mark.req("CARD-6", "TOOLS-18")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE evidence_checkpoint SET note = CAST(note AS BLOB)",
        "UPDATE evidence_checkpoint SET root = 'x'",
        "UPDATE evidence_checkpoint SET size = 'many'",
        "UPDATE evidence_checkpoint SET created_at = 5",
        "UPDATE evidence_tile SET hashes = 'x'",
        "UPDATE evidence_tile SET n = 'x'",
        "UPDATE evidence_log SET frontier = 'x'",
        "UPDATE evidence_logkey SET public = 'x'",
        "UPDATE evidence_seal SET leaf_index = 'x' WHERE leaf_index = 11",
        "UPDATE evidence_seal SET fact_id = 5 WHERE leaf_index = 11",
        "UPDATE evidence_fact SET id = 5 WHERE id IN (SELECT fact_id FROM evidence_seal WHERE leaf_index = 11)",
    ],
)
def test_rows_beside_the_facts_are_named_too_and_pages_open(statement: str, log: Log, auditor: Person) -> None:
    taken = False
    with refused_or_not():
        sql(statement)
        taken = True

    found = list(verify_whole(log))

    assert bool(found) == taken
    with suppress(LogDamaged, KeyUnavailable):
        sealer.seal_pending()
    for path in ("/evidence", "/evidence/integrity", "/"):
        assert auditor.client().get(path).status_code == 200, path


class Broken(Exception):
    """What nobody thought of."""


@pytest.mark.req("TOOLS-18")
def test_a_verifier_that_cannot_go_on_is_an_alarm_after_three_tries_and_holds_up_no_other_log(
    log: Log, monkeypatch: pytest.MonkeyPatch, stranger: Person
) -> None:
    write_facts(stranger.by.tenant_id, 5)
    seal_everything()
    piece = integrity_verifier._piece

    def breaks(walk: Any, stop: int, archive: Any) -> Any:
        if walk.tenant_id == log.pk:
            raise Broken
        return piece(walk, stop, archive)

    monkeypatch.setattr(integrity_verifier, "_piece", breaks)
    verifier = Verifier()
    for tries in range(4):
        assert [each.kind for each in list_alarms(log.pk)] == (["stuck"] if tries == 3 else [])
        Verification.objects.update(lease_until=None)
        for _ in range(5):
            with suppress(Broken):
                assert isinstance(verifier.piece(), Rest | None)
    [alarm] = list_alarms(log.pk)
    assert "leaf 0" in alarm.said
    assert "Broken" in alarm.said
    assert list_alarms(stranger.by.tenant_id) == []
    assert Verification.objects.get(tenant_id=stranger.by.tenant_id).position == 7

    monkeypatch.setattr(integrity_verifier, "_piece", piece)
    Verification.objects.update(lease_until=None)
    while verifier.piece():
        pass
    assert list_alarms(log.pk) == []


@pytest.mark.req("TOOLS-18")
def test_a_keeper_that_dies_over_a_log_each_time_is_an_alarm_too(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_passes()
    monkeypatch.setattr(
        integrity_verifier, "advance_verification", lambda _: None
    )  # it never came back to say how it went
    for _ in range(4):
        Verification.objects.exclude(tenant_id=log.pk).delete()
        assert list_alarms(log.pk) == []
        advance_next()
        Verification.objects.update(lease_until=timezone.now() - timedelta(seconds=1))

    assert [each.kind for each in list_alarms(log.pk)] == ["stuck"]
    assert Fact.objects.filter(tenant_id=log.pk).count() == log.size
