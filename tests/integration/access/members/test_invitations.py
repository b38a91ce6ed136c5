"""Invitations: how does somebody who is invited come in, and who else may give them something before they have come?"""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user_model
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from access.members import invitations
from access.members import services as members
from access.middleware import principal_of_user
from access.models import Membership, Tenant
from access.roles import Role
from evidence.models import Fact
from kernel.ids import encode_user
from kernel.problems import Conflict
from tests.conftest import make_person
from tests.support.configuration_files import apply

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


def allowed(user: Any, tenant: Tenant) -> frozenset[str]:
    return principal_of_user(get_user_model().objects.get(pk=user.pk), tenant).allowed


def invite(owner: Person, **form: Any) -> Any:
    usual = {"username": "nina", "name": "Nina New", "email": "nina@example.org", "roles": ["reviewer"]}
    return owner.client().post("/people/new", usual | form)


def link_in(text: str) -> str:
    found = re.search(r"/invitations/[\w-]+/[\w-]+", text)
    assert found, text
    return found[0]


def test_an_invited_person_chooses_a_password_with_a_link_that_works_once(owner: Person, tenant: Tenant) -> None:
    link = link_in(invite(owner).content.decode())
    nina = get_user_model().objects.get(username="nina")
    assert not nina.has_usable_password()
    person = Client()
    assert person.get(link).status_code == 200
    assert person.post(link, {"new_password1": "short", "new_password2": "short"}).status_code == 422

    chosen = {"new_password1": "a long first password", "new_password2": "a long first password"}
    assert person.post(link, chosen).status_code == 302

    nina.refresh_from_db()
    assert nina.check_password("a long first password")
    assert not EmailAddress.objects.exists()  # whoever invited saw the link too
    assert person.get(link).status_code == 404
    assert person.post(link, chosen).status_code == 404
    assert allowed(nina, tenant) >= {"tools.review"}
    facts = Fact.objects.filter(kind="person.invited").order_by("id")
    assert [fact.actor_id for fact in facts] == [owner.by.id, encode_user(nina.pk)]
    assert not any(link.encode() in bytes(fact.leaf) for fact in facts)


def test_a_newer_link_can_be_made_until_the_person_has_come(owner: Person) -> None:
    invite(owner)
    nina = get_user_model().objects.get(username="nina")
    again = owner.client().post(f"/people/usr_{nina.pk}/invitation", {"again": "yes"})
    assert Client().get(link_in(again.content.decode())).status_code == 200

    nina.set_password("a long first password")
    nina.save()

    assert owner.client().post(f"/people/usr_{nina.pk}/invitation", {"again": "yes"}).status_code == 409


