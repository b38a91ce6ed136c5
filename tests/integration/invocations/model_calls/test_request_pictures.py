"""Request pictures: does a picture in a request reach the model by every door, within bounds, and is it kept nowhere?"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from evidence import services as evidence
from invocations.models import Invocation
from llm.messages import ImageRef, Text
from tests.integration.invocations.model_calls.test_canary_words import iter_stored_texts
from tests.integration.invocations.model_calls.test_held_files import ReadingChat, keep, look_at
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.connected_models import connect_scripted_model, connect_scripted_provider
from tests.support.drawn_pictures import draw, to_base64, to_data_url
from tests.support.erasures import opened
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.model_calls import MODEL, ask, build_body, leaf_of
from tests.support.policies_in_force import permit, put_in_force
from tests.support.served_formats import CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
PNG = draw("PNG")
URL = to_data_url(PNG)
PART = {"type": "image_url", "image_url": {"url": URL}}
SOURCE = {"type": "base64", "media_type": "image/png", "data": to_base64(PNG)}
DOORS: dict[str, tuple[str, dict[str, Any]]] = {
    "own": ("", look_at({"type": "image_ref", "data": URL})),
    "chat": (CHAT, {"messages": [{"role": "user", "content": [{"type": "text", "text": "Look."}, PART]}]}),
    "responses": (
        "/v1/responses",
        {
            "input": [
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": URL}],
                }
            ]
        },
    ),
    "contents": (
        f"/v1beta/models/{MODEL}:generateContent",
        {
            "contents": [
                {"parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": to_base64(PNG)}}]}
            ]
        },
    ),
    "messages": (
        "/v1/messages",
        {
            "max_tokens": 50,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image", "source": SOURCE}]}
            ],
        },
    ),
}


@pytest.fixture
def chat(bench: ProviderBench) -> ReadingChat:
    bench.chat = ReadingChat()
    found: ReadingChat = bench.chat
    return found


def name_model(path: str) -> dict[str, Any]:
    """What of a body says the model, where the address does not."""
    return {} if MODEL in path else {"model": MODEL}


def ask_at(door: str, caller: Caller, **more: Any) -> Any:
    path, body = DOORS[door]
    return caller.ask(path, name_model(path) | body | more) if path else ask(caller, body, **more)


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("door", DOORS)
def test_a_picture_reaches_the_model_and_a_fact_has_its_keyed_hash_its_type_and_its_size(
    door: str, caller: Caller, model: Tool, chat: ReadingChat
) -> None:
    answer = ask_at(door, caller)

    assert answer.status_code == 200, answer.content
    assert chat.read == [PNG]
    [request] = chat.requests
    text, picture = request.messages[0].segments
    assert isinstance(text, Text)
    assert isinstance(picture, ImageRef)
    assert (picture.width, picture.height, picture.media_type) == (33, 21, "image/png")
    call = Invocation.objects.get()
    began = leaf_of(call, "invocation.began")
    fingerprint = evidence.compute_fingerprint(PNG, tenant_id=call.tenant_id)
    assert began["model"]["pictures"] == [{"content": fingerprint, "media_type": "image/png", "bytes": len(PNG)}]
    assert "files" not in began["model"]
    assert hashlib.sha256(PNG).hexdigest() not in json.dumps(began)
    assert kinds_of(call) == PAIR


@pytest.mark.req("LLM-11")
@pytest.mark.parametrize("door", DOORS)
def test_its_bytes_are_in_no_row_no_sealed_value_and_no_log(
    door: str, caller: Caller, model: Tool, chat: ReadingChat, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), signing_with():
        ask_at(door, caller)
        seal_everything()
        sealed = opened()

    assert chat.read == [PNG]
    marks = (to_base64(PNG)[:40], repr(PNG)[2:60], PNG.decode("utf-8", "replace")[-30:])
    assert hashlib.sha256(PNG).hexdigest() in sealed  # the arguments, as long as the tenant keeps them
    stored = [text for _, text in iter_stored_texts()]
    assert [mark for mark in marks if any(mark in text for text in (*stored, sealed, caplog.text))] == []


@pytest.mark.req("LLM-2")
def test_the_reservation_has_the_tokens_of_the_picture(caller: Caller, model: Tool, chat: ReadingChat) -> None:
    def count(*segments: dict[str, Any]) -> int:
        body = build_body(caller, look_at(*segments))
        found: int = caller.post(f"/models/{MODEL}/preflight", body).json()["data"]["model"]["input_tokens"]
        return found

    large = {"type": "image_ref", "data": to_data_url(draw("PNG", 2000, 1500))}

    assert count(large) - count() >= 1000
    assert count(large) > count({"type": "image_ref", "data": URL})


@pytest.mark.req("LLM-2")
def test_the_messages_that_anthropics_clients_have_counted_have_it_too(caller: Caller, model: Tool) -> None:
    path, body = DOORS["messages"]
    asked = {"model": MODEL, "messages": body["messages"]}
    without = {"model": MODEL, "messages": [{"role": "user", "content": "Look."}]}

    counts = [caller.ask(f"{path}/count_tokens", each).json()["input_tokens"] for each in (asked, without)]

    assert counts[0] > counts[1] + 100


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("door", DOORS)
def test_a_model_that_reads_no_pictures_refuses_it(
    door: str, caller: Caller, grant: Callable[..., Any], connect: Callable[..., Tool], chat: ReadingChat
) -> None:
    grant("model.*")
    connect(features={"image_ref": "refused"})

    answer = ask_at(door, caller)

    assert answer.status_code in (400, 422)
    assert Invocation.objects.get().reason == "LLM.UNSUPPORTED"
    assert chat.requests == []


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("door", DOORS)
def test_where_a_policy_masks_nothing_passes_that_cannot_be_looked_into(
    door: str, caller: Caller, tenant: Any, model: Tool, chat: ReadingChat
) -> None:
    rules = [{"action": "mask", "detector": "email"}]
    put_in_force(permit(), {"id": "hide", "effect": "oblige", "when": {}, "obligations": rules}, tenant=tenant)

    answer = ask_at(door, caller)

    assert answer.status_code == 403, answer.content
    assert Invocation.objects.get().reason == "LLM.SENSITIVE_BLOCKED"
    assert chat.requests == []


@pytest.mark.req("LLM-2")
def test_where_texts_are_masked_the_answer_says_that_pictures_are_not(
    caller: Caller, operator: Person, grant: Callable[..., Any], chat: ReadingChat
) -> None:
    grant("model.*")
    connect_scripted_provider(operator.by, data_classes=["personal", "payment", "credentials"])
    connect_scripted_model(operator.by, unpriced="count")
    connect_scripted_provider(operator.by, "elsewhere")
    connect_scripted_model(operator.by, provider="elsewhere", unpriced="count")
    seen = look_at({"type": "image_ref", "data": URL})

    all_of_it = ask(caller, seen)
    warned = ask(caller, seen, model="model.elsewhere.main", request_id="test-request-2")

    assert all_of_it.json()["warnings"] == []
    assert warned.json()["warnings"] == [
        "Nothing can be masked in pictures, sounds and files: 1 of them went to the model as they are."
    ]


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    ("segment", "pointer"),
    [
        ({"data": "data:image/png;base64,AAAA"}, "data"),
        ({"data": to_data_url(PNG, "image/jpeg")}, "data"),
        ({"data": "http://10.0.0.7/secret.png"}, "data"),
        ({"data": ["quokkadata"]}, "data"),
        ({"data": URL, "width": 1}, "width"),
    ],
)
def test_what_is_no_picture_is_refused_with_its_place_and_its_pair_and_is_kept_nowhere(
    segment: dict[str, Any], pointer: str, caller: Caller, model: Tool, chat: ReadingChat
) -> None:
    with signing_with():
        answer = ask(caller, look_at({"type": "image_ref", **segment}))
        seal_everything()
        sealed = opened()

    problem = assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")["error"]
    assert problem["details"]["findings"][0]["pointer"] == f"/messages/0/segments/1/{pointer}"
    assert kinds_of(row_of(answer)) == PAIR
    assert not any(str(segment["data"])[-40:] in each for each in (sealed, answer.content.decode()))
    assert chat.requests == []


@pytest.mark.req("LLM-2")
def test_a_digest_alone_names_nothing(caller: Caller, model: Tool, chat: ReadingChat) -> None:
    named = {"type": "image_ref", "id": f"sha256:{hashlib.sha256(PNG).hexdigest()}", "media_type": "image/png"}
    ask(caller, look_at({"type": "image_ref", "data": URL}))

    answer = ask(caller, look_at(named | {"size_bytes": len(PNG), "width": 33, "height": 21}))

    assert_problem(answer, 422, "LLM.UNSUPPORTED")
    assert chat.read == [PNG]


@pytest.mark.req("LLM-2")
def test_pictures_and_held_files_have_their_room_together(
    caller: Caller, operator: Person, model: Tool, chat: ReadingChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invocations.model_calls.held_files.MAX_BYTES", len(PNG) + 10)
    content = draw("PNG", 5, 5)
    held: dict[str, Any] = {"type": "image_ref", "id": keep(operator, "picture", content), "media_type": "image/png"}
    held |= {"size_bytes": len(content), "width": 5, "height": 5}

    one = ask(caller, look_at({"type": "image_ref", "data": URL}))
    both = ask(caller, look_at({"type": "image_ref", "data": URL}, held))

    assert one.status_code == 200
    assert_problem(both, 413, "REQUEST.TOO_LARGE")


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize("door", DOORS)
def test_a_picture_larger_than_other_bodies_may_be_is_taken_and_one_of_30_mb_is_refused(
    door: str, caller: Caller, model: Tool, chat: ReadingChat
) -> None:
    large, huge = PNG + b"\0" * 6_000_000, PNG + b"\0" * 30_000_000

    answers = []
    for content in (large, huge):
        path, body = DOORS[door]
        told = json.loads(json.dumps(body).replace(to_base64(PNG), to_base64(content)))
        answers.append(caller.ask(path, name_model(path) | told) if path else ask(caller, told))

    assert [each.status_code for each in answers] == [200, 413], answers[0].content
    if path:
        assert answers[1].headers["X-Hub-Reason"] == "REQUEST.TOO_LARGE"
    else:
        assert_problem(answers[1], 413, "REQUEST.TOO_LARGE")
    assert chat.read == [large]


@pytest.mark.req("LLM-2")
def test_a_body_is_no_larger_beside_its_pictures(caller: Caller, model: Tool) -> None:
    told = look_at({"type": "image_ref", "data": to_data_url(PNG + b"\0" * 100_000)})

    answer = ask(caller, told | {"stop": ["a b"] * 300_000})

    assert_problem(answer, 413, "REQUEST.TOO_LARGE")


@pytest.mark.req("LLM-2")
def test_the_same_key_with_another_picture_is_another_request(caller: Caller, model: Tool, chat: ReadingChat) -> None:
    def ask_for(content: bytes) -> Any:
        seen = look_at({"type": "image_ref", "data": to_data_url(content)})
        return ask(caller, seen, headers={"Idempotency-Key": "one"})

    first, again, other = ask_for(PNG), ask_for(PNG), ask_for(draw("PNG", 9, 9))

    assert first.json()["data"] == again.json()["data"]
    assert_problem(other, 422, "IDEMPOTENCY.KEY_REUSED")
    assert chat.read == [PNG]
