"""People: how do people come, get roles, and go; and what do the pages about people, agents and providers do?"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from guardian.shortcuts import get_perms

from access.members import invitations
from access.members import services as members
from access.members.held_permissions import read_held_permissions
from access.middleware import principal_of_user
from access.models import Agent, ApiKey, Delivery, Membership, Notification, Tenant, TrustedIssuer
from access.policies import services as policies
from access.policies.pages import BUILTIN_RULES
from access.problems import LastOwner, SelfApproval
from access.roles import Role
from evidence.models import Fact
from kernel.http.pagination import PAGE_SIZE
from kernel.ids import encode_user
from kernel.principal import Principal
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from tests.conftest import make_person

if TYPE_CHECKING:
    from django.test import Client

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
REASON = {"reason": "because of a test"}


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


@pytest.fixture
def hub_owner(owner: Person, tenant: Tenant) -> Client:
    members.make_hub_owner(user=owner.user, by=Principal.system("test", tenant_id=tenant.pk))
    return owner.client()


def allowed(user: Any, tenant: Tenant) -> frozenset[str]:
    return principal_of_user(get_user_model().objects.get(pk=user.pk), tenant).allowed


# Roles.


@pytest.mark.parametrize("roles", [(), *((role,) for role in Role), tuple(Role)], ids=str)
def test_the_people_of_the_tests_may_do_what_the_hub_says_that_they_may(
    roles: tuple[Role, ...], tenant: Tenant
) -> None:
    person = make_person(tenant, "pat", *roles)

    assert person.by == principal_of_user(get_user_model().objects.get(pk=person.user.pk), tenant)


@pytest.mark.parametrize("is_superuser", [False, True])
@pytest.mark.parametrize("is_active", [True, False])
def test_a_person_holds_what_guardian_says_and_there_alone(
    is_active: bool, is_superuser: bool, owner: Person, operator: Person, tenant: Tenant, foreign_tenant: Tenant
) -> None:
    members.give_permission(user_id=operator.user.pk, permission="evidence.reveal", by=owner.by)
    get_user_model().objects.filter(pk=operator.user.pk).update(is_active=is_active, is_superuser=is_superuser)
    person = get_user_model().objects.get(pk=operator.user.pk)

    held = {place.slug: read_held_permissions(person, place) for place in (tenant, foreign_tenant)}

    assert held == {place.slug: frozenset(get_perms(person, place)) for place in (tenant, foreign_tenant)}
    assert ("evidence.reveal" in held[tenant.slug]) is is_active
    assert bool(held[foreign_tenant.slug]) is (is_active and is_superuser)


def test_the_last_owner_stays(owner: Person, tenant: Tenant) -> None:
    second = make_person(tenant, "olga", Role.OWNER)
    members.end_membership(user_id=owner.user.pk, role=Role.OWNER, by=second.by)

    with pytest.raises(LastOwner):
        members.end_membership(
            user_id=second.user.pk, role=Role.OWNER, by=Principal.system("test", tenant_id=tenant.pk)
        )


def test_nobody_gives_themselves_a_role_or_takes_one_back(owner: Person, tenant: Tenant) -> None:
    make_person(tenant, "olga", Role.OWNER)

    with pytest.raises(SelfApproval):
        members.give_membership(tenant=tenant, user=owner.user, role=Role.AUDITOR, by=owner.by)
    with pytest.raises(SelfApproval):
        members.end_membership(user_id=owner.user.pk, role=Role.OWNER, by=owner.by)
    with pytest.raises(SelfApproval):
        members.give_permission(user_id=owner.user.pk, permission="evidence.reveal", by=owner.by)


def test_only_owners_make_owners_and_give_single_permissions(
    owner: Person, operator: Person, auditor: Person, tenant: Tenant
) -> None:
    members.give_permission(user_id=operator.user.pk, permission="members.manage", by=owner.by)
    by = principal_of_user(get_user_model().objects.get(pk=operator.user.pk), tenant)
    assert by.may("members.manage")

    members.give_membership(tenant=tenant, user=auditor.user, role=Role.REVIEWER, by=by)
    for change in (
        lambda: members.give_membership(tenant=tenant, user=auditor.user, role=Role.OWNER, by=by),
        lambda: members.end_membership(user_id=owner.user.pk, role=Role.OWNER, by=by),
        lambda: members.give_permission(user_id=auditor.user.pk, permission="halts.throw", by=by),
    ):
        with pytest.raises(Forbidden):
            change()


def test_a_role_that_is_taken_back_stops_counting_and_with_the_last_one_the_person_leaves(
    owner: Person, operator: Person, tenant: Tenant
) -> None:
    members.give_permission(user_id=operator.user.pk, permission="evidence.reveal", by=owner.by)
    assert "evidence.reveal" in allowed(operator.user, tenant)
    client = operator.client()
    assert client.get("/grants").status_code == 200

    members.end_membership(user_id=operator.user.pk, role=Role.OPERATOR, by=owner.by)

    assert allowed(operator.user, tenant) == frozenset()
    assert client.get("/grants").status_code == 302
    kinds = set(Fact.objects.filter(subject=encode_user(operator.user.pk)).values_list("kind", flat=True))
    assert kinds == {"membership.given", "permission.given", "membership.ended", "permission.taken"}


def test_a_single_permission_is_given_once_and_taken_back(owner: Person, auditor: Person, tenant: Tenant) -> None:
    members.give_permission(user_id=auditor.user.pk, permission="halts.throw", by=owner.by)
    with pytest.raises(Conflict):
        members.give_permission(user_id=auditor.user.pk, permission="halts.throw", by=owner.by)
    with pytest.raises(SchemaInvalid):
        members.give_permission(user_id=auditor.user.pk, permission="everything", by=owner.by)

    members.take_permission(user_id=auditor.user.pk, permission="halts.throw", by=owner.by)

    assert "halts.throw" not in allowed(auditor.user, tenant)
    with pytest.raises(Conflict):
        members.take_permission(user_id=auditor.user.pk, permission="halts.throw", by=owner.by)


def test_people_of_another_tenant_are_not_found(owner: Person, stranger: Person) -> None:
    for change in (
        lambda: members.end_membership(user_id=stranger.user.pk, role=Role.OPERATOR, by=owner.by),
        lambda: members.give_permission(user_id=stranger.user.pk, permission="halts.throw", by=owner.by),
        lambda: invitations.invite_again(user_id=stranger.user.pk, by=owner.by),
    ):
        with pytest.raises(Membership.DoesNotExist):
            change()


# Pages.


def test_an_agent_is_made_gets_a_key_that_is_shown_once_and_loses_it(owner: Person) -> None:
    client = owner.client()
    client.post("/agents/new", {"name": "assistant"})
    agent = Agent.objects.get(name="assistant")
    here = f"/agents/{agent.wire_id}"
    form = {"name": "tests", "scopes": ["tools:read"], "days": "30", "networks": "127.0.0.0/8, 10.0.0.0/8"}
    shown = client.post(f"{here}/keys/new", form)

    text = re.search(r"hub_live_\w+", shown.content.decode())
    assert text
    assert shown.headers["Cache-Control"] == "no-store"
    assert text[0] not in client.get(here).content.decode()
    key = ApiKey.objects.get()
    assert (key.networks, key.scopes, key.name) == (["10.0.0.0/8", "127.0.0.0/8"], ["tools:read"], "tests")
    rotated = client.post(f"/keys/{key.wire_id}/rotate", {"overlap_days": "2"})
    assert "hub_live_" in rotated.content.decode()
    assert client.post(f"/keys/{key.wire_id}/revoke", REASON).status_code == 302
    assert client.post(f"{here}/state", REASON).status_code == 302
    assert Agent.objects.get().disabled_at is not None


@pytest.mark.parametrize(
    "form",
    [
        {"scopes": [], "days": "30"},
        {"scopes": ["tools:read"], "days": "0"},
        {"scopes": ["tools:read"], "days": "30", "networks": "nowhere"},
    ],
)
def test_a_form_that_was_not_accepted_keeps_what_was_typed(form: dict[str, Any], caller: Caller, owner: Person) -> None:
    answer = owner.client().post(f"/agents/{caller.agent.wire_id}/keys/new", form | {"name": "kept words"})

    assert answer.status_code == 422
    assert "kept words" in answer.content.decode()
    assert ApiKey.objects.count() == 1


def test_roles_are_changed_on_the_persons_page(owner: Person, operator: Person, tenant: Tenant) -> None:
    page = f"/people/usr_{operator.user.pk}"

    owner.client().post(f"{page}/roles", {"roles": ["auditor", "reviewer"]} | REASON)
    owner.client().post(f"{page}/permissions", {"permission": "halts.throw", "action": "give"})

    held = set(Membership.objects.filter(user=operator.user).values_list("role", flat=True))
    assert held == {"auditor", "reviewer"}
    assert "halts.throw" in allowed(operator.user, tenant)
    shown = owner.client().get(page).content.decode()
    assert "because of a test" in shown
    own = owner.client().post(f"/people/usr_{owner.user.pk}/roles", {"roles": ["auditor"]} | REASON)
    assert own.status_code == 422
    assert "You cannot change your own roles" in own.content.decode()


def test_a_provider_is_trusted_mapped_and_distrusted_on_its_pages(owner: Person, caller: Caller) -> None:
    client = owner.client()
    form = {"issuer": "https://idp.example.org", "audience": "hub", "jwks_url": "https://idp.example.org/jwks"}
    assert client.post("/issuers/new", form | {"jwks": "{"}).status_code == 422
    client.post("/issuers/new", form)
    row = TrustedIssuer.objects.get()
    here = f"/issuers/{row.wire_id}"
    assert client.get(here).status_code == 200

    subject = {"subject": "svc-1", "agent": str(caller.agent.pk), "scopes": ["tools:read"]}
    assert client.post(f"{here}/subjects", subject).status_code == 302
    assert client.post(f"{here}/subjects", subject).status_code == 422  # speaks for an agent already
    client.post(f"{here}/subjects/remove", {"identity": str(row.identities.get().pk)})
    assert not row.identities.exists()
    client.post(f"{here}/distrust", REASON)
    row.refresh_from_db()
    assert row.disabled_at is not None
    client.post(f"{here}/edit", {"audience": "hub", "jwks_url": "https://idp.example.org/other"})
    changed = TrustedIssuer.objects.get()
    assert (changed.disabled_at, changed.jwks_url) == (None, "https://idp.example.org/other")


def test_a_channel_is_set_up_shows_its_secret_once_and_its_messages(owner: Person) -> None:
    client = owner.client()
    form = {"channel": "webhook", "target": "https://hooks.example.org/x", "events": ["consent.requested"]}
    shown = client.post("/notifications/new", form).content.decode()
    channel = Notification.objects.get()
    row = Delivery.objects.create(notification=channel, event="consent.requested", subject="cns_1", body={})
    secret = re.search(r"whsec_[\w+/=]+", shown)

    assert secret
    page = client.get(f"/notifications/{channel.wire_id}").content.decode()
    assert secret[0] not in page
    assert page.count("A consent is waiting for a decision") == 2  # of the channel, and of the message
    client.post(f"/deliveries/{row.wire_id}/again", {"again": "yes"})
    row.refresh_from_db()
    assert row.next_attempt_at is not None
    client.post(f"/notifications/{channel.wire_id}/end", REASON)
    assert Notification.objects.get().disabled_at is not None


def test_the_hubs_owner_makes_a_tenant_and_owns_it(hub_owner: Client, owner: Person) -> None:
    hub_owner.post("/tenants/new", {"name": "Fresh", "slug": "fresh"})

    fresh = Tenant.objects.get(slug="fresh")
    assert "members.manage" in allowed(owner.user, fresh)
    assert "Fresh" in hub_owner.get("/tenants").content.decode()
    assert hub_owner.post("/tenants/new", {"name": "Again", "slug": "fresh"}).status_code == 422


def test_further_tenants_are_at_the_lists_own_address_from_a_refused_form_too(hub_owner: Client) -> None:
    """Of owners: only forms go to its address, and it answers no other request."""
    Tenant.objects.bulk_create(Tenant(name=f"Made {n:02}", slug=f"made-{n:02}") for n in range(PAGE_SIZE))

    refused = hub_owner.post("/tenants/owners", {"username": "nobody", "action": "give"})

    further = re.search(r'rel="next" href="([^"]+)"', refused.content.decode())
    assert refused.status_code == 422
    assert further
    assert f"made-{PAGE_SIZE - 1}" in hub_owner.get(further[1].replace("&amp;", "&")).content.decode()


def test_who_does_not_own_the_hub_sees_no_tenants(operator: Person) -> None:
    assert operator.client().get("/tenants").status_code == 403
    assert "/tenants" not in operator.client().get("/grants").content.decode()


def test_pages_of_lists_say_what_to_do_when_they_are_empty(owner: Person) -> None:
    for path in ("/agents", "/issuers", "/notifications"):
        assert 'class="empty"' in owner.client().get(path).content.decode()


# Owners of the hub.


def test_an_owner_of_the_hub_makes_another_who_may_then_publish_its_policy(
    hub_owner: Client, owner: Person, tenant: Tenant, operator: Person
) -> None:
    assert (
        operator.user.get_username() not in hub_owner.get("/tenants").content.decode().partition("Owners of the hub")[2]
    )

    made = hub_owner.post("/tenants/owners", {"username": "olivia", "action": "give"}, follow=True)

    assert "olivia" in made.content.decode().partition("Owners of the hub")[2]
    second = principal_of_user(get_user_model().objects.get(pk=operator.user.pk), tenant)
    draft = policies.draft_policy(document=BUILTIN_RULES, note="", hub=True, by=principal_of_user(owner.user, tenant))
    policies.check_can_publish(draft, by=second)

    hub_owner.post("/tenants/owners", {"username": "olivia", "action": "take"})
    assert "hub.manage" not in allowed(operator.user, tenant)
    kinds = Fact.objects.filter(subject=encode_user(operator.user.pk)).order_by("id").values_list("kind", flat=True)
    assert list(kinds)[-2:] == ["permission.given", "permission.taken"]


@pytest.mark.parametrize(
    ("username", "action", "said"),
    [
        ("nobody", "give", "There is no user with this name."),
        ("otto", "give", "Nobody decides on their own ownership of the hub."),
        ("otto", "take", "Nobody decides on their own ownership of the hub."),
        ("olivia", "take", "olivia does not own the hub."),
    ],
)
def test_what_is_wrong_with_an_owner_of_the_hub_is_said_at_the_form(
    hub_owner: Client, operator: Person, username: str, action: str, said: str
) -> None:
    answer = hub_owner.post("/tenants/owners", {"username": username, "action": action})

    assert answer.status_code == 422
    assert said in answer.content.decode()


def test_a_draft_for_the_whole_hub_begins_with_what_is_in_force_there(hub_owner: Client) -> None:
    page = html.unescape(hub_owner.get("/policies/new?layer=hub").content.decode())

    assert '"ceiling"' in page
    assert '<option value="hub" selected>' in page
