"""Issuers API: how are identity providers and notification channels managed with a key, and how far does such a key reach?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from joserfc.jwk import ECKey

from access.issuers import services as issuers
from access.members import services as members
from access.middleware import principal_of_user
from access.models import AgentIdentity, Delivery, Notification, TrustedIssuer
from access.notifications import channels
from access.roles import SCOPE_NEEDS, SCOPES, Role
from access.separation_of_duties import controls_agent
from access.services import create_key
from evidence.models import Fact
from kernel.principal import Principal
from kernel.problems import Forbidden
from tests.conftest import make_caller, make_person
from tests.support.calls import assert_problem
from tests.support.populated_tenant import JWKS

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
REASON = {"reason": "because of a test"}
TRUST = {"issuer": "https://idp.example.org", "audience": "hub", "jwks": JWKS}
WEBHOOK: dict[str, Any] = {
    "channel": "webhook",
    "target": "https://hooks.example.org/x",
    "events": ["halt.thrown", "consent.requested"],
}


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


@pytest.fixture
def platform(tenant: Tenant) -> Caller:
    """A program that says whose tokens count, manages no agents, and may itself see tools."""
    return make_caller(Principal.system("test", tenant_id=tenant.pk), "platform", ("tools:read", "issuers:manage"))


@pytest.fixture
def teller(tenant: Tenant) -> Caller:
    return make_caller(Principal.system("test", tenant_id=tenant.pk), "teller", ("notifications:manage",))


def pointers(answer: Any) -> list[str]:
    found = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")["error"]["details"]["findings"]
    return [finding["pointer"] for finding in found]


# Identity providers.


@pytest.mark.req("TOOLS-15")
def test_an_issuer_is_trusted_read_changed_distrusted_and_trusted_again(platform: Caller) -> None:
    made = platform.post("/issuers", TRUST)
    data = made.json()["data"]
    path = f"/issuers/{data['id']}"
    assert (made.status_code, data["state"], data["created_by"]) == (201, "trusted", platform.by.id)
    assert platform.get("/issuers").json()["data"] == {"issuers": [data], "next": None}
    assert platform.get(path).json()["data"] == data

    moved = platform.put(path, {"audience": "hub-2", "jwks_url": "https://idp.example.org/jwks"}).json()["data"]
    assert (moved["audience"], moved["jwks_url"], moved["jwks"]) == ("hub-2", "https://idp.example.org/jwks", None)
    assert platform.post(f"{path}/distrust", REASON).json()["data"]["state"] == "distrusted"
    assert_problem(platform.put(path, {"audience": "hub", "jwks": JWKS}), 409, "STATE.CONFLICT")
    again = platform.post("/issuers", TRUST).json()["data"]

    assert (again["id"], again["state"]) == (data["id"], "trusted")
    assert_problem(platform.post("/issuers", TRUST), 409, "STATE.CONFLICT")
    kinds = Fact.objects.filter(subject=data["id"]).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["issuer.trusted", "issuer.changed", "issuer.distrusted", "issuer.trusted"]


@pytest.mark.req("TOOLS-21")
def test_no_answer_holds_a_private_key(platform: Caller) -> None:
    private = ECKey.generate_key("P-256").as_dict(private=True)
    platform.post("/issuers", TRUST | {"jwks": {"keys": [*JWKS["keys"], private]}})

    text = platform.get("/issuers").content.decode()

    assert JWKS["keys"][0]["x"] in text
    assert private["d"] not in text


@pytest.mark.req("TOOLS-15")
def test_a_subject_is_mapped_listed_and_removed(platform: Caller) -> None:
    path = f"/issuers/{platform.post('/issuers', TRUST).json()['data']['id']}/subjects"
    body = {"subject": "svc/1", "agent": platform.agent.wire_id, "scopes": ["tools:read"]}

    made = platform.post(path, body)
    row = made.json()["data"]

    assert (made.status_code, row["agent"], row["scopes"]) == (201, platform.agent.wire_id, ["tools:read"])
    assert platform.get(path).json()["data"] == {"subjects": [row], "next": None}
    assert_problem(platform.post(path, body), 409, "STATE.CONFLICT")
    assert platform.post(f"{path}/{row['id']}/remove", {}).status_code == 204
    assert_problem(platform.post(f"{path}/{row['id']}/remove", {}), 404, "RESOURCE.NOT_FOUND")
    assert not AgentIdentity.objects.exists()


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"issuer": "idp"}, "/issuer"),
        ({"jwks_url": "https://idp.example.org/jwks"}, "/jwks_url"),
        ({"jwks": None}, "/jwks_url"),
        ({"jwks": None, "jwks_url": "http://127.0.0.1/jwks"}, "/jwks_url"),
        ({"jwks": {"keys": []}}, "/jwks"),
        ({"jwks": "text"}, "/jwks"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_an_issuer_that_cannot_be_is_refused_by_its_field(
    change: dict[str, Any], pointer: str, platform: Caller
) -> None:
    assert pointer in pointers(platform.post("/issuers", TRUST | change))
    assert not TrustedIssuer.objects.exists()


@pytest.mark.req("TOOLS-15", "TOOLS-22")
def test_subjects_speak_for_agents_of_the_tenant_only(
    platform: Caller, foreign_caller: Caller, stranger: Person
) -> None:
    path = f"/issuers/{platform.post('/issuers', TRUST).json()['data']['id']}/subjects"
    theirs = issuers.trust_issuer(issuer="https://their.example.org", audience="x", jwks=JWKS, by=stranger.by)
    body = {"subject": "svc", "agent": foreign_caller.agent.wire_id, "scopes": []}

    assert_problem(platform.post(path, body), 404, "RESOURCE.NOT_FOUND")
    assert_problem(platform.post(path, body | {"agent": "agt_7"}), 404, "RESOURCE.NOT_FOUND")
    assert "/scopes/0" in pointers(platform.post(path, body | {"scopes": ["tools:everything"]}))
    assert_problem(platform.get(f"/issuers/{theirs.wire_id}/subjects"), 404, "RESOURCE.NOT_FOUND")


@pytest.mark.req("TOOLS-15")
def test_a_mapping_is_removed_at_its_own_issuer_only(platform: Caller) -> None:
    paths = [
        f"/issuers/{platform.post('/issuers', TRUST | {'audience': name, 'issuer': f'https://{name}.example.org'}).json()['data']['id']}"
        for name in ("one", "two")
    ]
    body = {"subject": "svc", "agent": platform.agent.wire_id, "scopes": []}
    row = platform.post(f"{paths[0]}/subjects", body).json()["data"]

    assert_problem(platform.post(f"{paths[1]}/subjects/{row['id']}/remove", {}), 404, "RESOURCE.NOT_FOUND")
    assert AgentIdentity.objects.exists()


# How far such a key reaches.


@pytest.mark.req("TOOLS-15")
def test_an_agent_maps_no_more_scopes_than_its_key_carries(platform: Caller) -> None:
    path = f"/issuers/{platform.post('/issuers', TRUST).json()['data']['id']}/subjects"
    body = {"subject": "svc", "agent": platform.agent.wire_id, "scopes": ["grants:manage"]}

    refused = assert_problem(platform.post(path, body), 403, "AUTH.FORBIDDEN")

    assert refused["error"]["details"] == {"missing": "grants:manage"}
    assert not AgentIdentity.objects.exists()


@pytest.mark.req("TOOLS-15")
def test_whoever_changes_the_keys_of_an_issuer_holds_what_its_subjects_have(
    platform: Caller, caller: Caller, owner: Person
) -> None:
    row = issuers.trust_issuer(issuer="https://idp.example.org", audience="hub", jwks=JWKS, by=owner.by)
    issuers.map_identity(
        issuer_id=row.pk, subject="svc", agent_id=caller.agent.pk, scopes=["grants:manage"], by=owner.by
    )
    mine = {"keys": [ECKey.generate_key("P-256").as_dict(private=False)]}

    answer = platform.put(f"/issuers/{row.wire_id}", {"audience": "hub", "jwks": mine})
    assert assert_problem(answer, 403, "AUTH.FORBIDDEN")["error"]["details"] == {"missing": "grants:manage"}
    assert platform.post(f"/issuers/{row.wire_id}/distrust", REASON).status_code == 200
    assert_problem(platform.post("/issuers", TRUST | {"jwks": mine}), 403, "AUTH.FORBIDDEN")  # nor by trusting again

    row.refresh_from_db()
    assert (row.jwks, row.disabled_at is not None) == (JWKS, True)
    assert issuers.trust_issuer(issuer=row.issuer, audience="hub", jwks=mine, by=owner.by).disabled_at is None


@pytest.mark.req("TOOLS-15")
def test_a_person_who_may_not_give_grants_takes_over_no_subject_that_does(
    caller: Caller, owner: Person, operator: Person
) -> None:
    row = issuers.trust_issuer(issuer="https://idp.example.org", audience="hub", jwks=JWKS, by=owner.by)
    issuers.map_identity(
        issuer_id=row.pk, subject="svc", agent_id=caller.agent.pk, scopes=["issuers:manage"], by=owner.by
    )

    with pytest.raises(Forbidden, match=r"issuers\.manage"):
        issuers.change_issuer(issuer_id=row.pk, audience="hub", jwks=JWKS, by=operator.by)


def refuses(answer: Any) -> Any:
    return assert_problem(answer, 403, "AUTH.FORBIDDEN")["error"]["details"]["missing"]


@pytest.mark.req("TOOLS-15")
def test_a_key_lets_a_subject_speak_for_another_agent_only_if_it_manages_agents(
    tenant: Tenant, platform: Caller, caller: Caller
) -> None:
    path = f"/issuers/{platform.post('/issuers', TRUST).json()['data']['id']}/subjects"
    manager = make_caller(Principal.system("test", tenant_id=tenant.pk), "manager", ("issuers:manage", "agents:manage"))
    body = {"subject": "svc", "agent": caller.agent.wire_id, "scopes": []}

    assert refuses(platform.post(path, body)) == "agents:manage"
    assert not AgentIdentity.objects.exists()
    assert platform.post(path, body | {"subject": "me", "agent": platform.agent.wire_id}).status_code == 201
    assert manager.post(path, body).status_code == 201


@pytest.mark.req("TOOLS-15")
def test_a_key_changes_no_keys_that_speak_for_another_agent_unless_it_manages_agents(
    platform: Caller, caller: Caller, owner: Person
) -> None:
    row = issuers.trust_issuer(issuer="https://idp.example.org", audience="hub", jwks=JWKS, by=owner.by)
    issuers.map_identity(issuer_id=row.pk, subject="me", agent_id=platform.agent.pk, scopes=[], by=owner.by)
    path, change = f"/issuers/{row.wire_id}", {"audience": "other", "jwks": JWKS}
    assert platform.put(path, change).status_code == 200

    issuers.map_identity(issuer_id=row.pk, subject="svc", agent_id=caller.agent.pk, scopes=[], by=owner.by)

    assert refuses(platform.put(path, change)) == "agents:manage"
    assert platform.post(f"{path}/distrust", REASON).status_code == 200
    assert refuses(platform.post("/issuers", TRUST)) == "agents:manage"  # nor by trusting it again


@pytest.mark.req("TOOLS-15")
def test_a_person_lets_a_subject_speak_for_the_agents_that_they_manage(
    caller: Caller, platform: Caller, owner: Person, auditor: Person, tenant: Tenant
) -> None:
    row = issuers.trust_issuer(issuer="https://idp.example.org", audience="hub", jwks=JWKS, by=owner.by)
    user_id = auditor.user.pk
    members.give_permission(user_id=user_id, permission="issuers.manage", by=owner.by)
    members.give_permission(user_id=user_id, permission="agents.manage", on=caller.agent, by=owner.by)
    by = principal_of_user(get_user_model().objects.get(pk=user_id), tenant)

    with pytest.raises(Forbidden, match=r"agents\.manage"):
        issuers.map_identity(issuer_id=row.pk, subject="svc", agent_id=platform.agent.pk, scopes=[], by=by)
    issuers.map_identity(issuer_id=row.pk, subject="svc", agent_id=caller.agent.pk, scopes=[], by=by)
    issuers.change_issuer(issuer_id=row.pk, audience="other", jwks=JWKS, by=by)

    issuers.map_identity(issuer_id=row.pk, subject="other", agent_id=platform.agent.pk, scopes=[], by=owner.by)
    with pytest.raises(Forbidden, match=r"agents\.manage"):
        issuers.change_issuer(issuer_id=row.pk, audience="hub", jwks=JWKS, by=by)


@pytest.mark.req("TOOLS-15")
def test_who_made_the_key_stands_behind_what_it_trusts(owner: Person, caller: Caller, tenant: Tenant) -> None:
    agent = make_caller(Principal.system("test", tenant_id=tenant.pk), "maker").agent
    _, text = create_key(agent=agent, scopes=["issuers:manage", "agents:manage"], by=owner.by)
    robot = type(caller)(agent, text, caller.by)
    path = f"/issuers/{robot.post('/issuers', TRUST).json()['data']['id']}/subjects"
    assert not controls_agent(owner.by.id, caller.agent.pk)

    robot.post(path, {"subject": "svc", "agent": caller.agent.wire_id, "scopes": []})

    assert controls_agent(owner.by.id, caller.agent.pk)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("scope", ["members:read", "issuers:manage", "notifications:manage"])
def test_a_person_gives_the_scope_only_if_they_may_do_it_themselves(
    scope: str, caller: Caller, owner: Person, developer: Person
) -> None:
    assert SCOPE_NEEDS[scope] == scope.replace(":", ".").replace("read", "view")
    assert set(SCOPE_NEEDS) <= set(SCOPES)

    with pytest.raises(Forbidden):
        create_key(agent=caller.agent, scopes=[scope], by=developer.by)
    assert create_key(agent=caller.agent, scopes=[scope], by=owner.by)[0].scopes == [scope]


# Channels.


@pytest.mark.req("CONN-6")
def test_a_webhook_is_set_up_answers_its_secret_once_is_changed_and_ended(teller: Caller) -> None:
    made = teller.post("/channels", WEBHOOK)
    data = made.json()["data"]
    secret, path = data.pop("secret"), f"/channels/{data['id']}"

    assert (made.status_code, made.headers["Cache-Control"], secret[:6]) == (201, "no-store", "whsec_")
    assert made.headers["Location"] == f"/api/v1{path}"
    assert data["events"] == ["consent.requested", "halt.thrown"]
    assert teller.get("/channels").json()["data"] == {"channels": [data], "next": None}
    changed = teller.patch(path, {"events": ["review.waiting"]})
    ended = teller.post(f"{path}/end", REASON)
    assert (changed.json()["data"]["events"], ended.json()["data"]["state"]) == (["review.waiting"], "ended")
    assert teller.get(path).json()["data"] == ended.json()["data"]
    for answer in (teller.patch(path, {"events": ["review.waiting"]}), teller.post(f"{path}/end", REASON)):
        assert_problem(answer, 409, "STATE.CONFLICT")
    shown = [answer.content.decode() for answer in (changed, ended, teller.get(path), teller.get("/channels"))]
    assert not any(secret in text for text in shown)
    assert not any(secret.encode() in bytes(fact.leaf) for fact in Fact.objects.all())


@pytest.mark.req("CONN-6")
def test_a_mail_channel_has_no_secret(teller: Caller) -> None:
    body = {"channel": "email", "target": "ops@example.org", "events": ["halt.thrown"]}

    assert teller.post("/channels", body).json()["data"]["secret"] is None


@pytest.mark.req("CONN-6")
@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"channel": "pigeon"}, "/channel"),
        ({"target": "http://127.0.0.1/x"}, "/target"),
        ({"channel": "email"}, "/target"),
        ({"events": []}, "/events"),
        ({"events": ["rain"]}, "/events/0"),
        ({"secret": "mine"}, "/secret"),
    ],
)
def test_a_channel_that_cannot_be_is_refused_by_its_field(change: dict[str, Any], pointer: str, teller: Caller) -> None:
    assert pointer in pointers(teller.post("/channels", WEBHOOK | change))
    assert not Notification.objects.exists()


@pytest.mark.req("CONN-6")
def test_messages_say_what_became_of_them_and_are_sent_again(teller: Caller, owner: Person) -> None:
    channel, _ = channels.set_notification(by=owner.by, **WEBHOOK)
    made = {"notification": channel, "event": "halt.thrown", "subject": "hlt_1", "body": {}}
    then = datetime(2999, 1, 1, tzinfo=UTC)
    for outcome in ({}, {"delivered_at": then}, {"next_attempt_at": then, "attempts": 2, "last_error": "No answer"}):
        Delivery.objects.create(**made, **outcome)

    path = f"/channels/{channel.wire_id}/deliveries"
    listed = teller.get(path).json()["data"]["deliveries"]

    assert [row["state"] for row in listed] == ["waiting", "delivered", "given up"]
    assert (listed[0]["attempts"], listed[0]["last_error"], listed[0]["subject"]) == (2, "No answer", "hlt_1")
    again = teller.post(f"/deliveries/{listed[2]['id']}/again", {}).json()["data"]
    assert (again["state"], again["attempts"]) == ("waiting", 0)
    channels.end_notification(notification_id=channel.pk, by=owner.by)
    assert_problem(teller.post(f"/deliveries/{listed[2]['id']}/again", {}), 409, "STATE.CONFLICT")


@pytest.mark.req("TOOLS-22")
def test_channels_and_messages_of_others_are_not_found(teller: Caller, stranger: Person) -> None:
    channel, _ = channels.set_notification(by=stranger.by, **WEBHOOK)
    row = Delivery.objects.create(notification=channel, event="halt.thrown", subject="hlt_1", body={})

    for answer in (
        teller.get(f"/channels/{channel.wire_id}"),
        teller.get(f"/channels/{channel.wire_id}/deliveries"),
        teller.patch(f"/channels/{channel.wire_id}", {"events": ["halt.thrown"]}),
        teller.post(f"/channels/{channel.wire_id}/end", REASON),
        teller.post(f"/deliveries/{row.wire_id}/again", {}),
    ):
        assert_problem(answer, 404, "RESOURCE.NOT_FOUND")


@pytest.mark.req("TOOLS-15")
def test_a_key_without_the_scope_is_refused(platform: Caller, teller: Caller) -> None:
    for who, path, scope in ((teller, "/issuers", "issuers:manage"), (platform, "/channels", "notifications:manage")):
        assert who.get(path).json()["error"]["details"] == {"missing": scope}
