"""Object permissions: what does somebody do who holds a permission on one tool, or one agent, and nowhere else?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access import services as access
from access.members import services as members
from access.middleware import principal_of_user
from access.models import Agent, ApiKey, Membership, Tenant
from access.object_permissions.rules import allowed_on, user_object_permissions
from access.problems import SelfApproval
from access.roles import ON_TOOL, Role
from evidence.models import Fact
from kernel.ids import encode_user
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from registry.installations import services as installations
from registry.models import Decision, Installation, Review, Tool, ToolState
from registry.reviews import services as reviews
from registry.tools import lifecycle
from registry.versions import services as registry
from tests.conftest import make_person
from tests.support.manifests import manifest
from tests.support.populated_tenant import ECHO, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
REASON = {"reason": "because of a test"}


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


@pytest.fixture
def echo(enable: Callable[..., Tool]) -> Tool:
    return enable("echo")


@pytest.fixture
def write(enable: Callable[..., Tool]) -> Tool:
    return enable("write")


def give(owner: Person, to: Person, permission: str, on: Any) -> None:
    members.give_permission(user_id=to.user.pk, permission=permission, on=on, by=owner.by)


def take(owner: Person, of: Person, permission: str, on: Any) -> None:
    members.take_permission(user_id=of.user.pk, permission=permission, on=on, by=owner.by)


def state_of(tool: Tool) -> str:
    return Tool.objects.values_list("state", flat=True).get(pk=tool.pk)


def version_of(tool: Tool) -> str:
    assert tool.current is not None
    return tool.current.wire_id


# Tools.


@pytest.mark.req("CARD-3")
def test_who_may_operate_one_tool_operates_that_one_only(
    developer: Person, owner: Person, echo: Tool, write: Tool
) -> None:
    client = developer.client()
    assert client.post(f"/tools/{ECHO}/pause", REASON).status_code == 403

    give(owner, developer, "tools.operate", echo)

    assert client.post(f"/tools/{WRITE}/pause", REASON).status_code == 403
    assert client.post(f"/versions/{version_of(write)}/yank", REASON).status_code == 403
    assert client.post(f"/tools/{ECHO}/pause", REASON).status_code == 302
    assert (state_of(echo), state_of(write)) == (ToolState.PAUSED, ToolState.ENABLED)
    assert client.post(f"/versions/{version_of(echo)}/trust", REASON).status_code == 403
    assert client.post(f"/installations/{ECHO}/pause", REASON).status_code == 403
    for closed in ("/agents/new", "/reviews", "/people", f"/tools/{ECHO}x/pause"):
        assert client.post(closed, REASON).status_code in (403, 405), closed


@pytest.mark.req("CARD-3")
def test_what_was_taken_back_is_refused_with_the_next_request(developer: Person, owner: Person, echo: Tool) -> None:
    client = developer.client()
    give(owner, developer, "tools.operate", echo)
    client.post(f"/tools/{ECHO}/pause", REASON)

    take(owner, developer, "tools.operate", echo)

    assert client.post(f"/tools/{ECHO}/enable", {"version": "", **REASON}).status_code == 403
    assert state_of(echo) == ToolState.PAUSED


@pytest.mark.req("CARD-3")
def test_pages_show_the_buttons_of_that_tool_only(developer: Person, owner: Person, echo: Tool, write: Tool) -> None:
    give(owner, developer, "tools.operate", echo)
    give(owner, developer, "tools.install", echo)
    client = developer.client()

    def shown(path: str, name: str) -> Any:
        return client.get(path).context[name]

    assert shown(f"/tools/{ECHO}", "may_operate")
    assert not shown(f"/tools/{WRITE}", "may_operate")
    assert shown(f"/versions/{version_of(echo)}", "may_yank")
    assert not shown(f"/versions/{version_of(echo)}", "may_trust")
    assert not shown(f"/versions/{version_of(write)}", "may_yank")
    assert shown(f"/installations/{ECHO}", "may_install")
    assert not shown(f"/installations/{WRITE}", "may_install")


@pytest.mark.req("CARD-3")
def test_a_tool_of_the_same_name_in_another_tenant_is_another_tool(
    developer: Person, owner: Person, stranger: Person, foreign_tenant: Tenant, echo: Tool
) -> None:
    """Also to somebody who belongs to both."""
    author = make_person(foreign_tenant, "ada", Role.DEVELOPER)
    theirs = registry.submit_version(document=manifest("echo"), by=author.by)
    reviews.review_version(version_id=theirs.pk, decision=Decision.APPROVE, note="", by=stranger.by)
    lifecycle.enable_tool(name=ECHO, version_id=theirs.pk, reason="to test", by=stranger.by)
    both = make_person(foreign_tenant, "bo", Role.DEVELOPER)
    members.give_membership(
        tenant=Tenant.objects.get(pk=owner.by.tenant_id), user=both.user, role=Role.DEVELOPER, by=owner.by
    )
    for permission in ON_TOOL:
        give(owner, both, permission, echo)
    client = both.client()  # begins in the tenant that was joined first

    assert client.post(f"/tools/{ECHO}/pause", REASON).status_code == 403
    assert client.post(f"/versions/{theirs.wire_id}/yank", REASON).status_code == 403
    assert client.post(f"/installations/{ECHO}/pause", REASON).status_code == 403
    assert client.post(f"/versions/{version_of(echo)}/yank", REASON).status_code == 403
    with pytest.raises(Tool.DoesNotExist):
        give(owner, developer, "tools.operate", theirs.tool)
    client.post("/tenant", {"tenant": owner_tenant(owner).wire_id})
    assert client.post(f"/tools/{ECHO}/pause", REASON).status_code == 302


def owner_tenant(owner: Person) -> Tenant:
    return Tenant.objects.get(pk=owner.by.tenant_id)


@pytest.mark.req("CARD-3")
def test_one_own_tool_opens_no_installation_of_a_foreign_tool_by_its_name(
    developer: Person, owner: Person, operator: Person, stranger: Person, foreign_tenant: Tenant, submit: Any
) -> None:
    author = make_person(foreign_tenant, "ada", Role.DEVELOPER)
    theirs = registry.submit_version(document=manifest("echo"), by=author.by)
    reviews.review_version(version_id=theirs.pk, decision=Decision.APPROVE, note="", by=stranger.by)
    lifecycle.enable_tool(name=ECHO, version_id=theirs.pk, reason="to test", by=stranger.by)
    lifecycle.share_tool(name=ECHO, reason="to test", by=stranger.by)
    installations.install_tool(name=ECHO, publisher="foreign", reason="to test", by=operator.by)
    own = submit("echo").tool  # of the same name, and never enabled
    give(owner, developer, "tools.install", own)

    client = developer.client()

    assert client.post(f"/installations/{ECHO}/pause", REASON).status_code == 403
    assert client.post(f"/installations/shared/foreign/{ECHO}", REASON).status_code == 403
    assert not client.get(f"/installations/{ECHO}").context["may_install"]
    assert Installation.objects.get(tenant_id=owner.by.tenant_id).state == "enabled"


@pytest.mark.req("CARD-3")
def test_a_reviewer_of_one_tool_never_reviews_their_own_submission(
    developer: Person, owner: Person, submit: Any
) -> None:
    version = submit("echo")
    other = make_person(owner_tenant(owner), "dora", Role.DEVELOPER)
    for person in (developer, other):
        give(owner, person, "tools.review", version.tool)
    decision = {"decision": "approve", "note": "looks good"}

    own = developer.client().post(f"/reviews/{version.wire_id}/decision", decision)
    assert own.status_code == 403
    assert b"You submitted this version" in own.content
    assert not Review.objects.exists()

    assert other.client().get(f"/versions/{version.wire_id}").context["may_review"]
    assert other.client().get(f"/reviews/{version.wire_id}").status_code == 200
    assert other.client().post(f"/reviews/{version.wire_id}/decision", decision).status_code == 302
    assert Review.objects.get().decided_by == other.by.id
    assert other.client().get("/reviews").status_code == 403


@pytest.mark.req("CARD-3")
def test_a_key_carries_no_exception_of_who_gave_it(
    developer: Person, owner: Person, echo: Tool, caller: Caller
) -> None:
    """Not to the key's scopes, and not to the calls made with it."""
    give(owner, developer, "agents.manage", caller.agent)
    for permission in ON_TOOL:
        give(owner, developer, permission, echo)
    by = principal_of_user(developer.user, owner_tenant(owner))

    with pytest.raises(Forbidden, match=r"does not hold tools\.operate"):
        access.create_key(agent=caller.agent, scopes=["tools:operate"], by=by)
    before = ApiKey.objects.count()
    form = {"name": "", "scopes": ["tools:operate"], "days": "1"}
    assert developer.client().post(f"/agents/{caller.agent.wire_id}/keys/new", form).status_code == 422
    assert ApiKey.objects.count() == before
    assert allowed_on(caller.by, echo) == caller.by.allowed


