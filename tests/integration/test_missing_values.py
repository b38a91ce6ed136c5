"""Is a stored value that somebody took away past the hub found, and what went by an erasure or by retention not?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from access.roles import Role
from evidence.checking.alarms import alarms_of
from evidence.checking.running import advance_next, begin_passes, verify_whole
from evidence.models import Log, Retention, Snapshot, Verification
from evidence.retention import apply_retention
from tests.calls import row_of
from tests.conftest import make_person
from tests.erasures import forget
from tests.logs import seal_everything, signing_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.models import Tenant
    from invocations.models import Invocation
    from registry.models import Tool
    from tests.calls import Bell
    from tests.conftest import Caller

ANN = "user-ann-4711"
pytestmark = [pytest.mark.django_db, pytest.mark.req("TOOLS-18", "CARD-6")]


@pytest.fixture(autouse=True)
def keys() -> Iterator[Any]:
    with signing_with() as found:
        yield found


@pytest.fixture
def calls(enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, bell: Bell) -> list[Invocation]:
    enable()
    grant()
    return [row_of(caller.invoke("sample.tools.echo", {"text": f"x{n}"})) for n in range(4)]


def found_in(calls: list[Invocation]) -> list[tuple[str, str]]:
    seal_everything()
    found = list(verify_whole(Log.objects.get(pk=calls[0].tenant_id)))
    return [(str(each.code), each.detail) for each in found]


def test_values_that_were_deleted_past_the_hub_are_found_and_counted(calls: list[Invocation], capsys: Any) -> None:
    assert found_in(calls) == []
    rows = Snapshot.objects.filter(tenant_id=calls[0].tenant_id)
    gone = {row.wire_id for row in rows}
    assert len(gone) >= 8
    rows.delete()

    found = found_in(calls)

    assert {code for code, _ in found} == {"commitment.missing"}
    assert {detail for _, detail in found} == gone
    with pytest.raises(SystemExit):
        call_command("verify_log")
    assert f"{len(gone)} findings" in capsys.readouterr().out
    begin_passes()
    while advance_next():
        pass
    assert Verification.objects.get(tenant_id=calls[0].tenant_id).found == len(gone)
    assert [each.kind for each in alarms_of(calls[0].tenant_id)] == ["damaged"]


def test_what_retention_took_is_no_finding_and_what_it_did_not_take_is(calls: list[Invocation]) -> None:
    retention = Retention.objects.create(tenant_id=calls[0].tenant_id, name="outputs", days=0)
    assert apply_retention(retention=retention) == len(calls)
    assert found_in(calls) == []
    gone = Snapshot.objects.filter(invocation_id=calls[0].pk, kind="input")
    [wire_id] = [row.wire_id for row in gone]
    gone.delete()

    assert found_in(calls) == [("commitment.missing", wire_id)]


def test_what_an_erasure_took_is_no_finding_and_what_is_another_person_s_is(
    calls: list[Invocation], caller: Caller, tenant: Tenant
) -> None:
    owner = make_person(tenant, "oona", Role.OWNER)
    theirs = [row_of(caller.invoke("sample.tools.echo", {"text": "y"}, user_id=ANN)) for _ in range(2)]
    assert forget(ANN, by=owner.by).state == "done"
    assert not Snapshot.objects.filter(invocation_id__in=[call.pk for call in theirs]).exists()
    assert found_in(calls) == []
    Snapshot.objects.filter(invocation_id=calls[1].pk, kind="output").delete()

    assert [code for code, _ in found_in(calls)] == ["commitment.missing"]
