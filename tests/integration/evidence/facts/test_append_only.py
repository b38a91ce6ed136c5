"""Append-only tables: does the database keep facts and the log as they are, also when nobody asks the ORM?"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.core import serializers
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from evidence import services as evidence
from evidence.append_only import triggers_for
from evidence.kinds import Kind
from evidence.models import AppendOnlyError, Checkpoint, Fact, LogKey, Pending, Seal, Tile
from kernel.database import rows
from kernel.database.triggers import missing_triggers
from kernel.principal import Principal
from tests.support.append_only_triggers import rewritable

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell

FULL = bytes(range(256)) * 32

ANYWHERE = [
    "UPDATE evidence_fact SET outcome = 'x'",
    "UPDATE evidence_fact SET leaf = leaf",
    "DELETE FROM evidence_fact",
    "INSERT INTO evidence_fact SELECT * FROM evidence_fact WHERE true ON CONFLICT (id) DO UPDATE SET outcome = 'x'",
    "UPDATE evidence_seal SET leaf_index = leaf_index + 1",
    "DELETE FROM evidence_seal",
    "UPDATE evidence_checkpoint SET size = 9",
    "UPDATE evidence_checkpoint SET root = (SELECT leaf_hash FROM evidence_fact LIMIT 1)",
    "UPDATE evidence_checkpoint SET id = id + 1",
    "UPDATE evidence_checkpoint SET created_at = '2001-01-01 00:00:00+00:00'",
    "UPDATE evidence_checkpoint SET global_index = 8",
    "UPDATE evidence_checkpoint SET global_index = NULL",
    "DELETE FROM evidence_checkpoint",
    "UPDATE evidence_tile SET n = 9",
    "DELETE FROM evidence_tile",
    "UPDATE evidence_logkey SET name = 'x'",
    "DELETE FROM evidence_logkey",
    "UPDATE evidence_pending SET tenant_id = fact_id",
]
ON_POSTGRESQL = [
    "TRUNCATE evidence_fact CASCADE",
    "TRUNCATE evidence_seal",
    "TRUNCATE evidence_checkpoint",
    "TRUNCATE evidence_tile",
    "TRUNCATE evidence_pending",
    "UPDATE evidence_tile SET hashes = overlay(hashes placing '\\x00'::bytea from 2)",
    "UPDATE evidence_tile SET hashes = substr(hashes, 1, 32)",
    "SET session_replication_role = replica; UPDATE evidence_fact SET outcome = 'x'",
    "SET session_replication_role = replica; DELETE FROM evidence_fact",
    "SET session_replication_role = replica; TRUNCATE evidence_fact CASCADE",
    "WITH gone AS (DELETE FROM evidence_fact RETURNING 1) SELECT 1",
    "MERGE INTO evidence_fact f USING evidence_fact o ON f.id = o.id WHEN MATCHED THEN UPDATE SET outcome = 'x'",
]
_COLUMNS = (
    "tenant_id, kind, subject, invocation_id, occurred_at, actor_kind, actor_id, tool, "
    "outcome, reason, trace_id, leaf, leaf_hash"
)
ON_SQLITE = [
    "UPDATE OR REPLACE evidence_fact SET outcome = 'x'",
    "UPDATE OR IGNORE evidence_fact SET outcome = 'x'",
    "INSERT OR REPLACE INTO evidence_fact SELECT * FROM evidence_fact",
    "REPLACE INTO evidence_fact SELECT * FROM evidence_fact",
    f"INSERT OR REPLACE INTO evidence_fact (id, {_COLUMNS}) SELECT 'another', {_COLUMNS} FROM evidence_fact WHERE kind LIKE '%.began'",
    f"INSERT OR REPLACE INTO evidence_fact (rowid, id, {_COLUMNS}) SELECT rowid, 'another', {_COLUMNS} FROM evidence_fact "
    "WHERE kind NOT LIKE '%.began' AND kind NOT LIKE '%.ended'",
    "INSERT OR REPLACE INTO evidence_seal SELECT * FROM evidence_seal",
    "INSERT OR REPLACE INTO evidence_seal SELECT 'another', tenant_id, leaf_index FROM evidence_seal",
    "INSERT OR REPLACE INTO evidence_seal (rowid, fact_id, tenant_id, leaf_index) SELECT rowid, 'x', 'y', 5 FROM evidence_seal",
    "INSERT OR REPLACE INTO evidence_checkpoint (tenant_id, size, root, note, created_at) "
    "SELECT tenant_id, size, zeroblob(32), note, created_at FROM evidence_checkpoint",
    "INSERT OR REPLACE INTO evidence_checkpoint (id, tenant_id, size, root, note, created_at) "
    "SELECT id, 'y', size, root, note, created_at FROM evidence_checkpoint",
    "INSERT OR REPLACE INTO evidence_tile (tenant_id, level, n, hashes) SELECT tenant_id, level, n, zeroblob(8192) FROM evidence_tile",
    "INSERT OR REPLACE INTO evidence_pending SELECT fact_id, 'y' FROM evidence_pending",
    "UPDATE evidence_tile SET hashes = substr(hashes, 1, 32)",
    # An UPDATE that replaces: the row changes in what it may, and takes the place of another one, which goes.
    "UPDATE OR REPLACE evidence_tile SET rowid = (SELECT max(rowid) FROM evidence_tile) "
    "WHERE rowid = (SELECT min(rowid) FROM evidence_tile)",
    "UPDATE OR REPLACE evidence_logkey SET rowid = (SELECT max(rowid) FROM evidence_logkey) "
    "WHERE rowid = (SELECT min(rowid) FROM evidence_logkey)",
    "UPDATE OR REPLACE evidence_checkpoint SET id = (SELECT max(id) FROM evidence_checkpoint) "
    "WHERE id = (SELECT min(id) FROM evidence_checkpoint)",
    "UPDATE OR REPLACE evidence_checkpoint SET global_index = 3 WHERE global_index IS NULL",
]

# Tries each statement on a connection of its own and says what came of it.
ATTACKER = """
import json, sys
vendor, where, statements = json.load(sys.stdin)
if vendor == "sqlite":
    import sqlite3 as driver
    connect = lambda: driver.connect(where, isolation_level=None, timeout=30)
