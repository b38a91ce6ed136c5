"""Who may open and do what in the console? Every address, for every role, and for people from elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.urls import reverse
from joserfc.jwk import ECKey

from access import channels, consents, issuers
from access.budgets.services import set_budget
from access.grant_requests import request_grant
from access.models import Consent, Delivery, Grant
from access.roles import ROLE_PERMISSIONS, Role
from evidence.models import Fact
from invocations.models import Invocation
from registry.models import Tool, ToolVersion
from tests.calls import row_of
from tests.conftest import make_caller, make_person
from tests.routes import api_routes, console_routes
from toolhub.kernel.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from tests.calls import Bell
    from tests.conftest import Caller, Person
    from tests.routes import Route

pytestmark = pytest.mark.django_db

NOT_GOVERNED = {"healthz", "readyz"}


@dataclass(frozen=True, slots=True)
class Things:
    """One of everything that an address can name."""

    ids: dict[str, Any]

    def url(self, route: Route) -> str:
        return reverse(route.name, kwargs={name: self.ids[name] for name in route.takes})


@pytest.fixture
def things(
    caller: Caller,
    submit: Callable[..., ToolVersion],
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    operator: Person,
) -> Things:
    """A tool in use, one that waits for its review, a grant, a call and a consent that waits."""
    enable("echo")
    waiting = submit("write", side_effect="Write", idempotency="keyed")
    given = grant("sample.*")
    call = row_of(caller.invoke("sample.tools.echo", {"text": "canary-77"}))
    consent = consents.request_consent(
        tool="sample.tools.write", versions="^1", purpose="to test", validity_s=60, by=caller.by
    )
    asked = request_grant(agent_id=caller.agent.pk, tools="other.*", purpose="to test", by=caller.by)
    fact = Fact.objects.filter(invocation_id=call.pk).first()
    assert fact is not None
    return Things(
        {
            "name": "sample.tools.echo",
            "tool_id": "sample.tools.echo",
            "version_id": waiting.pk,
            "grant_id": given.pk,
            "consent_id": consent.pk,
            "budget_id": set_budget(scope="tenant", dimension="money", amount=10**9, by=operator.by).pk,
            "request_id": asked.pk,
            "invocation_id": call.pk,
            "fact_id": fact.pk,
            "reason": "AUTH.FORBIDDEN",
            **people_things(caller, operator),
        }
    )


def people_things(caller: Caller, operator: Person) -> dict[str, Any]:
    """A key, a person, an identity provider, a channel and a message to it."""
    keys = {"keys": [ECKey.generate_key("P-256").as_dict(private=False)]}
    issuer = issuers.trust_issuer(issuer="https://idp.example.org", audience="hub", jwks=keys, by=operator.by)
    channel, _ = channels.set_notification(
        channel="email", target="ann@example.org", events=["consent.requested"], by=operator.by
    )
    message = Delivery.objects.create(notification=channel, event="consent.requested", subject="cns_1", body={})
    return {
        "agent_id": caller.agent.pk,
        "key_id": caller.by.key_id,
        "user_id": operator.user.pk,
        "issuer_id": issuer.pk,
        "notification_id": channel.pk,
        "delivery_id": message.pk,
    }


def state_of_the_hub() -> list[Any]:
    """Everything that a person can change, to see that nothing did."""
    return [
        list(model.objects.order_by("pk").values()) for model in (Tool, ToolVersion, Grant, Consent, Invocation)
    ] + [Fact.objects.exclude(kind="snapshot.read").count()]


def ask(client: Client, url: str, **headers: str) -> Any:
    """GET; or an empty POST where an address takes nothing else."""
    answer = client.get(url, headers=headers)
    return client.post(url, headers=headers) if answer.status_code == 405 else answer


GOVERNED = [route for route in console_routes() if route.name not in NOT_GOVERNED and route.needs]
PUBLIC = [
    route
    for route in console_routes()
    if route.name not in NOT_GOVERNED and not route.needs and not route.takes
    and not route.path.startswith("account/")  # test_signing_in
]  # fmt: skip
OBJECTS = [route for route in GOVERNED if route.takes]


@pytest.mark.req("CARD-3", "CARD-6")
@pytest.mark.parametrize("role", list(Role))
def test_a_role_opens_what_it_was_given_and_nothing_else(role: Role, tenant: Tenant, things: Things) -> None:
    client = make_person(tenant, "pat", role).client()
    before = state_of_the_hub()

    found = {route.name: ask(client, things.url(route)).status_code for route in GOVERNED}

    allowed = {route.name for route in GOVERNED if route.needs in ROLE_PERMISSIONS[role]}
    assert {name for name, status in found.items() if status != 403} == allowed
    assert {name: found[name] for name in allowed if found[name] not in (200, 422)} == {}  # 422: the empty form
    assert state_of_the_hub() == before  # an empty form changes nothing, whoever sends it


def test_fragments_are_governed_like_pages(things: Things, auditor: Person) -> None:
    client = auditor.client()

    found = {route.name: ask(client, things.url(route), **{"HX-Request": "true"}).status_code for route in GOVERNED}

    forbidden = {route.name for route in GOVERNED if route.needs not in ROLE_PERMISSIONS[Role.AUDITOR]}
    assert {name for name, status in found.items() if status == 403} == forbidden


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_stranger_does_not_find_anything_of_this_tenant(method: str, things: Things, stranger: Person) -> None:
    client = make_person_with_all_roles(stranger)
    before = state_of_the_hub()

    found = {route.name: getattr(client, method)(things.url(route)).status_code for route in OBJECTS}

    assert set(found.values()) <= {404, 405}, found
    assert 404 in found.values()
    assert state_of_the_hub() == before


def make_person_with_all_roles(stranger: Person) -> Client:
    """Somebody to whom every permission was given, but in another tenant."""
    tenant = stranger.user.memberships.get().tenant
    return make_person(tenant, "sue", *Role).client()


VALID_FORMS: dict[str, dict[str, str]] = {
    "grant_revoke": {"reason": "because of a test"},
    "consent_decide": {"decision": "approve", "reason": "because of a test"},
    "tool_enable": {"reason": "because of a test"},
    "tool_pause": {"reason": "because of a test"},
    "tool_deprecate": {"reason": "because of a test", "sunset_on": "2999-01-01", "confirm": "sample.tools.echo"},
    "review_decide": {"decision": "approve", "note": "because of a test"},
    "invocation_values": {"reason": "because of a test"},
    "agent_state": {"reason": "because of a test"},
    "key_rotate": {"overlap_days": "1"},
    "key_revoke": {"reason": "because of a test"},
    "person_roles": {"roles": "auditor", "reason": "because of a test"},
    "person_permissions": {"permission": "evidence.view", "action": "give"},
    "person_link": {"again": "yes"},
    "issuer_distrust": {"reason": "because of a test"},
    "issuer_subject_add": {"subject": "x", "agent": "", "scopes": "tools:read"},
    "issuer_subject_remove": {"identity": "01890000-0000-7000-8000-000000000000"},
    "notification_end": {"reason": "because of a test"},
    "delivery_again": {"again": "yes"},
    "budget_edit": {"amount": "5", "reason": "because of a test"},
    "budget_raise": {"amount": "5", "reason": "because of a test"},
    "budget_end": {"reason": "because of a test"},
}


@pytest.fixture
def posts(things: Things, operator: Person) -> list[Route]:
    return [route for route in OBJECTS if operator.client().get(things.url(route)).status_code == 405]


def test_every_address_that_changes_an_object_has_a_form_in_this_test(posts: list[Route]) -> None:
    assert {route.name for route in posts} == set(VALID_FORMS)


@pytest.mark.req("TOOLS-22")
def test_a_stranger_with_a_valid_form_changes_nothing(things: Things, posts: list[Route], stranger: Person) -> None:
    client = make_person_with_all_roles(stranger)
    before = state_of_the_hub()

    found = {route.name: client.post(things.url(route), VALID_FORMS[route.name]).status_code for route in posts}

    assert set(found.values()) == {404}, found
    assert state_of_the_hub() == before


def test_an_auditor_with_a_valid_form_decides_nothing(things: Things, posts: list[Route], auditor: Person) -> None:
    before = state_of_the_hub()
    client = auditor.client()

    found = {route.name: client.post(things.url(route), VALID_FORMS[route.name]).status_code for route in posts}

    assert found == {route.name: 200 if route.name == "invocation_values" else 403 for route in posts}
    assert state_of_the_hub() == before


def test_an_auditor_sees_no_button_to_decide_with(things: Things, auditor: Person) -> None:
    client = auditor.client()
    for route in OBJECTS:
        answer = client.get(things.url(route))
        if answer.status_code == 200 and route.name != "invocation":
            forms = answer.content.decode().split("<main", 1)[1].split("</main", 1)[0].count('method="post"')
            assert forms == 0, route.name


def test_ids_that_name_nothing_are_not_found(things: Things, operator: Person) -> None:
    client = operator.client()
    nothing = Things({name: new_id() for name in things.ids} | {"name": "sample.tools.nothing", "user_id": 999_999_999})

    found = {route.name: ask(client, nothing.url(route)).status_code for route in OBJECTS}

    expected = {route.name: 404 if route.needs in ROLE_PERMISSIONS[Role.OPERATOR] else 403 for route in OBJECTS}
    assert found == expected


def test_people_who_are_not_signed_in_are_sent_to_the_sign_in(things: Things) -> None:
    client = Client()

    for route in GOVERNED:
        answer = ask(client, things.url(route))
        assert answer.status_code == 302, route.name
        assert answer.headers["Location"].startswith("/sign-in?next="), route.name


def test_a_fragment_for_somebody_who_is_not_signed_in_sends_the_whole_page_to_the_sign_in() -> None:
    answer = Client().get("/invocations", headers={"HX-Request": "true"})

    assert answer.headers["HX-Redirect"].startswith("/sign-in?next=")


def test_somebody_of_no_tenant_sees_nothing(things: Things, django_user_model: Any) -> None:
    client = Client()
    client.force_login(django_user_model.objects.create_superuser(username="root", password="x" * 16))

    for route in GOVERNED:
        assert ask(client, things.url(route)).status_code == 302, route.name


def test_public_pages_need_nobody() -> None:
    found = {route.name: ask(Client(), reverse(route.name)).status_code for route in PUBLIC}

    assert found == {
        "sign_in": 200,
        "sign_out": 302,
        "switch_tenant": 302,
        "theme": 302,
        "set_language": 302,
        "api_reference": 200,
        "oauth_protected_resource": 200,
        "oauth_authorization_server": 200,
    }


def test_an_agents_key_does_not_open_the_console(caller: Caller) -> None:
    answer = Client().get("/invocations", headers=caller.headers())

    assert answer.status_code == 302


# The API: every address by scope, and by tenant.

SCOPED = [route for route in api_routes() if route.api_class is not None and hasattr(route.api_class, "required_scope")]


def scopes_of(route: Route) -> dict[str, str]:
    scope = route.api_class.required_scope
    methods = [method.upper() for method in ("get", "post") if hasattr(route.api_class, method)]
    return {method: scope if isinstance(scope, str) else scope[method] for method in methods}


@pytest.mark.req("TOOLS-15")
def test_a_key_without_the_scope_is_refused_everywhere(things: Things, operator: Person) -> None:
    bare = make_caller(operator.by, "bare", scopes=())
    for route in SCOPED:
        for method, scope in scopes_of(route).items():
            answer = Client().generic(
                method, things.url(route), b"{}", content_type="application/json", headers=bare.headers()
            )
            assert answer.status_code == 403, (route.name, method)
            assert answer.json()["error"]["details"] == {"missing": scope}


@pytest.mark.req("TOOLS-22")
def test_a_foreign_agent_does_not_find_anything_of_this_tenant(things: Things, foreign_caller: Caller) -> None:
    bodies = {
        "api_invoke": {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "arguments": {}},
        "api_preflight": {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "arguments": {}},
        "api_grant_revoke": {"reason": "because of a test"},
    }
    before = state_of_the_hub()

    for route in SCOPED:
        if route.takes:
            for method in scopes_of(route):
                answer = Client().generic(
                    method,
                    things.url(route),
                    json.dumps(bodies.get(route.name, {})),
                    content_type="application/json",
                    headers=foreign_caller.headers(),
                )
                assert answer.status_code == 404, (route.name, method, answer.content)
    assert state_of_the_hub() == before


def test_an_agent_does_not_read_the_calls_and_consents_of_its_neighbour(things: Things, operator: Person) -> None:
    neighbour = make_caller(operator.by, "neighbour")
    for name in ("api_invocation", "api_evidence", "api_consent"):
        route = next(route for route in SCOPED if route.name == name)
        assert Client().get(things.url(route), headers=neighbour.headers()).status_code == 404, name
    assert neighbour.get("/consents").json()["data"]["consents"] == []
