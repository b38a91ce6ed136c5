"""Stand-ins: is a model that stands in for another one asked what was decided about it, and nothing that was decided about the
other?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from registry.model_prefixes.services import set_prefix
from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import change_provider, connect_provider
from tests.support.calls import assert_problem, row_of
from tests.support.model_calls import ask, leaf_of, say
from tests.support.model_outages import chat_reply
from tests.support.model_servers import Reply, json_reply, model_server
from tests.support.policies_in_force import degrade, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Caller, Person
    from tests.support.model_servers import ModelServer

pytestmark = pytest.mark.django_db
EMAIL = "ann@example.org"
TRUSTED, ABROAD = "model.trusted.main", "model.abroad.main"
RANKED = {"options": {"rerank": "cohere"}}
BUSY = json_reply({"error": {"message": "overloaded", "type": "server_error"}}, 503)
VECTORS = json_reply(
    {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [3.0, 4.0]}], "model": "small-2"}
)
SCORES = json_reply({"model": "small-2", "results": [{"index": 0, "relevance_score": 0.5}]})
# What is asked for in one piece, and in pieces too: operation, arguments, what a server answers.
WHOLE: list[tuple[str, dict[str, Any], Reply]] = [
    ("embed", {"items": [f"Write to {EMAIL}."]}, VECTORS),
    ("rerank", {"query": f"Who is {EMAIL}?", "candidates": [f"It is {EMAIL}."]}, SCORES),
]
OPERATIONS = [("chat", say(f"Write to {EMAIL}."), chat_reply("From abroad")), *WHOLE]


@pytest.fixture
def trusted(operator: Person, grant: Callable[..., Any], settings: Any) -> Iterator[ModelServer]:
    """It may be sent personal data, and is busy."""
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    grant("model.*")
    with model_server(BUSY) as server:
        connect_to(server, "trusted", operator, data_classes=["personal"])
        yield server


@pytest.fixture
def abroad(operator: Person, trusted: ModelServer) -> Iterator[ModelServer]:
    """It may be sent none."""
    with model_server(chat_reply("From abroad", model="small-2")) as server:
        connect_to(server, "abroad", operator)
        yield server


def connect_to(server: ModelServer, name: str, operator: Person, **terms: Any) -> None:
    said: dict[str, Any] = {"kind": "openai_compatible", "settings": RANKED | {"retries": 0}, **terms}
    connect_provider(name=name, address=f"{server.url}/v1", reason="for a test", by=operator.by, **said)


def connect_both(operator: Person, operation: str = "chat") -> None:
    said: dict[str, Any] = {"alias": "main", "operation": operation, "unpriced": "count", "reason": "for a test"}
    connect_model(provider="abroad", model="small-2", by=operator.by, **said)
    connect_model(provider="trusted", model="small-1", fallbacks=[ABROAD], by=operator.by, **said)


@pytest.mark.req("LLM-14", "LLM-4")
@pytest.mark.parametrize(("operation", "arguments", "reply"), OPERATIONS)
def test_a_fallback_is_never_sent_what_only_the_asked_models_provider_may_have(
    operation: str,
    arguments: dict[str, Any],
    reply: Reply,
    caller: Caller,
    operator: Person,
    trusted: ModelServer,
    abroad: ModelServer,
) -> None:
    connect_both(operator, operation)
    abroad.answer = lambda _: reply

    answer = ask(caller, arguments, model=TRUSTED, operation=operation)

    assert answer.status_code == 200, answer.content
    assert EMAIL in str(trusted.bodies)
    assert (EMAIL in str(abroad.bodies), "[redacted:email 1]" in str(abroad.bodies)) == (False, True)
    assert any("masked" in each for each in answer.json()["warnings"])


@pytest.mark.req("LLM-14", "LLM-12")
def test_a_fallback_is_sent_the_tenants_own_text_once_and_first(
    caller: Caller, operator: Person, trusted: ModelServer, abroad: ModelServer
) -> None:
    set_prefix(text="Quokkaprefix: be kind.", reason="for a test", by=operator.by)
    connect_both(operator)

    answer = ask(caller, say("Hello"), model=TRUSTED)

    assert answer.json()["data"]["text"] == "From abroad"
    for server in (trusted, abroad):
        [body] = server.bodies
        assert [each["role"] for each in body["messages"]] == ["system", "user"]
        assert str(body).count("Quokkaprefix") == 1
    assert "Quokkaprefix" not in answer.content.decode()
    assert leaf_of(row_of(answer), "invocation.began")["model"]["prefix"]["tokens"] > 0


@pytest.mark.req("LLM-14")
def test_a_model_in_whose_place_policy_wants_another_one_stands_in_for_nobody(
    caller: Caller, operator: Person, trusted: ModelServer, abroad: ModelServer
) -> None:
    connect_both(operator)
    put_in_force(permit(), degrade(ABROAD, answered_by=TRUSTED))

    answer = ask(caller, say("Hello"), model=TRUSTED)

    assert_problem(answer, 503, "PROVIDER.UNAVAILABLE")
    assert abroad.heard == []


@pytest.mark.req("LLM-14", "LLM-4")
def test_where_policy_has_another_model_answer_the_begin_says_what_that_one_is_sent(
    caller: Caller, operator: Person, trusted: ModelServer, abroad: ModelServer
) -> None:
    connect_both(operator)
    put_in_force(permit(), degrade(TRUSTED, answered_by=ABROAD))

    answer = ask(caller, say(f"Write to {EMAIL}."), model=TRUSTED)

    assert answer.json()["data"]["answered_by"] == ABROAD
    assert trusted.heard == []
    began = leaf_of(row_of(answer), "invocation.began")["model"]
    assert (began["masked"], began.get("data_classes")) == ({"email": 1}, None)


@pytest.mark.req("LLM-14")
@pytest.mark.parametrize(("operation", "arguments", "reply"), WHOLE)
def test_vectors_and_scores_are_asked_for_again_like_an_answer_that_was_not_begun(
    operation: str,
    arguments: dict[str, Any],
    reply: Reply,
    caller: Caller,
    operator: Person,
    trusted: ModelServer,
    abroad: ModelServer,
) -> None:
    connect_both(operator, operation)
    change_provider(name="abroad", settings=RANKED | {"retries": 2}, reason="for a test", by=operator.by)
    replies = iter([json_reply({"error": "busy"}, 503, headers={"Retry-After": "0"}), reply])
    abroad.answer = lambda _: next(replies)

    answer = ask(caller, arguments, model=ABROAD, operation=operation)

    assert answer.status_code == 200, answer.content
    assert answer.json()["data"]["usage"]["requests"] == len(abroad.heard) == 2
