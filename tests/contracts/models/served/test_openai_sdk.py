"""OpenAI's SDK: does OpenAI's own SDK work with the hub as with OpenAI?"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from base64 import b64decode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest
from pydantic import BaseModel

from tests.contracts.models.served.provider import HELLO, VECTOR
from tests.mcp_conformance.arrange import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contracts.models.served.conftest import ServedHub

MAIN, OPEN = "model.mock.main", "open"
GREET = f"{PREFIX}greet"
MiB = 1024 * 1024


class Weather(BaseModel):
    city: str
    degrees: int


@pytest.fixture
def client(served: ServedHub) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key=served.key, max_retries=0) as made:
        yield made


def ask(client: openai.OpenAI, text: str = "Hello", **more: Any) -> Any:
    return client.chat.completions.create(**{"model": MAIN, "messages": [{"role": "user", "content": text}], **more})


def list_tools(served: ServedHub) -> list[dict[str, Any]]:
    """As the hub shows them to a model that speaks this format."""
    answer = httpx.get(
        f"{served.url}/api/v1/tools?dialect=openai", headers={"Authorization": f"Bearer {served.key}"}, trust_env=False
    )
    found: list[dict[str, Any]] = answer.json()["data"]["tools"]
    return found


@pytest.mark.req("LLM-1", "LLM-5")
def test_a_whole_answer_and_a_stream_say_the_same(client: openai.OpenAI) -> None:
    whole = ask(client)
    with ask(client, stream=True, stream_options={"include_usage": True}) as stream:
        chunks = list(stream)

    assert whole.choices[0].message.content == HELLO
    assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == HELLO
    assert [each.choices[0].finish_reason for each in chunks if each.choices][-1] == whole.choices[0].finish_reason
    assert whole.usage.total_tokens == chunks[-1].usage.total_tokens == 7
    assert len(chunks) > 4  # they came one by one


@pytest.mark.req("LLM-1")
def test_the_asynchronous_client_gets_the_same(served: ServedHub) -> None:
    async def story() -> tuple[str, str]:
        async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key=served.key) as client:
            asked: Any = {"model": MAIN, "messages": [{"role": "user", "content": "Hello"}]}
            whole = await client.chat.completions.create(**asked)
            texts = [
                each.choices[0].delta.content or ""
                async for each in await client.chat.completions.create(**asked, stream=True)
            ]
            return whole.choices[0].message.content or "", "".join(texts)

    assert asyncio.run(story()) == (HELLO, HELLO)


@pytest.mark.req("LLM-2", "LLM-3")
def test_a_tool_is_proposed_dispatched_through_the_hub_and_answered_in_a_second_turn(
    client: openai.OpenAI, served: ServedHub
) -> None:
    tools = list_tools(served)
    messages: list[Any] = [{"role": "user", "content": "Greet both of us."}]

    first = client.chat.completions.create(model=MAIN, messages=messages, tools=tools)  # type: ignore[arg-type]
    dispatched = httpx.post(
        f"{served.url}/api/v1/dispatch",
        json={
            "request_id": "sdk-loop-1",
            "actor": {"type": "agent", "id": "served"},
            "dialect": "openai",
            "response": first.model_dump(exclude={"hub"}),
        },
        headers={"Authorization": f"Bearer {served.key}"},
        timeout=60,
        trust_env=False,
    ).json()
    messages += [first.choices[0].message, *dispatched["data"]["messages"]]
    second = client.chat.completions.create(model=MAIN, messages=messages, tools=tools)  # type: ignore[arg-type]

    calls = first.choices[0].message.tool_calls or []
    assert first.choices[0].finish_reason == "tool_calls"
    assert [each.function.name for each in calls if each.type == "function"] == [GREET.replace(".", "_")] * 2
    assert "Hello, you!" in (second.choices[0].message.content or "")
    assert second.choices[0].finish_reason == "stop"


@pytest.mark.req("LLM-3", "LLM-5")
def test_a_proposed_call_in_a_stream_is_put_together_by_the_sdk(client: openai.OpenAI, served: ServedHub) -> None:
    with client.chat.completions.stream(
        model=MAIN,
        messages=[{"role": "user", "content": "Greet me."}],
        tools=list_tools(served),  # type: ignore[arg-type]
    ) as stream:
        answer = stream.get_final_completion()

    (call,) = answer.choices[0].message.tool_calls or []
    assert json.loads(call.function.arguments) == {"name": "you"}
    assert answer.choices[0].finish_reason == "tool_calls"


@pytest.mark.req("LLM-8")
def test_an_answer_is_parsed_into_the_type_that_it_was_asked_for(client: openai.OpenAI) -> None:
    answer = client.chat.completions.parse(
        model=MAIN, messages=[{"role": "user", "content": "Weather?"}], response_format=Weather
    )

    assert answer.choices[0].message.parsed == Weather(city="Oslo", degrees=7)


@pytest.mark.req("LLM-6")
def test_vectors_come_as_the_sdk_asks_for_them(client: openai.OpenAI, served: ServedHub) -> None:
    answer = client.embeddings.create(model="vectors", input=["one", "two"])
    raw = httpx.post(
        f"{served.url}/v1/embeddings",
        json={"model": "vectors", "input": "one", "encoding_format": "base64"},
        headers={"Authorization": f"Bearer {served.key}"},
        trust_env=False,
    ).json()

    assert [each.embedding for each in answer.data] == [pytest.approx(VECTOR)] * 2
    assert struct.unpack("<3f", b64decode(raw["data"][0]["embedding"])) == pytest.approx(VECTOR)
    assert answer.usage.prompt_tokens == 4


@pytest.mark.req("LLM-1")
def test_models_are_listed_and_found(client: openai.OpenAI) -> None:
    assert [each.id for each in client.models.list()] == [f"model.mock.{each}" for each in ("main", "open", "vectors")]
    assert client.models.retrieve("main").id == MAIN


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("text", "more", "error", "code"),
    [
        ("Hello", {"model": "nobody"}, openai.NotFoundError, "model_not_found"),
        ("Hello", {"n": 2}, openai.BadRequestError, "unsupported_parameter"),
        ("Hello", {"max_tokens": 5000}, openai.BadRequestError, "SCHEMA.VALIDATION_FAILED"),
        ("You are busy", {}, openai.RateLimitError, "rate_limit_exceeded"),
        ("You are busy", {"stream": True}, openai.RateLimitError, "rate_limit_exceeded"),
        ("This is too long", {}, openai.BadRequestError, "context_length_exceeded"),
        ("Please break off", {}, openai.InternalServerError, "PROVIDER.STREAM_TRUNCATED"),
    ],
)
def test_what_goes_wrong_is_an_error_of_the_class_that_programs_expect(
    text: str, more: dict[str, Any], error: type[openai.APIStatusError], code: str, client: openai.OpenAI
) -> None:
    with pytest.raises(error) as caught:
        ask(client, text, **more)

    assert caught.value.code == code
    assert caught.value.response.headers["x-hub-reason"]


@pytest.mark.req("LLM-5", "LLM-9")
def test_a_stream_that_breaks_off_ends_with_an_error_and_without_the_mark_of_a_good_end(
    client: openai.OpenAI, served: ServedHub
) -> None:
    texts: list[Any] = []
    with pytest.raises(openai.APIError) as caught:
        texts.extend(chunk.choices[0].delta.content for chunk in ask(client, "Please break off", stream=True))
    raw = httpx.post(
        f"{served.url}/v1/chat/completions",
        json={"model": MAIN, "stream": True, "messages": [{"role": "user", "content": "Please break off"}]},
        headers={"Authorization": f"Bearer {served.key}"},
        trust_env=False,
    ).text

    assert any(texts)
    assert caught.value.code == "PROVIDER.STREAM_TRUNCATED"
    assert "[DONE]" not in raw
    assert json.loads(raw.strip().rpartition("data: ")[2])["error"]["code"] == "PROVIDER.STREAM_TRUNCATED"


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("key", "error"), [("narrow", openai.PermissionDeniedError), ("wrong", openai.AuthenticationError)]
)
def test_a_key_that_may_not_ask_is_told_so(key: str, error: type[openai.APIStatusError], served: ServedHub) -> None:
    with (
        openai.OpenAI(base_url=f"{served.url}/v1", api_key=getattr(served, key, key), max_retries=0) as client,
        pytest.raises(error),
    ):
        ask(client)


@pytest.mark.req("LLM-9")
def test_a_body_of_thirty_mebibytes_is_refused_before_it_is_read(served: ServedHub) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 30 * MiB}}
    body = json.dumps({"model": MAIN, "messages": [{"role": "user", "content": [image]}]}).encode()

    answer = httpx.post(
        f"{served.url}/v1/chat/completions",
        content=body,
        headers={"Authorization": f"Bearer {served.key}", "Content-Type": "application/json"},
        trust_env=False,
    )

    assert (answer.status_code, answer.headers["x-hub-reason"]) == (413, "REQUEST.TOO_LARGE")
    assert set(answer.json()["error"]) == {"message", "type", "code", "param"}


@pytest.mark.req("LLM-9")
def test_a_header_of_four_mebibytes_is_refused_while_it_is_read(served: ServedHub) -> None:
    host, port = served.hub.env["TOOLHUB_BIND"].split(":")
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: " + host.encode() + b"\r\nX-Long: " + b"a" * 4 * MiB
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        with suppress(OSError):  # it is not read to its end
            connection.sendall(head)
        said = connection.makefile("rb").read()

    headers, _, body = said.partition(b"\r\n\r\n")
    assert headers.startswith(b"HTTP/1.1 431 ")
    assert b"x-hub-reason: REQUEST.HEAD_TOO_LARGE" in headers
    assert json.loads(body)["error"]["code"] == "REQUEST.HEAD_TOO_LARGE"
