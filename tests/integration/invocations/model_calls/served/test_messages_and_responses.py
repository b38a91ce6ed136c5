"""Messages and responses: is what is wrong with a body told in the error shape of its own format, with the hub's reason beside?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Invocation
from tests.support.calls import PAIR, kinds_of
from tests.support.model_calls import parse_events
from tests.support.served_formats import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db

MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"
TURNS = [{"role": "user", "content": "Hi"}]


def build_body(path: str, **more: Any) -> dict[str, Any]:
    least = {"max_tokens": 50, "messages": TURNS} if path == MESSAGES else {"input": "Hi"}
    return {"model": MODEL, **least, **more}


def show(source: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}


def show_part(url: str) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]}


WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    (MESSAGES, {"model": "nobody"}, 404, "MODEL.UNKNOWN"),
    (RESPONSES, {"model": "model.script.other"}, 404, "TOOL.UNKNOWN"),
    (MESSAGES, {"surprise": 1}, 400, "SCHEMA.VALIDATION_FAILED"),
    (RESPONSES, {"surprise": 1}, 400, "SCHEMA.VALIDATION_FAILED"),
    (MESSAGES, {"max_tokens": 10**6}, 400, "SCHEMA.VALIDATION_FAILED"),
    (RESPONSES, {"max_output_tokens": 10**6}, 400, "SCHEMA.VALIDATION_FAILED"),
    (MESSAGES, {"tools": [{"name": "mine", "input_schema": {"type": "object"}}]}, 400, "LLM.FOREIGN_TOOL"),
    (RESPONSES, {"tools": [{"type": "function", "name": "mine"}]}, 400, "LLM.FOREIGN_TOOL"),
    (RESPONSES, {"previous_response_id": "resp_1"}, 400, "LLM.UNSUPPORTED"),
    (RESPONSES, {"store": True}, 400, "LLM.UNSUPPORTED"),
    (MESSAGES, show({"type": "url", "url": "http://127.0.0.1/x.png"}), 400, "LLM.UNSUPPORTED"),
    (RESPONSES, show_part("http://127.0.0.1/x.png"), 400, "LLM.UNSUPPORTED"),
    (
        MESSAGES,
        {"max_tokens": 50, "thinking": {"type": "enabled", "budget_tokens": 50}},
        400,
        "SCHEMA.VALIDATION_FAILED",
    ),
]


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(("path", "more", "status", "reason"), WRONG)
def test_a_body_with_a_mistake_is_refused_in_its_own_format_and_nothing_is_sent(
    path: str,
    more: dict[str, Any],
    status: int,
    reason: str,
    caller: Caller,
    connect: Callable[..., Tool],
    grant: Callable[..., Any],
    bench: ProviderBench,
) -> None:
    grant("model.*")
    connect(max_output_tokens=100, default_output_tokens=50)
    answer = caller.ask(path, build_body(path, **more))

    assert (answer.status_code, answer.headers["X-Hub-Reason"]) == (status, reason)
    check_shape(path, answer.json())
    assert bench.provider is None
    assert all(kinds_of(call) == PAIR for call in Invocation.objects.all())


def check_shape(path: str, body: dict[str, Any]) -> None:
    error = body["error"]
    if path == MESSAGES:
        assert (set(body), set(error)) == ({"type", "error", "hub"}, {"type", "message"})
    else:
        assert (set(body), set(error)) == ({"error", "hub"}, {"type", "message", "code", "param"})


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_a_body_that_is_no_json_or_too_large_is_refused_in_its_own_format(
    path: str, caller: Caller, model: Tool
) -> None:
    broken = caller.ask(path, '{"model": ')
    large = caller.ask(path, build_body(path, **show_part("data:image/png;base64," + "A" * 2**25)))

    assert (broken.status_code, broken.headers["X-Hub-Reason"]) == (400, "REQUEST.MALFORMED")
    assert (large.status_code, large.headers["X-Hub-Reason"]) == (413, "REQUEST.TOO_LARGE")
    for answer in (broken, large):
        check_shape(path, answer.json())


@pytest.mark.req("TOOLS-15", "TOOLS-18")
@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_who_may_not_ask_is_told_in_the_format_and_the_refusal_has_its_pair(
    path: str, caller: Caller, connect: Callable[..., Tool], bench: ProviderBench
) -> None:
    connect()

    answer = caller.ask(path, build_body(path))

    assert (answer.status_code, answer.headers["X-Hub-Reason"]) == (403, "AUTH.NO_GRANT")
    assert answer.headers["X-Should-Retry"] == "false"
    check_shape(path, answer.json())
    assert kinds_of(Invocation.objects.get()) == PAIR


@pytest.mark.req("LLM-1", "SPEC-9")
@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
def test_a_key_that_was_used_gives_the_same_answer_again_in_the_format_that_is_asked_for(
    path: str, caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    key = {"Idempotency-Key": "once"}
    first = caller.ask(path, build_body(path), **key)
    again = caller.ask(path, build_body(path, stream=True), **key)

    assert (first.status_code, again.status_code, len(bench.requests)) == (200, 200, 1)
    assert again.headers["X-Hub-Call"] == first.headers["X-Hub-Call"]
    last, data = parse_events(again.content.decode())[-1]
    if path == RESPONSES:
        assert (last, data["response"]) == ("response.completed", first.json())
    else:
        assert last == "message_stop"
