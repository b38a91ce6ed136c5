"""Secrets: does a secret reach the tool that needs it, and nothing else?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact, Snapshot
from evidence.problems import KeyUnavailable
from evidence.services import open_values
from invocations.models import State
from kernel.problems import SchemaInvalid
from registry.installations import services as installations
from registry.models import Secret
from registry.problems import SecretInUse, UnknownSecret
from registry.secrets import services as secrets
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

TOKEN = 'tok/"3n+geh\\eim?ü'
NEEDS = [{"name": "API_TOKEN", "description": "What the service asks for."}]
REGION = {
    "type": "object",
    "additionalProperties": False,
    "required": ["region"],
    "properties": {"region": {"type": "string", "maxLength": 20}},
}


@pytest.fixture
def configured(enable: Callable[..., Tool], grant: Callable[..., Any], operator: Person) -> Callable[..., Tool]:
    """``configured(name, **changes)``: a sample tool with a secret, enabled, set up and granted."""

    def make(name: str = "configured", **changes: Any) -> Tool:
        tool = enable(name, **({"secrets": NEEDS} | changes))
        secrets.set_secret(name="shop.token", value=TOKEN, by=operator.by)
        installations.configure_installation(
            name=tool.name, values={"secrets": {"API_TOKEN": "shop.token"}}, reason="for a test", by=operator.by
        )
        grant()
        return tool

    return make


def stored_text() -> str:
    """Everything that the hub has kept in the clear about what happened, and every sealed value, opened."""
    facts = b"\n".join(bytes(fact.leaf) for fact in Fact.objects.all()).decode()
    return facts + json.dumps([open_values(each) for each in Snapshot.objects.all()], ensure_ascii=False)


@pytest.mark.req("TOOLS-1")
def test_a_tool_gets_the_configuration_and_the_secret_of_its_installation(
    configured: Callable[..., Tool], caller: Caller, operator: Person, bell: Bell
) -> None:
    tool = configured(config_schema=REGION)
    installations.configure_installation(
        name=tool.name, values={"config": {"region": "eu"}}, reason="x", by=operator.by
    )

    answer = caller.invoke(tool.name, {"text": "hello"})

    assert answer.status_code == 200, answer.json()
    assert answer.json()["data"] == {"region": "eu", "letters": len(TOKEN), "text": "hello"}
    assert TOKEN not in stored_text()
    assert "shop.token" not in answer.content.decode()


# What a run says is written down by another thread, which on SQLite waits for the transaction of a test to end.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "how",
    [
        *("returns", "returns_as_name", "returns_as_base64", "returns_as_url", "returns_as_json"),
        *("prints", "prints_as_hex", "raises", "refuses", "warns", "reaches"),
    ],
)
def test_a_tool_that_gives_its_secret_away_fails_and_what_it_said_is_not_kept(
    how: str, configured: Callable[..., Tool], caller: Caller, bell: Bell
) -> None:
    tool = configured("leaks")

    answer = caller.invoke(tool.name, {"how": how})

    body = assert_problem(answer, 502, "SANDBOX.SECRET_LEAK")
    assert body["error"]["details"]["secrets"] == ["API_TOKEN"]
    row = row_of(answer)
    assert (row.state, kinds_of(row)) == (State.FAILED, PAIR)
    for kept in (answer.content.decode(), stored_text()):
        for form in (TOKEN, json.dumps(TOKEN)[1:-1], TOKEN.encode().hex(), "Z2VoXGVpbT", "tok%2F%223n"):
            assert form not in kept
    assert not Snapshot.objects.filter(invocation_id=row.pk, kind="output").exists()


def test_a_tool_that_keeps_its_secret_is_not_suspected(
    configured: Callable[..., Tool], caller: Caller, bell: Bell
) -> None:
    tool = configured("leaks")

    answer = caller.invoke(tool.name, {"how": "keeps"})

    assert answer.json()["data"] == {"how": "keeps"}


def test_a_required_secret_that_is_not_set_stops_the_call_before_anything_runs(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, bell: Bell
) -> None:
    tool = enable("configured", secrets=NEEDS)
    grant()

    answer = caller.invoke(tool.name, {})

    body = assert_problem(answer, 409, "TOOL.NOT_CONFIGURED")
    assert body["error"]["details"]["missing"] == ["The secret API_TOKEN is required and not set."]
    assert "operator" in body["error"]["remedy"]


def test_a_secret_that_is_not_required_may_be_missing(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, bell: Bell
) -> None:
    tool = enable("echo", secrets=[{**NEEDS[0], "required": False}])
    grant()

    assert caller.invoke(tool.name, {}).status_code == 200


def test_a_new_value_counts_with_the_next_call(
    configured: Callable[..., Tool], caller: Caller, operator: Person, bell: Bell
) -> None:
    tool = configured()
    assert caller.invoke(tool.name, {}).json()["data"]["letters"] == len(TOKEN)

    again = secrets.set_secret(name="shop.token", value="another-value", by=operator.by)

    assert again.number == 2
    assert caller.invoke(tool.name, {}).json()["data"]["letters"] == len("another-value")


def test_facts_name_a_secret_and_its_number_and_never_its_value(operator: Person) -> None:
    secrets.set_secret(name="shop.token", value=TOKEN, by=operator.by)
    secrets.set_secret(name="shop.token", value="another-value", by=operator.by)
    secrets.remove_secret(name="shop.token", by=operator.by)

    told = Fact.objects.filter(kind__startswith="secret.").order_by("pk")
    assert [(fact.kind, json.loads(bytes(fact.leaf))["data"]) for fact in told] == [
        ("secret.set", {"name": "shop.token", "number": 1}),
        ("secret.set", {"name": "shop.token", "number": 2}),
        ("secret.removed", {"name": "shop.token", "number": 2}),
    ]
    assert not Secret.objects.exists()


def test_the_value_is_not_in_the_row(operator: Person) -> None:
    row = secrets.set_secret(name="shop.token", value="a-plain-value", by=operator.by)

    for field in (row.ciphertext, row.wrapped_key, row.nonce):
        assert b"a-plain-value" not in bytes(field)


def test_a_row_that_was_swapped_for_another_does_not_open(
    configured: Callable[..., Tool], caller: Caller, operator: Person, bell: Bell
) -> None:
    tool = configured()
    other = secrets.set_secret(name="other", value="of-another-service", by=operator.by)
    sealed = {name: getattr(other, name) for name in ("key_id", "wrapped_key", "nonce", "ciphertext")}
    Secret.objects.filter(name="shop.token").update(**sealed)

    answer = caller.invoke(tool.name, {})

    assert answer.json()["error"]["reason"] == KeyUnavailable.reason


@pytest.mark.parametrize(
    ("name", "value", "pointer"),
    [
        ("1token", "long enough", "/name"),
        ("a b", "long enough", "/name"),
        ("x" * 81, "long enough", "/name"),
        ("token", "short", "/value"),
        ("token", "x" * 16_385, "/value"),
        ("token", "with a newline\n", "/value"),
        ("token", "with a nul\0in it", "/value"),
        ("token", "half a \ud800 pair", "/value"),
    ],
)
def test_what_cannot_be_a_secret_is_refused_without_quoting_it(
    name: str, value: str, pointer: str, operator: Person
) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        secrets.set_secret(name=name, value=value, by=operator.by)

    finding = caught.value.details["findings"][0]
    assert finding["pointer"] == pointer
    assert value not in finding["message"]
    assert not Secret.objects.exists()


def test_a_secret_in_use_is_not_removed(configured: Callable[..., Tool], operator: Person) -> None:
    tool = configured()

    with pytest.raises(SecretInUse) as caught:
        secrets.remove_secret(name="shop.token", by=operator.by)
    assert caught.value.details["installations"] == [tool.name]

    installations.remove_installation(name=tool.name, reason="x", by=operator.by)
    secrets.remove_secret(name="shop.token", by=operator.by)
    assert not Secret.objects.exists()


@pytest.mark.req("TOOLS-22")
def test_a_tenant_neither_removes_nor_uses_the_secret_of_another(
    configured: Callable[..., Tool], operator: Person, stranger: Person
) -> None:
    configured()

    with pytest.raises(UnknownSecret):
        secrets.remove_secret(name="shop.token", by=stranger.by)
    theirs = secrets.set_secret(name="shop.token", value="of the stranger", by=stranger.by)

    assert theirs.tenant_id != operator.by.tenant_id
    assert theirs.number == 1


# Over REST.


def test_a_secret_is_set_and_removed_over_rest_and_never_answered(caller: Caller) -> None:
    made = caller.put("/secrets/shop.token", {"value": TOKEN})
    again = caller.put("/secrets/shop.token", {"value": "another-value"})
    listed = caller.get("/secrets")
    gone = caller.delete("/secrets/shop.token")

    assert (made.status_code, again.status_code, listed.status_code, gone.status_code) == (201, 200, 200, 204)
    assert again.json()["data"]["number"] == 2
    assert [each["name"] for each in listed.json()["data"]["secrets"]] == ["shop.token"]
    for answer in (made, again, listed):
        assert "another-value" not in answer.content.decode()
        assert json.dumps(TOKEN)[1:-1] not in answer.content.decode()
    assert_problem(caller.delete("/secrets/shop.token"), 404, "SECRET.UNKNOWN")