# Agents.


@pytest.mark.req("CARD-3")
def test_who_may_manage_one_agent_sees_it_and_makes_keys_for_it_only(
    developer: Person, owner: Person, operator: Person, caller: Caller
) -> None:
    other = access.create_agent(name="other", by=operator.by)
    key, _ = access.create_key(agent=other, by=operator.by)
    client, here, there = developer.client(), f"/agents/{caller.agent.wire_id}", f"/agents/{other.wire_id}"
    assert client.get(here).status_code == 403

    give(owner, developer, "agents.manage", caller.agent)

    assert client.get(here).context["may_manage"]
    form = {"name": "", "scopes": ["tools:read"], "days": "1"}
    assert b"hub_live_" in client.post(f"{here}/keys/new", form).content
    assert client.post(f"{here}/state", REASON).status_code == 302
    assert Agent.objects.get(pk=caller.agent.pk).disabled_at is not None
    assert client.get(there).status_code == 403
    assert client.post(f"{there}/keys/new", form).status_code == 403
    assert client.post(f"/keys/{key.wire_id}/revoke", REASON).status_code == 403
    assert client.post("/agents/new", {"name": "mine"}).status_code == 403


# Giving and taking.


@pytest.mark.req("CARD-3")
def test_every_gift_and_withdrawal_is_a_fact_that_names_the_thing(
    developer: Person, owner: Person, echo: Tool, caller: Caller
) -> None:
    give(owner, developer, "tools.operate", echo)
    take(owner, developer, "tools.operate", echo)
    give(owner, developer, "agents.manage", caller.agent)

    facts = Fact.objects.filter(subject=encode_user(developer.user.pk), kind__startswith="permission.").order_by("id")
    assert [(str(fact.kind), fact.actor_id, fact.tool) for fact in facts] == [
        ("permission.given", owner.by.id, ECHO),
        ("permission.taken", owner.by.id, ECHO),
        ("permission.given", owner.by.id, ""),
    ]
    assert caller.agent.wire_id.encode() in bytes(facts[2].leaf)


