"""Chat messages: is a conversation what every provider can be sent, and does it name nothing but what the hub holds?"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from kernel.problems import SchemaInvalid
from llm.documents import read_document
from llm.messages import (
    AssistantMessage,
    AttachmentRef,
    AudioRef,
    ImageRef,
    ProviderState,
    SystemMessage,
    Text,
    ToolMessage,
    UserMessage,
)
from llm.requests import ChatRequest
from unitools.calls import CallProblem, ToolCall

ART = "art_01kc8q4m7tfxz000000000000a"
FILE = "fil_01kc8q4m7tfxz000000000000a"
IMAGE = {"type": "image_ref", "id": ART, "media_type": "image/png", "size_bytes": 10, "width": 2, "height": 3}
AUDIO = {"type": "audio_ref", "id": FILE, "media_type": "audio/wav", "size_bytes": 10, "seconds": 1.5}
FILED = {"type": "attachment_ref", "id": FILE, "media_type": "application/pdf", "size_bytes": 10, "name": "a.pdf"}
HELLO = {"type": "text", "text": "Hello"}
CALL = {"call_id": "c1", "name": "load", "arguments": {"n": 1}}


def user(*segments: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "segments": list(segments)}


def assistant(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "proposals": list(calls)}


def answered(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "call_id": call_id, "segments": [HELLO]}


def read(*messages: Any) -> ChatRequest:
    return read_document(ChatRequest, {"model": "main", "messages": list(messages)})


def findings_of(*messages: Any) -> dict[str, str]:
    with pytest.raises(SchemaInvalid) as refused:
        read(*messages)
    return {each["pointer"]: each["message"] for each in refused.value.details["findings"]}


@pytest.mark.req("LLM-2")
def test_every_role_and_every_kind_of_segment_is_read() -> None:
    request = read(
        {"role": "system", "segments": [HELLO]},
        user(HELLO, IMAGE, AUDIO, FILED),
        {"role": "assistant", "segments": [HELLO], "proposals": [CALL]},
        {"role": "tool", "call_id": "c1", "segments": [HELLO, IMAGE], "is_error": True},
    )

    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]
    assert isinstance(request.messages[1], UserMessage)
    assert request.messages[1].segments == (
        Text("Hello"),
        ImageRef(id=ART, media_type="image/png", size_bytes=10, width=2, height=3),
        AudioRef(id=FILE, media_type="audio/wav", size_bytes=10, seconds=1.5),
        AttachmentRef(id=FILE, media_type="application/pdf", size_bytes=10, name="a.pdf"),
    )


@pytest.mark.req("LLM-2")
@pytest.mark.parametrize(
    "id",
    [
        "https://example.org/a.png",
        "http://169.254.169.254/latest",
        "data:image/png;base64,AAAA",
        "file:///etc/passwd",
        "fil_../../etc/passwd",
        "inv_01kc8q4m7tfxz000000000000a",
        ART + "\n",
        ART.upper(),
        "art_",
        "art_" + "/" * 26,
        "art_" + "z" * 26,
    ],
)
@pytest.mark.parametrize("segment", [IMAGE, AUDIO, FILED], ids=lambda segment: segment["type"])
def test_a_segment_names_what_the_hub_holds_and_never_an_address(segment: dict[str, Any], id: str) -> None:
    found = findings_of(user(HELLO, segment | {"id": id}))

    assert found == {
        "/messages/0/segments/1/id": "Name an artifact (art_…) or a file (fil_…) of the hub. Addresses are not fetched."
    }


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        (user(HELLO, IMAGE | {"url": "https://example.org"}), "/messages/0/segments/1/url"),
        (user(IMAGE | {"size_bytes": 33 * 1024 * 1024}), "/messages/0/segments/0/size_bytes"),
        (user(IMAGE | {"width": 0}), "/messages/0/segments/0/width"),
        (user(IMAGE | {"media_type": "text/html"}), "/messages/0/segments/0/media_type"),
        (user(AUDIO | {"seconds": float("nan")}), "/messages/0/segments/0/seconds"),
        (user(AUDIO | {"seconds": float("inf")}), "/messages/0/segments/0/seconds"),
        (user({"type": "text", "text": ""}), "/messages/0/segments/0/text"),
        (user({"type": "text", "text": "\ud83d"}), "/messages/0/segments/0/text"),
        (user({"type": "text", "text": 5}), "/messages/0/segments/0/text"),
        (user({"type": "video_ref"}), "/messages/0/segments/0"),
        (user({"type": ["text"]}), "/messages/0/segments/0"),
        (user(), "/messages/0/segments"),
        ({"role": "system", "segments": [IMAGE]}, "/messages/0/segments/0/id"),
        ({"role": "developer", "segments": [HELLO]}, "/messages/0"),
        ({"role": "assistant"}, "/messages/0"),
        ({"role": "tool", "segments": [HELLO]}, "/messages/0/call_id"),
        ("Hello", "/messages/0"),
        (None, "/messages/0"),
    ],
)
def test_a_mistake_in_a_message_is_named_with_its_place(message: Any, pointer: str) -> None:
    assert pointer in findings_of(message)


def test_a_refusal_quotes_nothing_of_a_message() -> None:
    secret = "canary-5fe1"
    broken = [
        user({"type": "text", "text": secret, "more": secret}),
        user({"type": secret}),
        assistant(CALL | {"name": 5, "arguments": secret}),
        {"role": secret, "segments": secret},
    ]
    for message in broken:
        with pytest.raises(SchemaInvalid) as refused:
            read(user(HELLO), message)
        assert secret not in f"{refused.value.to_error()} {refused.value}"
    with pytest.raises(ValidationError) as raised:
        UserMessage((Text(secret), secret))  # type: ignore[arg-type]
    assert secret not in str(raised.value)


@pytest.mark.req("LLM-2", "LLM-3")
@pytest.mark.parametrize(
    ("messages", "pointer"),
    [
        ([answered("c1")], "/messages/0/call_id"),
        ([assistant(CALL), answered("c2")], "/messages/1/call_id"),
        ([assistant(CALL), answered("c1"), answered("c1")], "/messages/2/call_id"),
        ([assistant(CALL), user(HELLO)], "/messages/0/proposals"),
        ([assistant(CALL), user(HELLO), answered("c1")], "/messages/0/proposals"),
        ([user(HELLO), assistant(CALL)], "/messages/1/proposals"),
        ([assistant(CALL, CALL), answered("c1")], "/messages/0/proposals"),
        ([assistant(CALL, CALL | {"call_id": "c2"}), answered("c1")], "/messages/0/proposals"),
    ],
)
def test_every_proposal_is_answered_once_before_anybody_speaks_again(messages: list[Any], pointer: str) -> None:
    assert list(findings_of(*messages)) == [pointer]


@pytest.mark.req("LLM-3")
def test_answers_of_parallel_calls_may_come_in_any_order() -> None:
    request = read(user(HELLO), assistant(CALL, CALL | {"call_id": "c2"}), answered("c2"), answered("c1"), user(HELLO))

    assert isinstance(request.messages[1], AssistantMessage)
    first = request.messages[1].proposals[0]
    assert (first.id, first.name, first.arguments, first.problem) == ("c1", "load", {"n": 1}, None)


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize(
    ("call", "pointer"),
    [
        ({"call_id": "c1", "name": "load"}, ""),
        (CALL | {"run": True}, ""),
        (CALL | {"arguments": '{"n": 1}'}, "/arguments"),
        (CALL | {"arguments": {"n": float("nan")}}, "/arguments"),
        (CALL | {"name": ""}, "/name"),
        (CALL | {"call_id": 7}, "/call_id"),
    ],
)
def test_a_proposal_has_a_name_an_id_and_an_object_of_arguments(call: Any, pointer: str) -> None:
    assert list(findings_of(assistant(call), answered("c1"))) == [f"/messages/0/proposals/0{pointer}"]


@pytest.mark.req("LLM-3")
def test_a_proposal_that_cannot_be_used_stays_in_the_conversation_as_it_is() -> None:
    call = ToolCall("c1", "load", None, raw='{"n": 1', problem=CallProblem.TRUNCATED)
    message = AssistantMessage(proposals=(call,))

    request = ChatRequest(
        model="main", messages=(message, ToolMessage(call_id="c1", segments=(Text("It was cut."),), is_error=True))
    )

    assert request.messages[0] is message
    assert message.proposals == (call,)


@pytest.mark.req("LLM-2")
def test_the_state_of_a_provider_is_carried_as_it_is_for_that_provider_alone() -> None:
    state = {"signature": "c2ln", "items": [{"n": 1, "deep": [None, True, 1.5]}]}
    request = read(
        user(HELLO),
        {"role": "assistant", "segments": [HELLO], "provider_state": {"provider": "gemini", "data": state}},
    )

    assert isinstance(request.messages[1], AssistantMessage)
    assert request.messages[1].provider_state == ProviderState("gemini", state)
    assert "c2ln" not in repr(request.messages[1].provider_state)


@pytest.mark.parametrize("data", [{1: "a"}, {"a": float("nan")}, {"a": object()}, {"a": 2**70}])
def test_a_state_of_a_provider_that_is_no_json_is_refused(data: Any) -> None:
    with pytest.raises(ValidationError, match="A provider's state is JSON"):
        ProviderState("gemini", data)


def test_a_message_cannot_be_changed() -> None:
    message = SystemMessage((Text("Be brief."),))

    with pytest.raises(AttributeError):
        message.segments = ()  # type: ignore[misc]
