"""Manifest enforcement: does the hub keep to what a manifest says of models, sunsets, depth, its name and its entry?"""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.decide.decision_input import build_attributes
from kernel.ids import new_id
from registry.problems import ManifestInvalid, ModelUnsupported
from registry.tools.callability import check_model
from registry.versions import services as registry
from tests.support.calls import assert_problem
from tests.support.manifests import manifest
from unitools import checks

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
ECHO, PLANS = "sample.tools.echo", "sample.tools.plans"
ADVICE = "Use another text."
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}, "old": {"type": "string"}}}
OLD, SUNSET_OF_REQUIRED = "/input_schema/properties/old", "deprecations.sunset_of_required"


MODELS = [
    ("openai:gpt-4o", "openai:gpt-4o", True),
    ("openai:gpt-4o", "gpt-4o", True),
    ("openai:gpt-4o", "anthropic:gpt-4o", False),
    ("openai:gpt-4o", "claude-sonnet-4-5", False),
    ("ollama:llama3:8b", "llama3:8b", True),
    ("ollama:llama3:8b", "Ollama:llama3:8b", True),
    ("ollama:llama3:8b", "llama3:70b", False),
    ("ollama:llama3:8b", "8b", False),
]


def deprecated(pointer: str, days: int) -> dict[str, Any]:
    day = datetime.now(UTC).date() + timedelta(days=days)
    return {"deprecations": [{"pointer": pointer, "since": "1.0.0", "advice": ADVICE, "sunset": day.isoformat()}]}


def rules_of(**changes: Any) -> set[str]:
    return {each.rule for each in checks.check_manifest(manifest("echo", **changes)) if each.severity == "error"}


def client(model: str) -> dict[str, Any]:
    return {"client": {"app": "test", "model": model}}


@pytest.mark.req("TOOLS-6")
@pytest.mark.parametrize("pointer", ["", OLD])
def test_a_sunset_that_has_come_is_not_registered(pointer: str) -> None:
    assert rules_of(input_schema=SCHEMA, **deprecated(pointer, 0)) == {"deprecations.sunset"}
    assert rules_of(input_schema=SCHEMA, **deprecated(pointer, 1)) == set()


@pytest.mark.req("TOOLS-6")
def test_a_sunset_of_an_argument_that_every_call_needs_is_not_registered() -> None:
    deep = {"type": "object", "properties": {"in": SCHEMA | {"required": ["old"]}}}

    assert rules_of(input_schema=SCHEMA | {"required": ["old"]}, **deprecated(OLD, 9)) == {SUNSET_OF_REQUIRED}
    assert rules_of(input_schema=deep, **deprecated("/input_schema/properties/in/properties/old", 9)) == {
        SUNSET_OF_REQUIRED
    }
    assert rules_of(input_schema=deep, **deprecated("/input_schema/properties/in", 9)) == set()


def test_a_sunset_of_what_nothing_could_refuse_is_not_registered() -> None:
    assert rules_of(**deprecated("/output_schema", 9)) == {"deprecations.sunset_of"}


@pytest.mark.req("TOOLS-6")
def test_a_tool_answers_with_a_warning_until_the_sunset_of_its_manifest_and_is_refused_from_then(
    enable: Callable[..., Tool],
    caller: Caller,
    grant: Callable[..., Any],
    bell: Bell,
    registered_before_its_sunset: None,
) -> None:
    enable("echo", **deprecated("", 0))
    enable("plans", **deprecated("", 1))
    grant()

    refused = assert_problem(caller.invoke(ECHO, {"text": "x"}), 410, "TOOL.RETIRED")
    assert refused["error"]["remedy"] == ADVICE
    assert any(ADVICE in each for each in caller.get(f"/tools/{PLANS}").json()["warnings"])
    assert [each["id"] for each in caller.get("/tools").json()["data"]["tools"]] == [PLANS]
    assert list(caller.get("/tools?dialect=openai").json()["data"]["names"].values()) == [PLANS]


