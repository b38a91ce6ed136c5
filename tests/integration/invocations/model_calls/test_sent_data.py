"""Sent data: what of a caller's data is a model's provider sent, and who decides about it?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from access.consents import services as consents
from access.models import Consent
from evidence.models import Fact
from invocations.model_calls.request_data import RequestData
from invocations.model_calls.sent_data import prepare_sent_request
from llm.messages import Text, UserMessage
from llm.problems import SensitiveBlocked
from llm.requests import ChatRequest
from registry.models import ModelProvider
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.connected_models import connect_scripted_model, connect_scripted_provider
from tests.support.model_calls import MODEL, ask, build_body, say
from tests.support.policies_in_force import forbid, permit, put_in_force
from unitools.calls import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.models import Invocation
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db

EMAIL, CARD = "ann@example.org", "4111 1111 1111 1111"
TEXT = f"Write to {EMAIL} about the card {CARD}."
SENSITIVE = {
    "id": "sensitive",
    "effect": "consent",
    "when": {"allow_sensitive": {"equals": True}},
    "consent": {"mode": "period", "validity_s": 3600},
}


@pytest.fixture
def connected(operator: Person, grant: Callable[..., Any], bench: ProviderBench) -> Callable[..., Tool]:
    """``connected("personal", operation="embed")``: the model of a provider that may be sent these classes of data."""
    grant("model.*")

    def make(*data_classes: str, **terms: Any) -> Tool:
        connect_scripted_provider(operator.by, data_classes=list(data_classes))
        return connect_scripted_model(operator.by, unpriced="count", **terms)

    return make


def sent(bench: ProviderBench, place: int = -1) -> str:
    """All that the provider was sent, as text."""
    assert bench.provider is not None
    provider = bench.provider
    return repr([*provider.chat.requests, *provider.embedder.requests, *provider.ranker.requests][place])


def asked_in(call: Invocation) -> dict[str, Any]:
    """What the Begin fact says of the model that was asked."""
    began = json.loads(bytes(Fact.objects.get(invocation_id=call.pk, kind="invocation.began").leaf))
    found: dict[str, Any] = began["data"]["model"]
    return found


def agree(person: Person) -> Consent:
    """A person agrees to the one request that waits."""
    consent = Consent.objects.get()
    consents.approve_consent(consent_id=consent.pk, reason="I know it.", by=person.by)
    return consent


@pytest.mark.req("LLM-4")
def test_what_a_provider_may_not_be_sent_is_masked_and_the_answer_says_how_much(
    caller: Caller, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected("payment")

    answer = ask(caller, say(TEXT, f"Again: {EMAIL}"))

    assert answer.status_code == 200, answer.content
    [request] = bench.requests
    texts = [segment.text for message in request.messages for segment in message.segments]
    assert texts == [f"Write to [redacted:email 1] about the card {CARD}.", "Again: [redacted:email 1]"]
    assert answer.json()["warnings"] == [
        "Before the model was asked, sensitive data in the request were masked: 2 email."
    ]
    began = asked_in(row_of(answer))
    assert (began["masked"], began["data_classes"]) == ({"email": 2}, ["payment"])
    assert "by_consent" not in began


@pytest.mark.req("LLM-4")
def test_what_a_provider_may_be_sent_goes_to_it_as_it_is(
    caller: Caller, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected("personal", "payment")

    answer = ask(caller, say(TEXT))

    assert (EMAIL in sent(bench), CARD in sent(bench)) == (True, True)
    assert answer.json()["warnings"] == []
    began = asked_in(row_of(answer))
    assert (began["data_classes"], "masked" in began) == (["payment", "personal"], False)


@pytest.mark.req("LLM-4")
def test_results_of_tools_arguments_of_calls_and_system_messages_are_masked_as_well(
    caller: Caller, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected()
    proposal = {"call_id": "call_1", "name": "crm.find", "arguments": {"to": [EMAIL], EMAIL: "x"}}
    messages = [
        {"role": "system", "segments": [{"type": "text", "text": f"You help {EMAIL}."}]},
        {"role": "user", "segments": [{"type": "text", "text": "Go on."}]},
        {"role": "assistant", "segments": [{"type": "text", "text": EMAIL}], "proposals": [proposal]},
        {"role": "tool", "call_id": "call_1", "segments": [{"type": "text", "text": f"found {EMAIL}"}]},
    ]

    answer = ask(caller, {"messages": messages})

    assert answer.status_code == 200, answer.content
    assert EMAIL not in sent(bench)
    assert sent(bench).count("[redacted:email 1]") == 5
    assert asked_in(row_of(answer))["masked"] == {"email": 5}


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("embed", {"items": [TEXT]}),
        ("rerank", {"query": TEXT, "candidates": [f"It is {EMAIL}."]}),
    ],
)
def test_items_query_and_candidates_are_masked(
    caller: Caller, connected: Callable[..., Tool], bench: ProviderBench, operation: str, arguments: dict[str, Any]
) -> None:
    connected(operation=operation)

    answer = ask(caller, arguments, operation=operation)

    assert answer.status_code == 200, answer.content
    assert EMAIL not in sent(bench)
    assert CARD not in sent(bench)
    assert set(asked_in(row_of(answer))["masked"]) == {"email", "card"}


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"stop": [EMAIL]}, "/stop"),
        (
            {"response_format": {"type": "schema", "json_schema": {"type": "object", "description": f"for {EMAIL}"}}},
            "/response_format/json_schema",
        ),
    ],
)
def test_what_would_mean_something_else_without_its_data_is_refused(
    caller: Caller, connected: Callable[..., Tool], bench: ProviderBench, more: dict[str, Any], place: str
) -> None:
    connected()

    answer = ask(caller, say("Hello", **more))

    problem = assert_problem(answer, 403, "LLM.SENSITIVE_BLOCKED")["error"]
    assert [each["pointer"] for each in problem["details"]["findings"]] == [place]
    assert EMAIL not in answer.content.decode()
    assert kinds_of(row_of(answer)) == PAIR
    assert bench.provider is None


@pytest.mark.req("LLM-4")
def test_a_result_of_a_tool_is_of_the_classes_that_its_manifest_names(
    caller: Caller, connected: Callable[..., Tool], enable: Callable[..., Tool], bench: ProviderBench
) -> None:
    enable("echo", data_classes=["health"])
    connected("personal")
    proposal = {"call_id": "call_1", "name": "sample.tools.echo", "arguments": {}}
    messages = [
        {"role": "assistant", "proposals": [proposal]},
        {"role": "tool", "call_id": "call_1", "segments": [{"type": "text", "text": "a diagnosis"}]},
    ]

    answer = ask(caller, {"messages": messages})

    problem = assert_problem(answer, 403, "LLM.SENSITIVE_BLOCKED")["error"]
    assert problem["details"]["data_classes"] == ["health"]
    assert [each["pointer"] for each in problem["details"]["findings"]] == ["/messages/1"]
    assert bench.provider is None


@pytest.mark.req("LLM-4")
def test_a_result_goes_to_a_provider_that_may_have_its_class(
    caller: Caller, connected: Callable[..., Tool], enable: Callable[..., Tool], bench: ProviderBench
) -> None:
    enable("echo", data_classes=["health"])
    connected("health")
    proposal = {"call_id": "call_1", "name": "sample.tools.echo", "arguments": {}}
    segments = [{"type": "text", "text": "a diagnosis"}]
    messages = [
        {"role": "assistant", "proposals": [proposal]},
        {"role": "tool", "call_id": "call_1", "segments": segments},
    ]

    answer = ask(caller, {"messages": messages})

    assert "a diagnosis" in sent(bench)
    assert asked_in(row_of(answer))["data_classes"] == ["health"]


@pytest.mark.req("LLM-4")
def test_obligations_hold_for_what_a_model_is_sent_whatever_its_provider_may_have(
    caller: Caller, tenant: Any, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected("personal", "payment")
    rules = [{"action": "mask", "detector": "email"}, {"action": "redact", "detector": "card"}]
    put_in_force(permit(), {"id": "hide", "effect": "oblige", "when": {}, "obligations": rules}, tenant=tenant)

    answer = ask(caller, say(TEXT))

    assert answer.status_code == 200, answer.content
    [request] = bench.requests
    assert request.messages[0].segments[0].text == "Write to a***@e***.org about the card [redacted:card 1]."
    assert asked_in(row_of(answer))["masked"] == {"card": 1, "email": 1}


@pytest.mark.req("LLM-4")
def test_a_policy_refuses_where_masking_is_not_enough(
    caller: Caller, tenant: Any, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected()
    rule = {"id": "no-cards", "effect": "forbid", "when": {"data_classes": {"contains": "payment"}}}
    put_in_force(permit(), rule, tenant=tenant)

    blocked, fine = ask(caller, say(TEXT)), ask(caller, say("Hello"))

    problem = assert_problem(blocked, 403, "LLM.SENSITIVE_BLOCKED")["error"]
    assert problem["details"]["rules"] == ["tenant@1#no-cards"]
    assert fine.status_code == 200, fine.content
    assert len(bench.requests) == 1


@pytest.mark.req("LLM-4")
def test_nobody_lets_sensitive_data_go_without_a_policy_about_it(
    caller: Caller, tenant: Any, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected()
    other = SENSITIVE | {"when": {"tool": {"equals": MODEL}}}
    put_in_force(permit(), other, tenant=tenant)
    ask(caller, say(TEXT), on_consent="ask", purpose="to answer customers")
    assert Consent.objects.count() == 1

    answer = ask(caller, say(TEXT, allow_sensitive=True))

    assert answer.status_code == 403
    assert bench.provider is None


@pytest.mark.req("LLM-4")
def test_sensitive_data_go_as_they_are_once_a_person_has_agreed_as_a_policy_wants(
    caller: Caller, tenant: Any, operator: Person, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected("payment")
    put_in_force(permit(), SENSITIVE, tenant=tenant)

    first = ask(caller, say(TEXT, allow_sensitive=True), on_consent="ask", purpose="to answer customers")

    problem = assert_problem(first, 403, "POLICY.CONSENT_REQUIRED")["error"]
    assert problem["details"]["data_classes"] == ["personal"]
    assert bench.provider is None
    consent = agree(operator)
    assert set(consent.data_classes) == {"payment", "personal"}

    second = ask(caller, say(TEXT, allow_sensitive=True))

    assert second.status_code == 200, second.content
    assert EMAIL in sent(bench)
    began = asked_in(row_of(second))
    assert (began["by_consent"], began["data_classes"]) == (["personal"], ["payment", "personal"])
    assert row_of(second).consent_id == consent.pk
    third = ask(caller, say(TEXT))
    assert (third.status_code, EMAIL in sent(bench)) == (200, False)


@pytest.mark.req("LLM-4")
def test_a_consent_covers_the_classes_of_data_that_the_person_was_shown(
    caller: Caller, tenant: Any, operator: Person, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected()
    put_in_force(permit(), SENSITIVE, tenant=tenant)
    ask(caller, say(f"Write to {EMAIL}.", allow_sensitive=True), on_consent="ask", purpose="to answer customers")
    agree(operator)

    answer = ask(caller, say(TEXT, allow_sensitive=True))

    problem = assert_problem(answer, 403, "POLICY.CONSENT_REQUIRED")["error"]
    assert [each["why"] for each in problem["details"]["others"]] == ["other_data"]
    assert bench.provider is None


@pytest.mark.req("LLM-4")
def test_without_a_policy_about_it_allow_sensitive_is_refused_with_what_to_do(
    caller: Caller, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected("personal", "payment")

    answer = ask(caller, say(TEXT, allow_sensitive=True))

    problem = assert_problem(answer, 403, "LLM.SENSITIVE_BLOCKED")["error"]
    assert "allow_sensitive" in problem["remedy"]
    assert bench.provider is None


@pytest.mark.req("LLM-4")
def test_a_preflight_says_what_would_be_masked(caller: Caller, connected: Callable[..., Tool]) -> None:
    connected()

    answer = caller.post(f"/models/{MODEL}/preflight", build_body(caller, say(TEXT)))

    assert answer.json()["data"]["model"]["masked"] == {"card": 1, "email": 1}


@pytest.mark.req("LLM-4")
def test_tools_that_a_caller_has_described_itself_are_looked_through() -> None:
    request = ChatRequest(model="main", messages=(UserMessage((Text("Hello"),)),))
    own = ToolSpec("own.mail", f"Writes to {EMAIL}.", {"type": "object"})

    with pytest.raises(SensitiveBlocked) as found:
        prepare_sent_request(request, RequestData({"email": 1}, own_tools=[own]), ModelProvider(data_classes=[]), [])

    assert [each["pointer"] for each in found.value.details["findings"]] == ["/tools"]
    assert EMAIL not in str(found.value.to_error())


@pytest.mark.req("LLM-4")
def test_reasoning_of_any_server_that_goes_back_to_its_provider_is_looked_through(
    caller: Caller, connected: Callable[..., Tool]
) -> None:
    connected("personal")
    said = [{"type": "text", "text": "Hm."}]
    state = {"provider": "script", "data": {"reasoning_content": f"They paid with {CARD}."}}
    turns: list[dict[str, Any]] = [{"role": role, "segments": said} for role in ("user", "assistant", "user")]
    turns[1]["provider_state"] = state

    refused = ask(caller, {"messages": turns})

    assert_problem(refused, 403, "LLM.SENSITIVE_BLOCKED")
    assert refused.json()["error"]["details"]["findings"][0]["pointer"] == "/messages/1/provider_state"


@pytest.mark.req("LLM-4")
def test_reasoning_that_goes_back_to_its_provider_is_looked_through_and_not_changed_but_refused(
    caller: Caller, connected: Callable[..., Tool], bench: ProviderBench
) -> None:
    connected("personal")

    def build(content: str, signature: str) -> dict[str, Any]:
        state = {"provider": "script", "data": [{"content": content, "signature": signature, "part_kind": "thinking"}]}
        said = [{"type": "text", "text": "Hm."}]
        turns = [
            {"role": "user", "segments": said},
            {"role": "assistant", "segments": said, "provider_state": state},
            {"role": "user", "segments": said},
        ]
        return {"messages": turns}

    refused = ask(caller, build(f"They paid with {CARD}.", "sealed"))
    put_in_force(permit(), forbid("no-mail", data_classes={"contains": "personal"}))
    forbidden = ask(caller, build(f"Write to {EMAIL}.", "sealed"))
    signed = ask(caller, build("They paid.", CARD))

    assert_problem(refused, 403, "LLM.SENSITIVE_BLOCKED")
    assert refused.json()["error"]["details"]["findings"][0]["pointer"] == "/messages/1/provider_state"
    assert CARD not in refused.content.decode()
    assert_problem(forbidden, 403, "LLM.SENSITIVE_BLOCKED")
    assert signed.status_code == 200, signed.content
    assert len(bench.requests) == 1


@pytest.mark.req("LLM-4")
def test_a_result_is_that_of_the_proposal_before_it_where_answers_give_the_same_ids_again(
    caller: Caller, connected: Callable[..., Tool], enable: Callable[..., Tool], bench: ProviderBench
) -> None:
    enable("echo", data_classes=["health"])
    connected("personal")
    messages: list[dict[str, Any]] = []
    for name in ("sample.tools.echo", "sample.tools.other"):
        messages += [
            {"role": "assistant", "proposals": [{"call_id": "call_0", "name": name, "arguments": {}}]},
            {"role": "tool", "call_id": "call_0", "segments": [{"type": "text", "text": "a diagnosis"}]},
        ]

    problem = assert_problem(ask(caller, {"messages": messages}), 403, "LLM.SENSITIVE_BLOCKED")["error"]

    assert [each["pointer"] for each in problem["details"]["findings"]] == ["/messages/1"]
    assert bench.provider is None
