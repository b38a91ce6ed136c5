"""Shared logs: is a database that was put back seen by whoever it concerns, at once, everywhere the docs promise?

The log of checkpoints and the hub's own log are no tenant's; what is wrong with them concerns the evidence of all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from access.middleware import principal_of_user
from access.models import Delivery, Notification
from access.notifications.evidence_alarms import EVENT, notify_alarms
from access.roles import HUB_OWNERS, Role
from evidence.integrity.alarms import find_damaged, list_alarms
from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.integrity.loop import Verifier
from evidence.integrity.services import ask_verification
from evidence.integrity.verifier import advance_next, note_findings
from evidence.models import GLOBAL_LOG, Log, Verification
from invocations.metrics import hub_gauges
from kernel.database.tenancy import NO_TENANT
from kernel.problems import Forbidden
from tests.conftest import Person, make_person
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.raw_database import copy_of_everything, put_back, sql, take_down_triggers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from access.models import Tenant
    from tests.conftest import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.unpaired]
TITLE = "The log does not verify: the log of checkpoints, which all tenants share"


@pytest.fixture(autouse=True)
def keys() -> Iterator[Any]:
    with signing_with() as found:
        yield found


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, settings: Any) -> Path:
    settings.TOOLHUB_KEPT_CHECKPOINT_FILE = tmp_path / "kept"
    return tmp_path / "kept"


@pytest.fixture
def hub_owner(tenant: Tenant) -> Person:
    """Who manages the hub, and may see no evidence of the tenant that they act in."""
    person = make_person(tenant, "hanna", Role.DEVELOPER)
    person.user.groups.add(Group.objects.get_or_create(name=HUB_OWNERS)[0])
    return Person(person.user, principal_of_user(get_user_model().objects.get(pk=person.user.pk), tenant))


@pytest.fixture
def put_back_database(tenant: Tenant) -> None:
    """The keeper has kept a checkpoint that this database does not continue any more."""
    take_down_triggers()
    write_facts(tenant.pk, 20)
    seal_everything()
    older = copy_of_everything()
    write_facts(tenant.pk, 5)
    seal_everything()
    Verifier().piece()
    Verification.objects.all().delete()  # they are in the database that is put back
    put_back(older)
    assert list_alarms(tenant.pk) == []


def failing() -> float:
    """What the documented alert asks for."""
    [seen] = hub_gauges._verification_failures(None)  # type: ignore[arg-type]
    return float(seen.value)


def go_on() -> None:
    Verification.objects.update(lease_until=None)
    while advance_next():
        pass


@pytest.mark.req("CARD-6", "TOOLS-18")
def test_a_database_that_was_put_back_is_seen_in_each_place_at_once(
    put_back_database: None,
    tenant: Tenant,
    auditor: Person,
    developer: Person,
    stranger: Person,
    hub_owner: Person,
    caller: Caller,
) -> None:
    for each in (auditor, stranger):
        Notification.objects.create(
            tenant_id=each.by.tenant_id, channel="email", target="a@example.org", events=[EVENT], created_by="usr_x"
        )
    assert failing() == 0

    Verifier().piece()

    [row] = find_damaged(GLOBAL_LOG)
    assert row.state == "running"
    assert failing() == 1
    for person in (auditor, stranger, hub_owner):  # of another tenant, too
        for path in ("/", f"/evidence/integrity/{row.wire_id}"):
            page = person.client().get(path)
            assert page.status_code == 200
            assert (TITLE if path == "/" else "log.rolled_back") in page.content.decode()
    for person in (auditor, stranger):
        assert TITLE in person.client().get("/evidence/integrity").content.decode()
    assert TITLE not in developer.client().get("/").content.decode()
    assert developer.client().get(f"/evidence/integrity/{row.wire_id}").status_code == 403
    [alarm] = caller.get("/evidence/integrity").json()["data"]["alarms"]
    assert (alarm["kind"], alarm["log"], alarm["verification"]) == ("damaged", "checkpoints", row.wire_id)
    assert caller.get(f"/evidence/verifications/{row.wire_id}").json()["data"]["found"] == 1
    assert (notify_alarms(), notify_alarms()) == (2, 0)
    assert Delivery.objects.filter(event=EVENT, subject=f"{row.wire_id} log.rolled_back").count() == 2


@pytest.mark.req("TOOLS-18")
def test_who_manages_the_hub_has_the_log_of_checkpoints_verified_and_only_then_the_alarm_ends(
    put_back_database: None, auditor: Person, hub_owner: Person, kept: Path
) -> None:
    Verifier().piece()
    with pytest.raises(Forbidden):
        ask_verification(name="checkpoints", by=auditor.by)

    again = ask_verification(name="checkpoints", by=hub_owner.by)
    go_on()
    again.refresh_from_db()
    assert (again.state, again.findings[0]["code"]) == (
        "failed",
        "log.rolled_back",
    )  # the tree is whole; the file says more

    kept.rename(kept.with_name("proof"))  # they have kept it as the proof of what is missing
    assert list_alarms(auditor.by.tenant_id) != []
    ask_verification(name="checkpoints", by=hub_owner.by)
    go_on()
    assert list_alarms(auditor.by.tenant_id) == []
    assert failing() == 0
    assert "does not verify" not in hub_owner.client().get("/").content.decode()


@pytest.mark.req("CARD-6")
def test_the_form_offers_the_shared_logs_to_those_who_manage_the_hub(tenant: Tenant, auditor: Person) -> None:
    write_facts(tenant.pk, 3)
    seal_everything()
    assert 'name="name"' not in auditor.client().get("/evidence/integrity").content.decode()
    asked = {"start": "0", "stop": "", "name": "checkpoints"}
    auditor.client().post("/evidence/integrity/verify", asked)
    assert not Verification.objects.filter(tenant_id=GLOBAL_LOG).exclude(asked_by="").exists()
    auditor.user.groups.add(Group.objects.get_or_create(name=HUB_OWNERS)[0])
    client = auditor.client()
    assert 'name="name"' in client.get("/evidence/integrity").content.decode()

    answer = client.post("/evidence/integrity/verify", asked)

    row = Verification.objects.exclude(asked_by="").get(tenant_id=GLOBAL_LOG)
    assert answer.headers["Location"] == f"/evidence/integrity/{row.wire_id}"
    go_on()
    row.refresh_from_db()
    assert row.state == "passed"
    assert "the log of checkpoints, which all tenants share" in client.get(answer.headers["Location"]).content.decode()


@pytest.mark.req("TOOLS-18", "TOOLS-22")
def test_the_hub_s_own_log_concerns_all_too_and_its_facts_are_shown_to_no_tenant(
    tenant: Tenant, auditor: Person
) -> None:
    write_facts(tenant.pk, 3)
    seal_everything()
    Verifier().piece()
    note_findings(NO_TENANT, [IntegrityFinding(FindingCode.FACT_COLUMNS, 0, "subject")])

    [alarm] = list_alarms(tenant.pk)
    assert alarm.title == "The log does not verify: the hub's own log"
    assert alarm.verification is not None
    page = auditor.client().get(f"/evidence/integrity/{alarm.verification.wire_id}").content.decode()
    assert "fact.columns" in page
    assert "/evidence/fct_" not in page


@pytest.mark.req("TOOLS-18")
def test_one_keeper_that_stands_still_is_one_alarm(tenant: Tenant) -> None:
    write_facts(tenant.pk, 3)
    seal_everything()
    sql("UPDATE evidence_log SET signed_at = %s", "2026-01-01 00:00:00+00:00")
    assert [(each.kind, each.log) for each in list_alarms(tenant.pk)] == [("not_signed", tenant.pk)]
    Log.objects.filter(pk=tenant.pk).update(signed_at=None)

    assert [(each.kind, each.log) for each in list_alarms(tenant.pk)] == [("not_signed", GLOBAL_LOG)]
