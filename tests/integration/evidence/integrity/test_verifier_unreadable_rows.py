"""Unreadable rows: does the verifier go on over what cannot be read at all, and name it?

Somebody with all rights over the database can write what no hub writes: the verifier must not stumble over it, for then it would
find nothing else any more.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from evidence.integrity.alarms import list_alarms
from evidence.integrity.services import ask_verification
from evidence.integrity.verifier import advance_next, begin_passes, verify_whole
from evidence.models import Checkpoint, Fact, Log, Seal, Snapshot, Verification
from kernel.ids import new_id
from tests.support.calls import row_of
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.raw_database import sql, take_down_triggers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.models import Tenant
    from evidence.log.signers.base import CheckpointSigner
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
BAD, ALSO_BAD = 11, 30
NEVER = "infinity" if connection.vendor == "postgresql" else "2026-13-45 00:00:00"
BEYOND = b'{"data":{"commit":"sha256:00","snapshot":"snp_zzzzzzzzzzzzzzzzzzzzzzzzzz"}}'
COMMITS = json.dumps({"data": {"commit": "sha256:00", "snapshot": "no id"}}).encode()


@pytest.fixture(autouse=True)
def keys() -> Iterator[CheckpointSigner]:
    with signing_with() as found:
        yield found


def at(tenant_id: Any, index: int) -> Fact:
    found: Fact = Seal.objects.get(tenant_id=tenant_id, leaf_index=index).fact
    return found


@pytest.mark.req("TOOLS-18")
@pytest.mark.unpaired
@pytest.mark.parametrize(
    ("column", "value"),
    [("leaf", b"[" * 100_000), ("leaf", COMMITS), ("leaf", BEYOND), ("leaf", b"\xff\x00"), ("occurred_at", NEVER)],
    ids=["nested without end", "a commitment to nothing", "an id beyond all ids", "no text", "a time that never comes"],
)
def test_what_cannot_be_read_is_named_and_what_is_behind_it_is_verified(
    column: str, value: Any, tenant: Tenant
) -> None:
    take_down_triggers()
    write_facts(tenant.pk, 40)
    seal_everything()
    bad, also = at(tenant.pk, BAD), at(tenant.pk, ALSO_BAD)
    sql("UPDATE evidence_fact SET kind = 'invocation.began', invocation_id = %s WHERE id = %s", new_id(), bad.pk)
    sql(f"UPDATE evidence_fact SET {column} = %s WHERE id = %s", value, bad.pk)
    sql("UPDATE evidence_fact SET subject = 'x' WHERE id = %s", also.pk)

    found = {finding.index for finding in verify_whole(Log.objects.get(pk=tenant.pk))}

    assert {BAD, ALSO_BAD} <= found
    assert min(index for index in found if index is not None) == BAD


@pytest.mark.req("TOOLS-18")
def test_a_checkpoint_of_a_time_that_never_comes_stops_nobody(tenant: Tenant) -> None:
    take_down_triggers()
    write_facts(tenant.pk, 20)
    seal_everything()
    sql("UPDATE evidence_checkpoint SET created_at = %s", NEVER)
    sql("UPDATE evidence_fact SET subject = 'x' WHERE id = %s", at(tenant.pk, BAD).pk)

    assert [finding.index for finding in verify_whole(Log.objects.get(pk=tenant.pk))] == [BAD]
    assert Checkpoint.objects.count() > 0


@pytest.mark.req("TOOLS-18")
def test_stored_values_that_were_changed_are_found(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, bell: Bell
) -> None:
    enable()
    grant()
    call = row_of(caller.invoke("sample.tools.echo", {"text": "x"}))
    seal_everything()
    log = Log.objects.get(pk=call.tenant_id)
    assert list(verify_whole(log)) == []
    row = Snapshot.objects.filter(invocation_id=call.pk, kind="input").get()
    changed = bytes(row.ciphertext)
    sql("UPDATE evidence_snapshot SET ciphertext = %s WHERE id = %s", bytes([changed[0] ^ 1]) + changed[1:], row.pk)

    assert {str(finding.code) for finding in verify_whole(log)} == {"commitment.wrong"}


@pytest.mark.req("TOOLS-18")
def test_a_stored_value_that_was_found_changed_is_asked_for_again_before_that_is_closed(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    caller: Caller,
    bell: Bell,
    auditor: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable()
    grant()
    call = row_of(caller.invoke("sample.tools.echo", {"text": "x"}))
    seal_everything()
    row = Snapshot.objects.filter(invocation_id=call.pk, kind="input").get()
    kept = bytes(row.ciphertext)
    sql("UPDATE evidence_snapshot SET ciphertext = %s WHERE id = %s", bytes([kept[0] ^ 1]) + kept[1:], row.pk)
    look(auditor)
    monkeypatch.setattr(random, "sample", lambda *_: [])  # by chance none of the values that were changed

    assert look(auditor).state == "failed"
    assert [each.kind for each in list_alarms(call.tenant_id)] == ["damaged"]
    Verification.objects.filter(found__gt=0).update(found=1000)  # of those that are not listed any may be it
    Verification.objects.filter(found__gt=0).update(findings=[{"code": "commitment.wrong", "index": 0, "detail": ""}])
    assert look(auditor).state == "failed"
    sql("UPDATE evidence_snapshot SET ciphertext = %s WHERE id = %s", kept, row.pk)
    assert look(auditor).state == "passed"
    assert list_alarms(call.tenant_id) == []


def look(auditor: Person) -> Verification:
    """All of the log, as a person has it looked at."""
    asked = ask_verification(by=auditor.by)
    begin_passes()
    while advance_next():
        pass
    asked.refresh_from_db()
    return asked