else:
    import psycopg as driver
    connect = lambda: driver.connect(where, autocommit=True)
for statement in statements:
    connection = connect()
    try:
        connection.execute(statement)
        print(json.dumps("DONE"))
    except driver.Error as error:
        print(json.dumps(str(error)))
    connection.close()
"""


def where() -> str:
    """The database of the tests, as another process reaches it."""
    told = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(told["NAME"])
    return (
        f"host={told['HOST']} port={told['PORT']} dbname={told['NAME']} user={told['USER']} password={told['PASSWORD']}"
    )


def from_outside(statements: list[str], at: str = "") -> dict[str, str]:
    given = json.dumps([connection.vendor, at or where(), statements])
    done = subprocess.run([sys.executable, "-c", ATTACKER], input=given, capture_output=True, text=True, check=True)
    return dict(zip(statements, map(json.loads, done.stdout.splitlines()), strict=True))


def everything() -> dict[str, Any]:
    return {
        model.__name__: sorted(map(repr, model._default_manager.values_list()))
        for model in (Fact, Seal, Checkpoint, Tile, LogKey, Pending)
    }


def write(tenant: Tenant) -> Fact:
    with transaction.atomic():
        return evidence.record(
            kind=Kind.TOOL_PAUSED, subject="soul:tool:a.b.c", actor=Principal.system("test", tenant_id=tenant.pk)
        )


@pytest.fixture
def sealed(tenant: Tenant) -> Fact:
    """A fact that is in the log, with a full tile, a checkpoint and a key."""
    fact, now = write(tenant), timezone.now()
    Seal(fact=fact, tenant_id=tenant.pk, leaf_index=0).save()
    Tile(tenant_id=tenant.pk, level=0, n=0, hashes=FULL).save()
    Checkpoint(tenant_id=tenant.pk, size=1, root=FULL[:32], note="signed", created_at=now, global_index=3).save()
    Checkpoint(tenant_id=tenant.pk, size=2, root=FULL[:32], note="signed", created_at=now).save()
    Tile(tenant_id=tenant.pk, level=0, n=2, hashes=FULL[:32]).save()
    for name in ("first", "second"):
        LogKey(name=name, public=FULL[:32], clock=FULL[:32], added_at=now).save()
    return fact


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_nobody_with_the_rights_of_the_owner_rewrites_evidence_from_outside(
    sealed: Fact, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    assert caller.invoke("sample.tools.echo", {"text": "x"}).status_code == 200  # a Begin and an End
    before = everything()

    found = from_outside([*ANYWHERE, *(ON_SQLITE if connection.vendor == "sqlite" else ON_POSTGRESQL)])

    assert {each: said for each, said in found.items() if "append-only" not in said} == {}
    assert everything() == before


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_the_log_grows_and_is_signed_again(sealed: Fact, tenant: Tenant) -> None:
    Tile(tenant_id=tenant.pk, level=0, n=1, hashes=FULL[:32]).save()

    Tile.objects.filter(n=1).update(hashes=FULL[:96])
    Tile.objects.bulk_create(
        [Tile(tenant_id=tenant.pk, level=0, n=1, hashes=FULL[:128])],
        update_conflicts=True,
        unique_fields=["tenant_id", "level", "n"],
        update_fields=["hashes"],
    )
    Checkpoint.objects.update(note="signed again")
    LogKey.objects.update(retired_at=timezone.now())
    gone, _ = Pending.objects.filter(pk=sealed.pk).delete()

    assert (bytes(Tile.objects.get(n=1).hashes), gone) == (FULL[:128], 1)


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db
def test_no_way_of_the_orm_changes_a_fact(tenant: Tenant) -> None:
    fact = write(tenant)
    (copied,) = serializers.deserialize("json", serializers.serialize("json", [fact]))
    attempts: list[Callable[[], Any]] = [
        lambda: Fact._base_manager.update(outcome="x"),
        lambda: Fact._base_manager.all().delete(),
        lambda: Fact.objects.all()._raw_delete("default"),
        lambda: Fact.objects.bulk_create(
            [fact], update_conflicts=True, unique_fields=["id"], update_fields=["outcome"]
        ),
        lambda: Fact.objects.update_or_create(pk=fact.pk, defaults={"outcome": "x"}),
        lambda: fact.save(update_fields=["outcome"]),
        lambda: Fact(pk=fact.pk, tenant_id=tenant.pk, occurred_at=fact.occurred_at).save(),
        lambda: rows.update_rows(Fact, {"id": fact.pk}, {"outcome": "x"}),
        lambda: rows.update_rows_later(Fact, {"id": fact.pk}, {"outcome": "x"}),
        lambda: rows.delete_rows_later(Fact, {"id": fact.pk}),
        lambda: Seal.objects.update(leaf_index=1),
        copied.save,
    ]
    for attempt in attempts:
        with pytest.raises((AppendOnlyError, DatabaseError)), transaction.atomic():
            attempt()

    assert (Fact.objects.get(pk=fact.pk).outcome, Fact.objects.filter(pk=fact.pk).count()) == ("", 1)


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_what_keeps_evidence_is_missed_when_it_is_gone(tenant: Tenant) -> None:
    wanted = triggers_for(connection.vendor)
    fact = write(tenant)

    with rewritable():
        missing = missing_triggers(connection, wanted)
        assert set(from_outside(["UPDATE evidence_fact SET outcome = 'x'"]).values()) == {"DONE"}

    assert (len(missing), missing_triggers(connection, wanted)) == (len(wanted), [])
    assert Fact.objects.get(pk=fact.pk).outcome == "x"  # against that there is the log


def comments() -> str:
    """What takes the comments of all triggers away, as a dump without them does; nothing where there are none."""
    if connection.vendor != "postgresql":
        return "SELECT 1"
    return """DO $$ DECLARE it record; BEGIN FOR it IN SELECT tgname, tgrelid::regclass AS of FROM pg_trigger
        WHERE starts_with(tgname, 'toolhub_') LOOP EXECUTE format('COMMENT ON TRIGGER %I ON %s IS NULL', it.tgname, it.of);
        END LOOP; END $$"""


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db
def test_what_keeps_evidence_is_there_after_a_dump_without_comments() -> None:
    with connection.cursor() as cursor:
        cursor.execute(comments())

    assert missing_triggers(connection, triggers_for(connection.vendor)) == []
