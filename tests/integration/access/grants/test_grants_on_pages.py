"""Grant pages: are grants given, asked for, declined and extended on pages as they are meant?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from access.grants.requests import request_grant
from access.grants.services import give_grant
from access.models import Grant, GrantRequest
from tests.conftest import make_caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
WRITE = "sample.tools.write"
SECRET = {"text": "buy", "password": "hunter2-hunter2", "email": "ann.example@example.org"}
ARGUMENTS = {
    "type": "object",
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "description": "What is written."},
    },
    "additionalProperties": True,
}
DRY = {"HX-Request": "true", "HX-Target": "dry-run"}


def test_a_grant_is_given_with_its_bounds_as_typed(caller: Caller, operator: Person) -> None:
    client = operator.client()
    form = {
        "agent": str(caller.agent.pk),
        "tools": "tag:x & ~effect:Write",
        "conditions": '[{"pointer": "/currency", "op": "equals", "value": "EUR"}]',
        "scopes": '[{"resource": "soul:fs:/data", "action": "read"}]',
        "reason": "sells goods",
    }

    given = client.post("/grants/new", form)
    page = client.get(given.headers["Location"]).content.decode()

    assert given.status_code == 302
    assert "/currency must be “EUR”." in page
    assert "soul:fs:/data" in page
    everybodys = client.post("/grants/new", {"every_agent": "on", "tools": "*", "reason": "all"})
    assert everybodys.status_code == 302
    assert Grant.objects.filter(agent=None).count() == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"agent": ""}, "Choose one agent"),
        ({"every_agent": "on"}, "Choose one agent"),
        ({"tools": "tag:"}, "tag"),
        ({"conditions": "{"}, "not JSON"),
        ({"conditions": "[" * 100 + "]" * 100}, "nested deeper"),
        ({"conditions": '{"a": 1}'}, "Conditions must be a list."),
        ({"conditions": '[{"pointer": "a", "op": "like"}]'}, "JSON Pointer"),
        ({"scopes": '"all"'}, "cannot be read"),
        ({"capabilities": '{"fs": [{"path": "x", "actions": ["read"]}]}'}, "cannot be read"),
        ({"reason": ""}, "This field is required."),
    ],
)
def test_a_grant_that_means_nothing_is_told_at_its_field(
    changes: dict[str, str], said: str, caller: Caller, operator: Person
) -> None:
    form = {"agent": str(caller.agent.pk), "tools": "kept.*", "reason": "kept words", **changes}

    answer = operator.client().post("/grants/new", form)

    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert "tools" in changes or "kept.*" in answer.content.decode()
    assert not Grant.objects.exists()


def test_a_request_is_made_by_a_developer_and_turned_into_a_grant_in_one_step(
    caller: Caller, developer: Person, operator: Person
) -> None:
    form = {"agent": str(caller.agent.pk), "tools": "sample.*", "purpose": "to sell"}
    made = developer.client().post("/grants/requests/new", form)
    asked, client = GrantRequest.objects.get(), operator.client()
    path = f"/grants/requests/{asked.wire_id}"

    assert made.status_code == 302
    assert developer.client().get(path).status_code == 403
    assert 'value="sample.*"' in client.get(path).content.decode()
    empty = client.post(f"{path}/approve", {"tools": "sample.*", "reason": ""})
    assert empty.status_code == 422
    given = client.post(f"{path}/approve", {"tools": "sample.tools.echo", "reason": "narrowed"})
    assert (given.status_code, Grant.objects.get().tools) == (302, "sample.tools.echo")
    assert asked.wire_id in client.get(given.headers["Location"]).content.decode()
    assert client.post(f"{path}/decline", {"reason": "late"}).status_code == 409


def test_a_request_is_declined_with_a_reason(caller: Caller, operator: Person, auditor: Person) -> None:
    asked = request_grant(agent_id=caller.agent.pk, tools="sample.*", purpose="to sell", by=caller.by)
    path, client = f"/grants/requests/{asked.wire_id}", operator.client()

    assert "/approve" not in auditor.client().get(path).content.decode()
    assert client.post(f"{path}/decline", {"reason": ""}).status_code == 422
    assert client.post(f"{path}/decline", {"reason": "too wide"}).status_code == 302
    assert "too wide" in client.get(path).content.decode()
    assert "too wide" not in client.get("/grants/requests?state=waiting").content.decode()


def test_a_grant_is_extended_on_its_page(caller: Caller, operator: Person) -> None:
    until = timezone.now() + timedelta(days=1)
    given = give_grant(agent_id=caller.agent.pk, tools="a.*", reason="x", by=operator.by, expires_at=until)
    path, client = f"/grants/{given.wire_id}/extend", operator.client()

    assert client.post(path, {"reason": "", "expires_at": ""}).status_code == 422
    assert client.post(path, {"reason": "more", "expires_at": "2001-01-01T00:00"}).status_code == 422
    assert client.post(path, {"reason": "more", "expires_at": ""}).status_code == 302
    given.refresh_from_db()
    assert given.expires_at is None


def test_an_agent_of_no_key_asks_for_nothing_here(operator: Person) -> None:
    other = make_caller(operator.by, "other", scopes=("tools:read",))

    assert other.post("/grants/requests", {"tools": "*", "purpose": "x"}).status_code == 403
    assert other.post("/consents", {"tool": WRITE, "purpose": "x"}).status_code == 403


@pytest.mark.req("CARD-3", "TOOLS-15")
@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("sample.tools.ehco", "Matches none of the 2 tools that are installed."),
        ("*", "Matches all 2 tools, and every one that is installed later."),
        ("sample.tools.write", "Matches 1 tool:"),
        ("sample.tools.", "A name part is missing"),
    ],
)
def test_a_form_says_which_tools_an_expression_names_before_anything_is_given(
    tools: str, said: str, enable: Callable[..., Tool], operator: Person
) -> None:
    enable()
    enable("write")
    client = operator.client()

    live = client.get("/tool-matches", {"tools": tools}, headers={"HX-Request": "true", "HX-Target": "tool-matches"})
    checked = client.post("/grants/new", {"tools": tools, "reason": "It buys.", "check": "1"})

    assert "<html" not in live.content.decode()
    if tools.endswith("."):
        assert 'data-tone="bad"' in live.content.decode()
    else:
        assert said in " ".join(live.content.decode().split())
        assert said in " ".join(checked.content.decode().split())
    assert checked.status_code == 200
    assert "It buys." in checked.content.decode()
    assert not Grant.objects.exists()


@pytest.mark.req("CARD-3", "TOOLS-15")
@pytest.mark.parametrize(
    ("op", "typed", "condition"),
    [
        ("in", "EUR, USD", {"op": "in", "value": ["EUR", "USD"]}),
        ("at_most", "50", {"op": "at_most", "value": 50}),
        ("", "true", {"op": "equals", "value": True}),
    ],
)
def test_a_condition_on_an_argument_is_chosen_rather_than_written(
    op: str, typed: str, condition: dict[str, object], caller: Caller, operator: Person
) -> None:
    form = {"agent": str(caller.agent.pk), "tools": "*", "reason": "x", "argument": "text", "argument_op": op}

    lacking = operator.client().post("/grants/new", form)
    given = operator.client().post("/grants/new", form | {"argument_value": typed})

    assert lacking.status_code == 422
    assert "argument_value" in lacking.context["form"].errors
    assert given.status_code == 302
    assert Grant.objects.get().conditions == [{"pointer": "/text"} | condition]


@pytest.mark.req("CARD-3", "TOOLS-15")
@pytest.mark.parametrize(
    ("argument", "op", "typed", "value"),
    [
        ("text", "equals", "123", "123"),  # the tool takes a text
        ("text", "in", "1, true", ["1", "true"]),
        ("other", "equals", "123", 123),  # no tool says what it is
        ("other", "equals", '"123"', "123"),
        ("other", "starts_with", "12", "12"),
    ],
)
def test_a_chosen_value_is_of_the_type_that_the_argument_has(
    argument: str,
    op: str,
    typed: str,
    value: object,
    caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
) -> None:
    enable()
    chosen = {"argument": argument, "argument_op": op, "argument_value": typed}

    given = operator.client().post("/grants/new", {"agent": str(caller.agent.pk), "tools": "*", "reason": "x"} | chosen)

    assert given.status_code == 302
    assert Grant.objects.get().conditions == [{"pointer": f"/{argument}", "op": op, "value": value}]


def test_arguments_of_the_named_tools_are_offered(enable: Callable[..., Tool], operator: Person) -> None:
    enable()

    page = operator.client().get("/grants/new", {"tools": "sample.tools.echo"}).content.decode()

    assert '<option value="/text"></option>' in page
    assert '<option value="sample.*"></option>' in page