@pytest.mark.req("CARD-3")
def test_only_owners_give_exceptions_and_nobody_to_themselves(
    developer: Person, operator: Person, owner: Person, stranger: Person, echo: Tool
) -> None:
    with pytest.raises(SelfApproval):
        give(owner, owner, "tools.trust", echo)
    with pytest.raises(Forbidden):
        give(operator, developer, "tools.operate", echo)
    with pytest.raises(Membership.DoesNotExist):
        give(owner, stranger, "tools.operate", echo)
    with pytest.raises(SchemaInvalid):
        give(owner, developer, "members.manage", echo)
    give(owner, developer, "tools.operate", echo)
    with pytest.raises(Conflict):
        give(owner, developer, "tools.operate", echo)
    take(owner, developer, "tools.operate", echo)
    with pytest.raises(Conflict):
        take(owner, developer, "tools.operate", echo)


@pytest.mark.req("CARD-3")
def test_who_leaves_the_tenant_leaves_the_exceptions_behind(developer: Person, owner: Person, echo: Tool) -> None:
    give(owner, developer, "tools.operate", echo)
    tenant = owner_tenant(owner)

    members.set_roles(tenant=tenant, user=developer.user, roles=set(), by=owner.by)
    members.give_membership(tenant=tenant, user=developer.user, role=Role.DEVELOPER, by=owner.by)

    assert user_object_permissions(developer.user, tenant_id=tenant.pk) == []
    assert developer.client().post(f"/tools/{ECHO}/pause", REASON).status_code == 403
    taken = Fact.objects.get(kind="permission.taken")
    assert (taken.subject, taken.tool) == (encode_user(developer.user.pk), ECHO)


