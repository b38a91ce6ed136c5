"""Facts of signing in: is each change of how somebody signs in a fact, of every tenant that they belong to?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model

from access import services as access
from access.roles import Role
from evidence.models import Fact
from kernel.principal import Principal
from tests.integration.access.sign_in.test_sign_in import code_for, set_up_app, sign_in
from tests.support.cast_rows import PASSWORD

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Person

pytestmark = pytest.mark.django_db
ANOTHER = "another correct horse battery"


def told(person: Person, **only: Any) -> list[tuple[str, Any]]:
    facts = Fact.objects.filter(kind__startswith="person.", subject=person.by.id, **only).order_by("id")
    return [(fact.kind, json.loads(bytes(fact.leaf))["data"]) for fact in facts]


def change_password(person: Person, to: str = ANOTHER) -> Any:
    client = person.client()
    sign_in(person.user.username, client=client)
    return client.post("/account/password", {"oldpassword": PASSWORD, "password1": to, "password2": to})


@pytest.mark.req("TOOLS-18", "SPEC-10")
def test_a_changed_password_is_a_fact_in_each_tenant_of_the_person(
    operator: Person, tenant: Tenant, foreign_tenant: Tenant
) -> None:
    by = Principal.system("test", tenant_id=foreign_tenant.pk)
    access.give_membership(tenant=foreign_tenant, user=operator.user, role=Role.AUDITOR, invited=True, by=by)

    assert change_password(operator).status_code == 302

    for each in (tenant, foreign_tenant):
        assert told(operator, tenant_id=each.pk) == [("person.password_set", {"how": "changed"})]
    assert not [fact for fact in Fact.objects.all() if ANOTHER.encode() in bytes(fact.leaf)]


@pytest.mark.req("TOOLS-18", "SPEC-10")
def test_second_factors_that_come_and_go_are_facts(operator: Person) -> None:
    client = operator.client()
    sign_in("olivia", client=client)
    secret, codes = set_up_app(client)
    assert client.post("/account/recovery-codes/new").status_code == 302
    assert client.post("/account/app/remove").status_code == 302

    found = [(kind.removeprefix("person.factor_"), data["factor"]) for kind, data in told(operator)]
    assert found[:2] == [("added", "totp"), ("added", "recovery_codes")]
    assert sorted(found[2:4]) == [("added", "recovery_codes"), ("removed", "recovery_codes")]
    assert sorted(found[4:]) == [("removed", "recovery_codes"), ("removed", "totp")]
    leaves = b"".join(bytes(fact.leaf) for fact in Fact.objects.all()).decode()
    assert not [word for word in (secret, *codes, code_for(secret)) if f'"{word}"' in leaves]


@pytest.mark.req("TOOLS-18")
@pytest.mark.unmapped
@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_written_down_is_not_changed(operator: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("access.sign_in.facts.evidence.record", refuse)

    assert change_password(operator).status_code == 500
    assert get_user_model().objects.get(pk=operator.user.pk).check_password(PASSWORD)