def test_the_link_goes_by_mail_where_the_hub_can_send_it_and_is_then_shown_to_nobody(
    owner: Person, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    settings.TOOLHUB_EMAIL_URL = "smtp://mail.example.org"
    with django_capture_on_commit_callbacks(execute=True):
        answer = invite(owner)

    assert answer.status_code == 302
    assert mail.outbox[0].to == ["nina@example.org"]
    link = link_in(str(mail.outbox[0].body))
    assert Client().get(link).status_code == 200
    Client().post(link, dict.fromkeys(("new_password1", "new_password2"), "a long first password"))
    assert EmailAddress.objects.get(verified=True).email == "nina@example.org"


def test_no_link_is_made_for_somebody_who_signs_in_here_already(owner: Person, stranger: Person) -> None:
    answer = invite(owner, username=stranger.user.username, email="")

    assert answer.status_code == 302
    assert Membership.objects.filter(user=stranger.user).count() == 2
    assert invitations.find_invited_person(*invitations.link_for(stranger.user).split("/")[-2:]) is None


@pytest.fixture
def their_owner(foreign_tenant: Tenant) -> Person:
    return make_person(foreign_tenant, "oda", Role.OWNER)


def test_whom_one_tenant_has_invited_gets_nothing_of_another_before_they_have_come(
    owner: Person, their_owner: Person, foreign_tenant: Tenant
) -> None:
    link = link_in(invite(owner).content.decode())
    nina = get_user_model().objects.get(username="nina")

    answer = invite(their_owner, email="", roles=["owner"])
    with pytest.raises(
        Conflict, match="has not come yet"
    ):  # however it is given: a configuration file names people too
        members.give_membership(tenant=foreign_tenant, user=nina, role=Role.OWNER, by=their_owner.by)

    assert (answer.status_code, "has not come yet" in answer.content.decode()) == (422, True)
    assert Client().post(link, dict.fromkeys(("new_password1", "new_password2"), "a long password")).status_code == 302
    assert allowed(nina, foreign_tenant) == frozenset()
    assert invite(their_owner, email="").status_code == 302  # she is somebody now
    assert allowed(nina, foreign_tenant) >= {"tools.review"}


def test_an_account_that_two_tenants_gave_roles_before_it_was_opened_is_opened_by_neithers_link(
    owner: Person, their_owner: Person, foreign_tenant: Tenant
) -> None:
    link = link_in(invite(owner).content.decode())
    nina = get_user_model().objects.get(username="nina")
    page = f"/people/usr_{nina.pk}"
    assert "Another invitation" in owner.client().get(page).content.decode()

    Membership.objects.create(tenant=foreign_tenant, user=nina, role=Role.OWNER)  # by a version before

    assert Client().get(link).status_code == 404
    for person in (owner, their_owner):
        shown = person.client().get(page).content.decode()
        assert ("invited, not signed in yet" in shown, "Another invitation" in shown) == (True, False)
        with pytest.raises(Conflict, match="not yours to make"):
            invitations.invite_again(user_id=nina.pk, by=person.by)
    call_command("reset_sign_in", "nina", stdout=(said := StringIO()))
    assert Client().get(link_in(said.getvalue())).status_code == 200


def test_who_is_removed_before_they_came_cannot_come_and_may_be_invited_by_another_tenant(
    owner: Person, their_owner: Person, tenant: Tenant, foreign_tenant: Tenant
) -> None:
    first = link_in(invite(owner).content.decode())
    nina = get_user_model().objects.get(username="nina")
    members.set_roles(tenant=tenant, user=nina, roles=set(), by=owner.by)
    assert Client().get(first).status_code == 404

    second = link_in(invite(their_owner, email="nina@example.com", name="Nina Other").content.decode())

    assert Client().get(first).status_code == 404  # also now that she belongs to a tenant again
    assert Client().get(second).status_code == 200
    nina.refresh_from_db()
    assert (nina.email, nina.last_name) == ("nina@example.com", "Other")  # an identity provider goes by the address
    assert invite(owner).status_code == 422
    assert set(Membership.objects.filter(user=nina).values_list("tenant", flat=True)) == {foreign_tenant.pk}


@pytest.mark.parametrize("also_there", [False, True])
def test_the_link_of_a_tenant_that_somebody_left_opens_nothing_that_another_gives_them_later(
    also_there: bool, owner: Person, their_owner: Person, tenant: Tenant, foreign_tenant: Tenant
) -> None:
    link = link_in(invite(owner).content.decode())
    nina = get_user_model().objects.get(username="nina")
    if also_there:
        Membership.objects.create(tenant=foreign_tenant, user=nina, role=Role.OPERATOR)  # by a version before
    members.set_roles(tenant=tenant, user=nina, roles=set(), by=owner.by)

    if not also_there:
        file = {"format": 1, "members": [{"user": "nina", "roles": ["operator"]}]}
        with pytest.raises(Conflict, match="has never come"):
            apply(file, their_owner.by)
        Membership.objects.create(tenant=foreign_tenant, user=nina, role=Role.OPERATOR)  # however it came about

    assert Client().get(link).status_code == 404


def test_a_link_that_ends_while_its_page_is_sent_opens_nothing(owner: Person, their_owner: Person) -> None:
    uid, token = link_in(invite(owner).content.decode()).split("/")[-2:]
    seen = invitations.find_invited_person(uid, token)
    invitations.withdraw_invitation(user_id=seen.pk, reason="x", by=owner.by)
    invite(their_owner)

    with pytest.raises(Conflict):
        invitations.accept_invitation(user=seen, password="a long first password", token=token)

    seen.refresh_from_db()
    assert not seen.has_usable_password()


def test_an_invitation_that_is_too_old_keeps_others_out_until_it_is_taken_back(
    owner: Person, their_owner: Person, settings: Any
) -> None:
    link = link_in(invite(owner).content.decode())
    settings.PASSWORD_RESET_TIMEOUT = -1
    assert Client().get(link).status_code == 404
    nina = get_user_model().objects.get(username="nina")

    assert invite(their_owner, email="").status_code == 422

    invitations.withdraw_invitation(user_id=nina.pk, reason="Too old.", by=owner.by)
    assert "/invitations/" in invite(their_owner, email="").content.decode()


def test_who_came_by_single_sign_on_is_known_and_the_link_is_over(owner: Person, their_owner: Person) -> None:
    link = link_in(invite(owner).content.decode())
    nina = get_user_model().objects.get(username="nina")
    nina.last_login = timezone.now()  # the provider has proved her address; she has no password here
    nina.save()

    assert Client().get(link).status_code == 404
    assert invite(their_owner, email="").status_code == 302


@pytest.mark.parametrize("gift", ["owner", "permission"])
def test_what_only_owners_give_ends_the_links_from_before(gift: str, owner: Person, tenant: Tenant) -> None:
    """Else whoever made the link would become what they could not give."""
    mia = make_person(tenant, "mia", Role.DEVELOPER)
    members.give_permission(user_id=mia.user.pk, permission="members.manage", by=owner.by)
    link = link_in(invite(mia, email="").content.decode())
    nina = get_user_model().objects.get(username="nina")
    assert Client().get(link).status_code == 200

    if gift == "owner":
        members.give_membership(tenant=tenant, user=nina, role=Role.OWNER, by=owner.by)
    else:
        members.give_permission(user_id=nina.pk, permission="policies.publish", by=owner.by)

    assert Client().get(link).status_code == 404
    assert (
        Client()
        .get(link_in(owner.client().post(f"/people/usr_{nina.pk}/invitation", {"again": "1"}).content.decode()))
        .status_code
        == 200
    )


def test_only_the_command_line_makes_a_link_after_a_reset(owner: Person, operator: Person) -> None:
    call_command("reset_sign_in", "olivia", stdout=StringIO())

    with pytest.raises(Conflict, match="not yours to make"):
        invitations.invite_again(user_id=operator.user.pk, by=owner.by)


@pytest.mark.parametrize("beside", ["owner", "single permission", "exception"])
def test_another_link_is_only_for_whom_could_give_what_it_opens(
    beside: str, owner: Person, operator: Person, caller: Caller, tenant: Tenant
) -> None:
    invite(owner)
    nina = get_user_model().objects.get(username="nina")
    members.give_permission(user_id=operator.user.pk, permission="members.manage", by=owner.by)
    page, again = f"/people/usr_{nina.pk}", f"/people/usr_{nina.pk}/invitation"
    assert operator.client().post(again, {"again": "yes"}).status_code == 200
    if beside == "owner":
        members.give_membership(tenant=tenant, user=nina, role=Role.OWNER, by=owner.by)
    else:
        permission, on = ("members.manage", None) if beside == "single permission" else ("agents.manage", caller.agent)
        members.give_permission(user_id=nina.pk, permission=permission, on=on, by=owner.by)

    assert operator.client().post(again, {"again": "yes"}).status_code == 403
    assert operator.client().post(f"/api/v1/invitations/usr_{nina.pk}/again").status_code == 403
    shown = [person.client().get(page).content.decode() for person in (operator, owner)]

    assert ["Another invitation" in each for each in shown] == [False, True]
    assert owner.client().post(again, {"again": "yes"}).status_code == 200


@pytest.mark.parametrize("wrong", [{"username": "two words"}, {"roles": []}, {"roles": ["king"]}, {"email": "x"}])
def test_an_invitation_that_cannot_be_is_refused(wrong: dict[str, Any], owner: Person) -> None:
    assert invite(owner, **wrong).status_code == 422

    assert not get_user_model().objects.filter(username__in=["nina", "two words"]).exists()


@pytest.mark.parametrize("link", ["/invitations/x/y", "/invitations/MQ/abc-def", "/invitations/_/_"])
def test_a_made_up_link_leads_nowhere(link: str, owner: Person) -> None:
    assert Client().get(link).status_code == 404


def test_somebody_who_lost_every_way_in_gets_a_link_and_all_else_ends(operator: Person) -> None:
    client = operator.client()
    Authenticator.objects.create(user=operator.user, type=Authenticator.Type.TOTP, data={"secret": "x"})
    said = StringIO()

    call_command("reset_sign_in", "olivia", stdout=said)

    assert client.get("/grants").status_code == 302
    assert not Authenticator.objects.exists()
    assert Client().get(link_in(said.getvalue())).status_code == 200
    fact = Fact.objects.get(kind="person.invited")
    assert (fact.actor_id, b'"reset":true' in bytes(fact.leaf)) == ("system:operator", True)
    with pytest.raises(CommandError):
        call_command("reset_sign_in", "nobody")