@pytest.mark.req("CARD-3")
def test_exceptions_of_another_tenant_stay_when_somebody_leaves_this_one(
    developer: Person, owner: Person, foreign_tenant: Tenant, echo: Tool
) -> None:
    theirs = registry.submit_version(
        document=manifest("echo"), by=make_person(foreign_tenant, "ada", Role.DEVELOPER).by
    ).tool
    boss = make_person(foreign_tenant, "olga", Role.OWNER)
    members.give_membership(tenant=foreign_tenant, user=developer.user, role=Role.DEVELOPER, by=boss.by)
    give(boss, developer, "tools.operate", theirs)
    give(owner, developer, "tools.operate", echo)

    members.set_roles(tenant=owner_tenant(owner), user=developer.user, roles=set(), by=owner.by)

    assert user_object_permissions(developer.user, tenant_id=owner.by.tenant_id) == []
    assert user_object_permissions(developer.user, tenant_id=foreign_tenant.pk) == [("tools.operate", theirs)]


# Pages.


@pytest.mark.req("CARD-3")
def test_an_owner_gives_and_takes_on_the_persons_page(
    developer: Person, owner: Person, echo: Tool, caller: Caller
) -> None:
    client, page = owner.client(), f"/people/usr_{developer.user.pk}"
    for permission, thing in {"tools.operate": ECHO, "agents.manage": "assistant"}.items():
        form = {"permission": permission, "thing": thing, "action": "give"}
        assert client.post(f"{page}/exceptions", form).status_code == 302

    shown = client.get(page)
    rows = [(row["name"], str(row["thing"]), row["given"].actor_id) for row in shown.context["exceptions"]]
    assert rows == [("agents.manage", "assistant", owner.by.id), ("tools.operate", ECHO, owner.by.id)]
    assert f'href="/tools/{ECHO}"' in shown.content.decode()
    for of_thing in (f"/tools/{ECHO}", f"/agents/{caller.agent.wire_id}"):
        assert page in client.get(of_thing).content.decode()
    assert page not in developer.client().get(f"/tools/{ECHO}").content.decode()  # who sees no people

    form = {"permission": "tools.operate", "thing": ECHO, "action": "take"}
    assert client.post(f"{page}/exceptions", form).status_code == 302
    assert [row["name"] for row in client.get(page).context["exceptions"]] == ["agents.manage"]
    assert page not in client.get(f"/tools/{ECHO}").content.decode()


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize(
    "wrong",
    [
        {"thing": "no.such.tool"},
        {"thing": "assistant"},
        {"thing": ""},
        {"permission": "members.manage"},
        {"permission": "agents.manage"},
        {"action": "take"},
    ],
)
def test_what_cannot_be_given_comes_back_with_what_was_typed(
    wrong: dict[str, str], developer: Person, owner: Person, echo: Tool, caller: Caller
) -> None:
    form = {"permission": "tools.operate", "thing": ECHO, "action": "give"} | wrong
    answer = owner.client().post(f"/people/usr_{developer.user.pk}/exceptions", form)

    assert answer.status_code == 422
    assert answer.context["exception_form"].errors
    assert answer.context["exception_form"]["thing"].value() == form["thing"]
    assert user_object_permissions(developer.user, tenant_id=owner.by.tenant_id) == []


@pytest.mark.req("CARD-3")
def test_a_single_permission_says_who_gave_it(developer: Person, owner: Person) -> None:
    members.give_permission(user_id=developer.user.pk, permission="halts.throw", by=owner.by)

    (row,) = owner.client().get(f"/people/usr_{developer.user.pk}").context["single"]
    assert (row["name"], row["given"].actor_id) == ("halts.throw", owner.by.id)
