"""Assertion rules: what may a tenant let its identity provider vouch for, who says so, and what ends when it may no more?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import ECKey

from access.clients.services import remove_client
from access.issuers import services as issuers
from access.issuers.assertion_rules import end_assertion_rule, set_assertion_rule
from access.models import AssertionRule, Connection, EnteredClient
from access.roles import AGENT_SCOPES
from access.separation_of_duties import controls_agent
from evidence.models import Fact
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from tests.conftest import make_caller
from tests.support.identity_assertions import (
    ISSUER,
    Enterprise,
    let_vouch,
    reach,
    refused,
    sign_in_with,
    trust,
)

if TYPE_CHECKING:
    from access.models import Tenant, TrustedIssuer
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("CONN-2")
def test_it_is_off_until_somebody_switches_it_on(enterprise: Enterprise, owner: Person) -> None:
    trust(enterprise, by=owner.by)

    assert "may vouch" in refused(enterprise.show())


@pytest.mark.req("CONN-2")
@pytest.mark.parametrize("how", ["ended", "distrusted", "changed", "narrowed", "removed"])
def test_what_was_vouched_for_ends_when_it_may_be_no_more(
    how: str, enterprise: Enterprise, vouching: TrustedIssuer, caller: Caller, owner: Person
) -> None:
    token = enterprise.show().json()["access_token"]
    match how:
        case "ended":
            end_assertion_rule(issuer_id=vouching.pk, by=owner.by)
        case "distrusted":
            issuers.distrust_issuer(issuer_id=vouching.pk, reason="test", by=owner.by)
        case "changed":
            other = ECKey.generate_key("P-256", parameters={"kid": "k1"})
            keys = {"keys": [other.as_dict(private=False)]}
            issuers.change_issuer(issuer_id=vouching.pk, audience="hub", jwks=keys, by=owner.by)
        case "narrowed":
            let_vouch(vouching, caller, by=owner.by, scopes=["invocations:read"])
        case "removed":
            entered = caller.get("/clients").json()["data"]["clients"][0]
            remove_client(client_id=EnteredClient.objects.get().pk, reason="test", by=owner.by)
            assert entered["client_id"] == enterprise.client_id

    assert reach(token) is None
    assert enterprise.show().status_code in (400, 401)
    ended = Connection.objects.get()
    assert ended.end_reason == ("removed" if how == "removed" else "unvouched")
    assert Fact.objects.get(kind="connection.ended", subject=ended.wire_id).content["data"]["why"] == ended.end_reason


@pytest.mark.req("CONN-2")
def test_a_provider_that_is_trusted_again_vouches_again_as_far_as_before(
    enterprise: Enterprise, vouching: TrustedIssuer, owner: Person
) -> None:
    issuers.distrust_issuer(issuer_id=vouching.pk, reason="test", by=owner.by)
    refused(enterprise.show())
    trust(enterprise, by=owner.by)

    assert enterprise.show().status_code == 200


@pytest.mark.req("CONN-2")
def test_only_a_provider_with_which_people_sign_in_may_vouch(
    enterprise: Enterprise, caller: Caller, owner: Person, settings: Any
) -> None:
    trusted = trust(enterprise, by=owner.by)
    settings.SOCIALACCOUNT_PROVIDERS = sign_in_with("https://another.example.org")

    with pytest.raises(Conflict, match="do not sign in"):
        let_vouch(trusted, caller, by=owner.by)
    settings.SOCIALACCOUNT_PROVIDERS = sign_in_with(f"{ISSUER}/.well-known/openid-configuration")
    let_vouch(trusted, caller, by=owner.by)
    assert enterprise.show().status_code == 200
    settings.SOCIALACCOUNT_PROVIDERS = {}  # afterwards it is known of nobody whom it means
    assert enterprise.show().status_code == 400


@pytest.mark.req("CONN-2")
@pytest.mark.parametrize(
    "wrong", [{"scopes": []}, {"scopes": ["agents:manage"]}, {"token_minutes": 0}, {"token_minutes": 61}, {"tools": []}]
)
def test_a_rule_that_means_nothing_or_too_much_is_refused(
    wrong: dict[str, Any], enterprise: Enterprise, caller: Caller, owner: Person
) -> None:
    with pytest.raises(SchemaInvalid):
        let_vouch(trust(enterprise, by=owner.by), caller, by=owner.by, **wrong)
    assert not AssertionRule.objects.exists()


@pytest.mark.req("CONN-2")
def test_who_says_for_which_agent_it_may_vouch_manages_the_agent_and_stands_behind_it(
    enterprise: Enterprise, caller: Caller, owner: Person, operator: Person, tenant: Tenant
) -> None:
    trusted = trust(enterprise, by=owner.by)
    platform = make_caller(owner.by, "platform", ("tools:read", "issuers:manage"))

    with pytest.raises(Forbidden, match="agents:manage"):
        set_assertion_rule(
            issuer_id=trusted.pk,
            agent_id=caller.agent.pk,
            scopes=["tools:read"],
            tools=None,
            token_minutes=5,
            by=platform.by,
        )
    other = make_caller(operator.by, "other")
    assert not controls_agent(owner.by.id, other.agent.pk)
    let_vouch(trusted, other, by=owner.by)
    assert controls_agent(owner.by.id, other.agent.pk)


@pytest.mark.req("CONN-2")
def test_who_changes_the_keys_of_a_provider_that_vouches_manages_the_agent(
    enterprise: Enterprise, vouching: TrustedIssuer, owner: Person
) -> None:
    platform = make_caller(owner.by, "platform", (*AGENT_SCOPES, "issuers:manage"))
    keys = {"keys": [ECKey.generate_key("P-256").as_dict(private=False)]}

    with pytest.raises(Forbidden, match="agents:manage"):
        issuers.change_issuer(issuer_id=vouching.pk, audience="hub", jwks=keys, by=platform.by)


@pytest.mark.req("CONN-2")
def test_it_is_switched_on_and_off_over_rest(
    enterprise: Enterprise, caller: Caller, owner: Person, tenant: Tenant
) -> None:
    keeper = make_caller(owner.by, "keeper", (*AGENT_SCOPES, "issuers:manage", "agents:manage"))
    path = f"/issuers/{trust(enterprise, by=owner.by).wire_id}"
    rule = {"agent": caller.agent.wire_id, "scopes": ["tools:read"], "tools": ["sample.tools.echo"], "token_minutes": 5}

    before = keeper.get(path).json()["data"]["assertion_rule"]
    made = keeper.post(f"{path}/assertions", rule)
    ended = keeper.post(f"{path}/assertions/end", {})

    assert before is None
    assert (made.status_code, made.json()["data"]["assertion_rule"]) == (200, rule)
    assert (ended.status_code, ended.json()["data"]["assertion_rule"]) == (200, None)
    assert keeper.post(f"{path}/assertions/end", {}).status_code == 409
    kinds = Fact.objects.filter(kind__startswith="assertion_rule.").order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["assertion_rule.set", "assertion_rule.ended"]


@pytest.mark.req("CONN-2")
def test_it_is_switched_on_and_off_in_the_console(
    enterprise: Enterprise, caller: Caller, owner: Person, operator: Person
) -> None:
    trusted, browser = trust(enterprise, by=owner.by), owner.client()
    page = f"/issuers/{trusted.wire_id}"
    form = {
        "rule-agent": str(caller.agent.pk),
        "rule-scopes": ["tools:read"],
        "rule-tools": "",
        "rule-token_minutes": "5",
    }

    offered = browser.get(page).content.decode()
    wrong = browser.post(f"{page}/assertions", form | {"rule-token_minutes": "999"})
    set_now = browser.post(f"{page}/assertions", form, follow=True).content.decode()
    got = enterprise.show()
    listed = operator.client().get("/connections").content.decode()
    ended = browser.post(f"{page}/assertions/end", {}, follow=True).content.decode()

    assert "Let it vouch for its people" in offered
    assert wrong.status_code == 422
    assert "Their programs act as" in set_now
    assert (got.status_code, got.json()["scope"], got.json()["expires_in"]) == (200, "tools:read", 300)
    assert ISSUER in listed
    assert "Their programs act as" not in ended
    assert Connection.objects.get().end_reason == "unvouched"


@pytest.mark.req("CONN-2")
def test_a_provider_with_which_nobody_signs_in_is_offered_nothing(
    enterprise: Enterprise, owner: Person, settings: Any
) -> None:
    settings.SOCIALACCOUNT_PROVIDERS = {}

    page = owner.client().get(f"/issuers/{trust(enterprise, by=owner.by).wire_id}").content.decode()

    assert "cannot vouch for them" in page
    assert "Let it vouch for its people" not in page
