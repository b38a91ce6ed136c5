"""Configuration object permissions: does a configuration file say what people may do with single tools and agents?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.members import services as members
from access.object_permissions.rules import user_object_permissions
from access.problems import SelfApproval
from access.roles import ON_AGENT, ON_TOOL, Role
from kernel.problems import SchemaInvalid
from tests.conftest import make_person
from tests.support.configuration_files import ECHO, apply, doing, findings, plan
from toolhub.configuration import services
from toolhub.configuration.document import load_document_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
OPERATES = {"permission": "tools.operate", "tool": ECHO}
MANAGES = {"permission": "agents.manage", "agent": "assistant"}


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "ophelia", Role.OWNER)


def dana(*exceptions: dict[str, str], **more: Any) -> dict[str, Any]:
    row = {"user": "dana", "roles": ["developer"], "exceptions": list(exceptions)} | more
    return {"format": 1, "members": [{key: value for key, value in row.items() if value is not None}]}


def held(person: Person) -> list[tuple[str, str]]:
    return [
        (permission, str(thing))
        for permission, thing in user_object_permissions(person.user, tenant_id=person.by.tenant_id)
    ]


@pytest.mark.req("CARD-3")
def test_what_a_file_says_is_held_afterwards_and_exported(
    owner: Person, developer: Person, caller: Caller, enable: Callable[..., Tool]
) -> None:
    enable("echo")
    done = apply(dana(OPERATES, MANAGES), owner.by)
    assert done.plan.doing[0].sentence == "Change what dana may do with single tools and agents."
    assert held(developer) == [("agents.manage", "assistant"), ("tools.operate", ECHO)]

    exported = services.export_configuration(by=owner.by)
    (row,) = (each for each in exported["members"] if each["user"] == "dana")
    assert row["exceptions"] == [OPERATES, MANAGES]
    assert plan(exported, owner.by).is_empty
    assert plan(dana(MANAGES, OPERATES), owner.by).is_empty
    assert plan(dana(exceptions=None), owner.by).is_empty  # left out, left alone

    apply(dana({"permission": "tools.trust", "tool": ECHO}, MANAGES), owner.by)
    assert held(developer) == [("agents.manage", "assistant"), ("tools.trust", ECHO)]
    apply(dana(), owner.by)
    assert held(developer) == []


@pytest.mark.req("CARD-3")
def test_an_agent_of_the_same_file_and_somebody_new_are_there_in_time(owner: Person, tenant: Tenant) -> None:
    make_person(tenant, "nora")
    file = {"format": 1, "agents": [{"name": "fresh"}]} | dana(
        {"permission": "agents.manage", "agent": "fresh"}, user="nora"
    )

    assert doing(plan(file, owner.by)) == [("agents", "create", "fresh"), ("members", "create", "nora")]
    apply(file, owner.by)

    assert plan(file, owner.by).is_empty


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize(
    "wrong",
    [
        {"permission": "tools.operate", "tool": "no.such.tool"},
        {"permission": "agents.manage", "agent": "nobody"},
        {"permission": "agents.manage", "tool": ECHO},
        {"permission": "tools.trust", "agent": "assistant"},
    ],
)
def test_what_cannot_be_held_is_refused_at_its_place_in_the_file(
    wrong: dict[str, str], owner: Person, developer: Person, caller: Caller, enable: Callable[..., Tool]
) -> None:
    enable("echo")
    with pytest.raises(SchemaInvalid) as caught:
        plan(dana(OPERATES, wrong), owner.by)

    assert findings(caught.value) == ["/members/0/exceptions"]
    assert held(developer) == []


@pytest.mark.req("TOOLS-15")
def test_nobody_gives_themselves_an_exception_by_a_file(owner: Person, enable: Callable[..., Tool]) -> None:
    enable("echo")
    with pytest.raises(SelfApproval):
        plan(dana(OPERATES, user="ophelia", roles=["owner"]), owner.by)


@pytest.mark.req("CARD-3")
def test_a_pruned_person_leaves_the_exceptions_behind(
    owner: Person, developer: Person, operator: Person, enable: Callable[..., Tool]
) -> None:
    tool = enable("echo")
    members.give_permission(user_id=developer.user.pk, permission="tools.operate", on=tool, by=owner.by)

    apply({"format": 1, "members": [{"user": "ophelia", "roles": ["owner"]}], "prune": ["members"]}, owner.by)

    assert held(developer) == []


@pytest.mark.req("CARD-3")
def test_a_file_may_say_exactly_what_the_console_may() -> None:
    items = load_document_schema()["properties"]["members"]["items"]["properties"]["exceptions"]["items"]

    assert items["properties"]["permission"]["enum"] == [*ON_TOOL, *ON_AGENT]
