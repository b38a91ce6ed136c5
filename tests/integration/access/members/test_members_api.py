"""Members API: how do people see and change people over REST, and what may a key do of it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from access.members import invitations
from access.members import services as members
from access.middleware import principal_of_user
from access.models import Membership
from access.roles import Role
from evidence.models import Fact
from evidence.services import open_free_text
from kernel.principal import Principal
from kernel.problems import Forbidden
from tests.conftest import make_caller, make_person
from tests.support import populated_tenant
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
REASON = {"reason": "because of a test"}
NINA = {"username": "nina", "name": "Nina New", "email": "nina@example.org", "roles": ["reviewer"]}


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


@pytest.fixture
def reader(tenant: Tenant) -> Caller:
    return make_caller(Principal.system("test", tenant_id=tenant.pk), "reader", ("members:read",))


def send(who: Person | Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """By the session of somebody."""
    client = who if isinstance(who, Client) else who.client()
    return populated_tenant.send(client, method, f"/api/v1{path}", body, headers)


def path_of(person: Person) -> str:
    return f"/members/{person.by.id}"


def roles_of(user: Any) -> set[str]:
    return set(Membership.objects.filter(user=user).values_list("role", flat=True))


def link_path(link: str) -> str:
    return link[link.index("/invitations/") :]


# Seeing.


@pytest.mark.req("CARD-3", "TOOLS-22")
def test_a_key_and_a_person_see_the_people_of_the_tenant(
    reader: Caller, owner: Person, auditor: Person, stranger: Person, tenant: Tenant
) -> None:
    members.give_permission(user_id=auditor.user.pk, permission="halts.throw", by=owner.by)

    for answer in (reader.get("/members"), send(auditor, "GET", "/members")):
        found = answer.json()["data"]
        assert found["next"] is None
        assert [row["username"] for row in found["members"]] == ["aaron", "otto"]
    one = reader.get(path_of(auditor)).json()["data"]
    assert (one["id"], one["roles"], one["permissions"]) == (auditor.by.id, ["auditor"], ["halts.throw"])
    assert (one["waits"], "password" in one) == (False, False)
    assert_problem(reader.get(path_of(stranger)), 404, "RESOURCE.NOT_FOUND")


@pytest.mark.req("TOOLS-15")
def test_who_may_not_see_people_is_refused(developer: Person, caller: Caller, tenant: Tenant) -> None:
    other = make_caller(Principal.system("test", tenant_id=tenant.pk), "other", ("tools:read",))

    assert other.get("/members").json()["error"]["details"] == {"missing": "members:read"}
    assert send(developer, "GET", "/members").json()["error"]["details"] == {"missing": "members.view"}
    assert send(Client(), "GET", "/members").status_code == 401


@pytest.mark.req("CONN-6")
def test_the_list_continues_and_takes_no_cursor_of_another_list(
    reader: Caller, owner: Person, auditor: Person, operator: Person
) -> None:
    first = reader.get("/members?limit=2").json()["data"]
    second = reader.get(f"/members?limit=2&after={first['next']}").json()["data"]

    assert [len(page["members"]) for page in (first, second)] == [2, 1]
    assert second["next"] is None
    assert len({row["id"] for page in (first, second) for row in page["members"]}) == 3
    for after in ("usr_x", "agt_7", "usr_" + "9" * 30, "%00"):
        assert reader.get(f"/members?after={after}").status_code in (400, 422)


# Changing.


@pytest.mark.req("CARD-3")
def test_an_owner_changes_the_roles_of_somebody_and_lets_them_go(owner: Person, operator: Person) -> None:
    path = path_of(operator)
    answer = send(owner, "PUT", f"{path}/roles", {"roles": ["auditor", "reviewer"], **REASON})

    assert (answer.status_code, answer.json()["data"]["roles"]) == (200, ["reviewer", "auditor"])
    fact = Fact.objects.filter(kind="membership.ended").get()
    assert (fact.actor_id, open_free_text(fact)) == (owner.by.id, {"reason": "because of a test"})
    assert send(owner, "POST", f"{path}/remove", REASON).status_code == 204
    assert not roles_of(operator.user)
    assert_problem(send(owner, "POST", f"{path}/remove", REASON), 404, "RESOURCE.NOT_FOUND")


@pytest.mark.req("CARD-3")
def test_an_owner_gives_a_single_permission_and_takes_it_back(owner: Person, auditor: Person) -> None:
    path, body = f"{path_of(auditor)}/permissions", {"permission": "halts.throw"}

    assert send(owner, "POST", path, body).json()["data"]["permissions"] == ["halts.throw"]
    assert_problem(send(owner, "POST", path, body), 409, "STATE.CONFLICT")
    assert send(owner, "POST", f"{path}/take", body).json()["data"]["permissions"] == []
    assert_problem(send(owner, "POST", f"{path}/take", body), 409, "STATE.CONFLICT")


@pytest.mark.req("CARD-3")
def test_an_owner_gives_a_permission_on_one_tool_and_on_one_agent_and_takes_it_back(
    owner: Person, developer: Person, caller: Caller, enable: Callable[..., Tool]
) -> None:
    name, path = enable().name, f"{path_of(developer)}/exceptions"
    on_tool = {"permission": "tools.operate", "tool": name}
    on_agent = {"permission": "agents.manage", "agent": caller.agent.wire_id}

    given = [send(owner, "POST", path, body).json()["data"]["exceptions"] for body in (on_tool, on_agent)]

    assert given == [[on_tool], [on_agent, on_tool]]
    assert developer.client().post(f"/tools/{name}/pause", REASON).status_code == 302
    assert_problem(send(owner, "POST", path, on_tool), 409, "STATE.CONFLICT")
    assert send(owner, "POST", f"{path}/take", on_tool).json()["data"]["exceptions"] == [on_agent]
    assert developer.client().post(f"/tools/{name}/pause", REASON).status_code == 403


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"permission": "tools.operate"}, 422),
        ({"permission": "tools.operate", "tool": "sample.tools.echo", "agent": "agt_7"}, 422),
        ({"permission": "halts.throw", "tool": "sample.tools.echo"}, 422),
        ({"permission": "agents.manage", "tool": "sample.tools.echo"}, 422),
        ({"permission": "tools.operate", "tool": "sample.tools.nothing"}, 404),
        ({"permission": "agents.manage", "agent": "agt_7"}, 404),
    ],
)
def test_a_permission_on_what_is_not_there_or_does_not_take_it_is_refused(
    body: dict[str, Any], status: int, owner: Person, developer: Person, enable: Callable[..., Tool]
) -> None:
    enable()

    assert send(owner, "POST", f"{path_of(developer)}/exceptions", body).status_code == status
    assert not Fact.objects.filter(kind="permission.given").exclude(actor_kind="system").exists()


@pytest.mark.req("TOOLS-22")
def test_no_permission_is_given_on_an_agent_of_another_tenant(
    owner: Person, developer: Person, foreign_caller: Caller
) -> None:
    body = {"permission": "agents.manage", "agent": foreign_caller.agent.wire_id}

    assert_problem(send(owner, "POST", f"{path_of(developer)}/exceptions", body), 404, "RESOURCE.NOT_FOUND")


@pytest.mark.req("CARD-3")
def test_nobody_changes_their_own_roles_the_last_owner_stays_and_only_owners_make_owners(
    owner: Person, operator: Person, auditor: Person, tenant: Tenant
) -> None:
    members.give_permission(user_id=operator.user.pk, permission="members.manage", by=owner.by)

    own = send(owner, "PUT", f"{path_of(owner)}/roles", {"roles": ["auditor"], **REASON})
    made = send(operator, "PUT", f"{path_of(auditor)}/roles", {"roles": ["owner", "auditor"], **REASON})
    ended = send(operator, "POST", f"{path_of(owner)}/remove", REASON)
    given = send(operator, "POST", f"{path_of(auditor)}/permissions", {"permission": "halts.throw"})

    assert_problem(own, 403, "POLICY.SELF_APPROVAL")
    for answer in (made, ended, given):
        assert_problem(answer, 403, "AUTH.FORBIDDEN")
    assert (roles_of(auditor.user), roles_of(owner.user)) == ({"auditor"}, {"owner"})


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("roles", {"roles": ["king"], **REASON}, "/roles/0"),
        ("roles", {"roles": [], **REASON}, "/roles"),
        ("roles", {"roles": ["auditor"]}, "/reason"),
        ("roles", {"roles": ["auditor"], "more": 1, **REASON}, "/more"),
        ("permissions", {"permission": "hub.manage"}, "/permission"),
        ("remove", {}, "/reason"),
    ],
)
def test_a_change_that_cannot_be_is_refused_by_its_field(
    path: str, body: dict[str, Any], pointer: str, owner: Person, operator: Person
) -> None:
    answer = send(owner, "PUT" if path == "roles" else "POST", f"{path_of(operator)}/{path}", body)

    found = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")["error"]["details"]["findings"]
    assert pointer in [finding["pointer"] for finding in found]
    assert roles_of(operator.user) == {"operator"}


# For people only.


@pytest.mark.req("TOOLS-15")
def test_no_key_changes_what_people_may_do_whatever_it_carries(
    caller: Caller, owner: Person, auditor: Person, tenant: Tenant
) -> None:
    path = path_of(auditor)
    sent = [
        caller.put(f"{path}/roles", {"roles": ["owner"], **REASON}),
        caller.post(f"{path}/permissions", {"permission": "consents.decide"}),
        caller.post(f"{path}/remove", REASON),
        caller.post("/invitations", NINA),
    ]

    for answer in sent:
        assert_problem(answer, 403, "AUTH.FORBIDDEN")
        assert "Only people" in answer.json()["detail"]
    with pytest.raises(Forbidden, match="Only people"):  # nor by any other way in
        members.set_roles(tenant=tenant, user=auditor.user, roles={"owner"}, reason="x", by=caller.by)
    assert roles_of(auditor.user) == {"auditor"}
    assert not get_user_model().objects.filter(username="nina").exists()


@pytest.mark.req("TOOLS-15")
def test_a_session_changes_nothing_without_the_token_against_forgery(owner: Person, operator: Person) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner.user)

    assert_problem(send(client, "POST", f"{path_of(operator)}/remove", REASON), 403, "AUTH.FORBIDDEN")
    assert roles_of(operator.user) == {"operator"}
    client.get("/people/new")  # a page with a form
    token = {"X-CSRFToken": client.cookies["csrftoken"].value}
    answer = send(client, "POST", f"{path_of(operator)}/remove", REASON, **token)

    assert answer.status_code == 204


@pytest.mark.req("TOOLS-15")
def test_who_owes_a_second_factor_changes_nothing_and_sees_nothing(
    owner: Person, operator: Person, settings: Any
) -> None:
    settings.TOOLHUB_REQUIRE_MFA = ["owner"]

    for answer in (send(owner, "GET", "/members"), send(owner, "POST", f"{path_of(operator)}/remove", REASON)):
        assert_problem(answer, 403, "AUTH.FORBIDDEN")
    assert send(operator, "GET", "/members").status_code == 200


@pytest.mark.req("TOOLS-15")
def test_a_session_opens_nothing_that_is_for_keys(owner: Person) -> None:
    assert {send(owner, "GET", path).status_code for path in ("/agents", "/grants", "/issuers", "/tools")} == {401}


@pytest.mark.req("TOOLS-22")
def test_a_person_acts_in_the_tenant_that_they_chose(owner: Person, foreign_tenant: Tenant, operator: Person) -> None:
    members.give_membership(
        tenant=foreign_tenant,
        user=owner.user,
        role=Role.OWNER,
        by=Principal.system("test", tenant_id=foreign_tenant.pk),
    )
    client = owner.client()

    before = send(client, "GET", path_of(operator)).status_code
    client.post("/tenant", {"tenant": foreign_tenant.wire_id})

    assert (before, send(client, "GET", path_of(operator)).status_code) == (200, 404)


# Invitations.


@pytest.mark.req("CARD-3")
def test_somebody_is_invited_gets_another_link_and_comes(owner: Person, reader: Caller) -> None:
    answer = send(owner, "POST", "/invitations", NINA)
    made = answer.json()["data"]
    assert (answer.status_code, answer.headers["Cache-Control"], made["delivery"]) == (201, "no-store", "link")
    assert Client().get(link_path(made["link"])).status_code == 200
    waiting = reader.get("/invitations").json()["data"]["invitations"]
    assert [(row["username"], row["roles"], row["waits"]) for row in waiting] == [("nina", ["reviewer"], True)]
    assert made["link"] not in reader.get("/invitations").content.decode()

    again = send(owner, "POST", f"/invitations/{made['member']['id']}/again", {})
    link = link_path(again.json()["data"]["link"])
    Client().post(link, dict.fromkeys(("new_password1", "new_password2"), "a long first password"))

    assert get_user_model().objects.get(username="nina").has_usable_password()
    assert reader.get("/invitations").json()["data"]["invitations"] == []
    for what, body in (("again", {}), ("withdraw", REASON)):
        assert_problem(send(owner, "POST", f"/invitations/{made['member']['id']}/{what}", body), 409, "STATE.CONFLICT")


@pytest.mark.req("CARD-3")
def test_a_link_that_goes_by_mail_is_not_answered(owner: Person, settings: Any) -> None:
    settings.TOOLHUB_EMAIL_URL = "smtp://mail.example.org"

    made = send(owner, "POST", "/invitations", NINA).json()["data"]

    assert (made["delivery"], made["link"]) == ("mail", None)


@pytest.mark.req("CARD-3")
def test_somebody_whom_the_hub_knows_joins_without_a_link(owner: Person, stranger: Person) -> None:
    stranger.user.email = "secret@example.com"
    stranger.user.save(update_fields=["email"])

    made = send(owner, "POST", "/invitations", {"username": stranger.user.username, "roles": ["auditor"]})

    assert (made.json()["data"]["delivery"], made.json()["data"]["link"]) == ("none", None)
    assert made.json()["data"]["member"] == {
        "id": f"usr_{stranger.user.pk}",  # nothing that the inviter did not know
        "username": stranger.user.username,
        "roles": ["auditor"],  # not what they are elsewhere
    }


@pytest.mark.req("CARD-3")
def test_a_withdrawn_invitation_ends_its_links_and_the_person_can_be_invited_anew(
    owner: Person, tenant: Tenant
) -> None:
    made = send(owner, "POST", "/invitations", NINA).json()["data"]

    assert send(owner, "POST", f"/invitations/{made['member']['id']}/withdraw", REASON).status_code == 204

    nina = get_user_model().objects.get(username="nina")
    assert Client().get(link_path(made["link"])).status_code == 404
    assert principal_of_user(nina, tenant).allowed == frozenset()
    fact = Fact.objects.filter(kind="person.invited").order_by("id").last()
    assert fact is not None
    assert (fact.actor_id, b'"withdrawn":true' in bytes(fact.leaf)) == (owner.by.id, True)
    send(owner, "POST", "/invitations", NINA)
    again = send(owner, "POST", f"/invitations/{made['member']['id']}/again", {})
    assert Client().get(link_path(again.json()["data"]["link"])).status_code == 200


@pytest.mark.req("TOOLS-22")
def test_withdrawing_in_one_tenant_takes_no_role_of_another_which_makes_a_new_link(
    owner: Person, stranger: Person, foreign_tenant: Tenant
) -> None:
    made = send(owner, "POST", "/invitations", NINA).json()["data"]
    theirs = make_person(foreign_tenant, "oda", Role.OWNER)
    nina = get_user_model().objects.get(username="nina")
    Membership.objects.create(tenant=foreign_tenant, user=nina, role=Role.AUDITOR)  # by a version before

    assert send(theirs, "POST", f"/invitations/{made['member']['id']}/withdraw", REASON).status_code == 204

    assert roles_of(get_user_model().objects.get(username="nina")) == {"reviewer"}
    assert Client().get(link_path(made["link"])).status_code == 404  # it could be of those who withdrew
    again = send(owner, "POST", f"/invitations/{made['member']['id']}/again", {})
    assert Client().get(link_path(again.json()["data"]["link"])).status_code == 200


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"username": "two words"}, "/username"),
        ({"roles": []}, "/roles"),
        ({"roles": ["king"]}, "/roles/0"),
        ({"email": "x"}, "/email"),
    ],
)
def test_an_invitation_that_cannot_be_is_refused_by_its_field(
    change: dict[str, Any], pointer: str, owner: Person
) -> None:
    answer = send(owner, "POST", "/invitations", NINA | change)

    found = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")["error"]["details"]["findings"]
    assert pointer in [finding["pointer"] for finding in found]
    assert not get_user_model().objects.filter(username__in=["nina", "two words"]).exists()


@pytest.mark.req("TOOLS-22")
def test_nobody_of_another_tenant_is_invited_again_or_withdrawn(owner: Person, foreign_tenant: Tenant) -> None:
    theirs = make_person(foreign_tenant, "oda", Role.OWNER)
    user, _ = invitations.invite_person(username="nina", name="", email="", roles={"auditor"}, by=theirs.by)

    for what, body in (("again", {}), ("withdraw", REASON)):
        assert_problem(send(owner, "POST", f"/invitations/usr_{user.pk}/{what}", body), 404, "RESOURCE.NOT_FOUND")
    assert roles_of(user) == {"auditor"}