def test_an_argument_is_refused_from_its_sunset(
    enable: Callable[..., Tool],
    caller: Caller,
    grant: Callable[..., Any],
    bell: Bell,
    registered_before_its_sunset: None,
) -> None:
    enable("echo", input_schema=SCHEMA, **deprecated(OLD, 0))
    grant()

    body = assert_problem(caller.invoke(ECHO, {"text": "x", "old": "x"}), 410, "TOOL.RETIRED")
    assert body["error"]["details"]["pointer"] == "/old"
    assert caller.invoke(ECHO, {"text": "x"}, request_id="test-request-2").status_code == 200


@pytest.mark.req("TOOLS-6")
@pytest.mark.parametrize(("meant", "model", "may"), MODELS)
def test_a_tool_is_offered_to_and_called_by_the_models_that_it_is_meant_for(
    meant: str,
    model: str,
    may: bool,
    enable: Callable[..., Tool],
    caller: Caller,
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    enable("echo", provider_compat={"models": [meant]})
    grant()

    offered = caller.get(f"/tools?model={model}").json()
    called = caller.invoke(ECHO, {"text": "x"}, **client(model))

    assert list(offered["data"]["names"].values()) == ([ECHO] if may else [])
    if may:
        assert called.status_code == 200, called.content
    else:
        body = assert_problem(called, 409, "TOOL.MODEL_UNSUPPORTED")
        assert body["error"]["details"] == {"models": [meant]}
        assert "TOOL.MODEL_UNSUPPORTED" in offered["warnings"][0]


@pytest.mark.parametrize(("meant", "model", "may"), [*MODELS, ("", "gpt-4o", True), ("", "", True)])
def test_policies_find_a_model_compatible_when_the_tool_may_be_called_by_it(meant: str, model: str, may: bool) -> None:
    meant_for: Any = SimpleNamespace(id=ECHO, models=[meant] if meant else [])
    version: Any = SimpleNamespace(manifest=meant_for, attributes={})
    call: Any = SimpleNamespace(
        envelope=SimpleNamespace(client={"model": model}, dry_run=False, user_id=""), origin="api"
    )
    decision_context: Any = SimpleNamespace(agent_id=new_id(), agent_name="a", at=datetime.now(UTC), installed=None)

    found = build_attributes(call, version, decision_context, size=2, consent=False)

    assert found["model_compatible"] is may
    with nullcontext() if may else pytest.raises(ModelUnsupported):
        check_model(meant_for, model)


def test_who_names_no_model_calls_every_tool(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], bell: Bell
) -> None:
    enable("echo", provider_compat={"models": ["openai:gpt-4o"]})
    grant()

    assert caller.invoke(ECHO, {"text": "x"}).status_code == 200


@pytest.mark.req("TOOLS-5")
def test_arguments_that_are_nested_deeper_than_the_manifest_takes_are_refused(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], bell: Bell
) -> None:
    enable("echo", input_schema={"type": "object"}, limits={"depth": 3})
    grant()

    body = assert_problem(caller.invoke(ECHO, {"a": {"b": {"c": {}}}}), 422, "SCHEMA.VALIDATION_FAILED")
    assert body["error"]["message"] == "The arguments are nested 4 levels deep; this tool takes 3."
    assert caller.invoke(ECHO, {"a": {"b": ["[[[["]}}, request_id="test-request-2").status_code == 200


@pytest.mark.req("TOOLS-2")
def test_the_name_is_the_last_segment_of_the_id(enable: Callable[..., Tool], caller: Caller) -> None:
    document = manifest("echo")
    assert {each.rule for each in checks.check_manifest(document | {"name": "other"})} >= {"name.of_id"}
    assert checks.check_manifest(document | {"name": "echo"}) == checks.check_manifest(document)

    enable("echo")
    assert caller.get(f"/tools/{ECHO}").json()["data"]["name"] == "echo"


@pytest.mark.req("TOOLS-8")
def test_an_entry_that_is_not_there_is_found_at_registration(developer: Person) -> None:
    document = manifest("echo")
    document["implementation"]["entry"] = "no_such_function"

    with pytest.raises(ManifestInvalid) as refused:
        registry.submit_version(document=document, by=developer.by)

    [finding] = [each for each in refused.value.details["findings"] if each["severity"] == "error"]
    assert finding["pointer"] == "/implementation/entry"
    assert "has no function 'no_such_function'" in finding["message"]
