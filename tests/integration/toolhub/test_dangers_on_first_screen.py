"""Dangers: does somebody who may do something about it see it on the first screen that they open?

An approval whose dry run failed is in access/consents/test_approval_pages.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse
from django.utils.html import escape

from access.grants.services import give_grant
from access.halts.services import throw_halt
from access.models import PolicyState, PolicyVersion, Reach
from kernel.canonical import compute_digest
from tests.support.made_calls import ECHO

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool, ToolVersion
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


def open_first_screen(person: Person) -> str:
    response = person.client().get(reverse("start"), follow=True)
    assert response.status_code == 200
    return str(response.content.decode())


@pytest.mark.req("CARD-3", "TOOLS-15")
@pytest.mark.parametrize(("tools", "seen"), [("sample.tools.ehco", True), ("sample.tools.*", False)])
def test_a_grant_for_a_misspelt_tool(
    tools: str, seen: bool, enable: Callable[..., Tool], caller: Caller, operator: Person
) -> None:
    enable()
    page = operator.client().get(reverse("grant_new"), {"tools": tools}).content.decode()
    given = give_grant(agent_id=caller.agent.pk, tools=tools, reason="x", by=operator.by)

    screen = open_first_screen(operator)

    assert ("Did you mean sample.tools.echo?" in page) is seen
    assert ("Names no tool" in screen) is seen
    assert (reverse("grant", args=[given.pk]) in screen) is seen


@pytest.mark.req("CARD-3", "TOOLS-31")
@pytest.mark.parametrize(
    ("rules", "seen"),
    [
        ([], True),
        ([{"id": "all", "effect": "permit", "when": {}}, {"id": "none", "effect": "forbid", "when": {}}], True),
        ([{"id": "all", "effect": "permit", "when": {}}], False),
    ],
)
def test_a_policy_that_denies_everything(
    rules: list[dict[str, Any]], seen: bool, tenant: Tenant, operator: Person
) -> None:
    document = {"format": 1, "rules": rules}
    policy = PolicyVersion.objects.create(
        tenant=tenant,
        number=1,
        state=PolicyState.IN_FORCE,
        document=document,
        digest=compute_digest(document),
        drafted_by=operator.by.id,
    )

    screen = open_first_screen(operator)

    assert ("Denies everything" in screen) is seen
    assert (reverse("policy", args=[policy.pk]) in screen) is seen
    impact = operator.client().get(reverse("policy_impact", args=[policy.pk]))
    assert impact.context["denies_all"] is seen


@pytest.mark.req("CARD-3", "TOOLS-7")
@pytest.mark.parametrize(("length", "seen"), [(5, True), (500, False)])
def test_a_breaking_version(
    length: int, seen: bool, enable: Callable[..., Tool], submit: Callable[..., ToolVersion], operator: Person
) -> None:
    enable()
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": length}},
        "additionalProperties": True,
    }
    version = submit(version="2.0.0", input_schema=schema)

    screen = open_first_screen(operator)

    assert reverse("review", args=[version.pk]) in screen
    assert ("Can break callers" in screen) is seen


@pytest.mark.req("CARD-3", "SPEC-10")
def test_a_stop_in_force_is_seen_by_everybody(
    enable: Callable[..., Tool], operator: Person, auditor: Person, developer: Person
) -> None:
    enable()
    throw_halt(reach=Reach.TOOL, target=ECHO, reason="It writes twice.", by=operator.by)

    for person in (operator, auditor, developer):
        screen = open_first_screen(person)
        assert ECHO in screen
        assert escape("It writes twice.") in screen
