"""Gemini requests: a request of this layer in the words of Gemini's generateContent.

System messages stand apart from the conversation there, whichever place they had. Answers to calls go back together, in the order of
the conversation, each with the name of its tool. What Gemini signed goes back to where it stood.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from llm.messages import AssistantMessage, SystemMessage, Text, ToolMessage
from llm.problems import ParameterUnsupported
from llm.providers.tool_choices import write_tool_choice
from llm.requests import JsonFormat, SchemaFormat
from llm.untrusted_texts import delimit_result
from unitools.dialects import DialectError, RenderOptions, find_driver
from unitools.dialects.model_profiles import ModelProfile
from unitools.dialects.schemas import CannotSay, inline_references
from unitools.dialects.tool_names import derive_dialect_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from llm.messages import Message, ProviderState, Segment
    from llm.requests import ChatRequest
    from unitools.calls import ToolSpec
    from unitools.dialects import Rendered

    MediaPart = Callable[[Segment], dict[str, Any]]

PROVIDER = "gemini"  # as states name it
DIALECT = "gemini"
_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
# A parameter of the layer, and Gemini's name of it.
PARAMETERS = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}


def render_tools(tools: Sequence[ToolSpec], model: str) -> Rendered:
    """The tools as Gemini takes them. Raises ParameterUnsupported for one that it cannot be told of."""
    profile = ModelProfile.from_name(f"{DIALECT}:{model}")
    try:
        return find_driver(DIALECT).render(tools, RenderOptions(profile=profile))
    except DialectError as error:
        message = str(error)
        raise ParameterUnsupported(message, details={"findings": [{"pointer": "/tools", "message": message}]}) from None


def build_body(request: ChatRequest, tools: Rendered, media: MediaPart) -> dict[str, Any]:
    """The document that is posted. ``media`` makes a part of a segment that is no text."""
    body: dict[str, Any] = {"contents": list(_build_contents(request.messages, media))}
    system = [
        segment for message in request.messages if isinstance(message, SystemMessage) for segment in message.segments
    ]
    if system:
        body["systemInstruction"] = {"parts": [{"text": segment.text} for segment in system]}
    if tools.payload:
        body["tools"] = tools.payload
    if request.tool_choice is not None:
        body["toolConfig"] = {"functionCallingConfig": write_tool_choice(request.tool_choice, DIALECT)}
    if configuration := _build_configuration(request):
        body["generationConfig"] = configuration
    return body


def _build_configuration(request: ChatRequest) -> dict[str, Any]:
    given = {theirs: getattr(request, ours) for ours, theirs in PARAMETERS.items()}
    configuration = {name: value for name, value in given.items() if value is not None}
    if request.stop:
        configuration["stopSequences"] = list(request.stop)
    if thinking := _build_thinking(request):
        configuration["thinkingConfig"] = thinking
    wanted = request.response_format
    if isinstance(wanted, (JsonFormat, SchemaFormat)):
        configuration["responseMimeType"] = "application/json"
    if isinstance(wanted, SchemaFormat):
        configuration["responseJsonSchema"] = _inline_schema(wanted.json_schema)
    return configuration


def list_reasoning(model: str) -> tuple[str, ...]:
    """What the model can be told of how much it reasons: of 2.5 a number of tokens, of later ones a level."""
    found = _VERSION.match(model.removeprefix("models/"))
    if found is None or "image" in model:
        return ()
    version = int(found[1]), int(found[2] or 0)
    return ("reasoning_effort",) if version >= (3, 0) else ("reasoning_tokens",) if version == (2, 5) else ()


def _build_thinking(request: ChatRequest) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if request.reasoning_tokens is not None:
        said["thinkingBudget"] = request.reasoning_tokens
    if request.reasoning_effort not in (None, "auto"):
        said["thinkingLevel"] = request.reasoning_effort
    return said


def _inline_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Without references, which Gemini takes in part; as it is where it refers to itself."""
    try:
        inlined = inline_references(schema)
    except CannotSay:
        inlined = schema
    return {name: value for name, value in inlined.items() if name not in {"$schema", "$id"}}


def _build_contents(messages: Iterable[Message], media: MediaPart) -> Iterator[dict[str, Any]]:
    names: dict[str, str] = {}  # of the tools, by the ids of their calls
    ids: dict[str, str] = {}  # as the provider gave them
    answers: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            answers += _build_answer(message, names[message.call_id], ids[message.call_id], media)
            continue
        if answers:
            yield {"role": "user", "parts": answers}
            answers = []
        if isinstance(message, AssistantMessage):
            names = {call.id: derive_dialect_name(DIALECT, call.name) for call in message.proposals}
            ids = {call.id: call.provider_id for call in message.proposals}
            yield {"role": "model", "parts": list(_build_model_parts(message))}
        elif not isinstance(message, SystemMessage):
            yield {"role": "user", "parts": [_build_part(segment, media) for segment in message.segments]}
    if answers:
        yield {"role": "user", "parts": answers}


def _build_part(segment: Segment, media: MediaPart) -> dict[str, Any]:
    return {"text": segment.text} if isinstance(segment, Text) else media(segment)


def _build_answer(message: ToolMessage, name: str, id: str, media: MediaPart) -> list[dict[str, Any]]:
    """What a tool answered, and behind it the pictures and files that it answered with."""
    response = {"error" if message.is_error else "output": delimit_result(message)}
    answer: dict[str, Any] = {"name": name, "response": response} | ({"id": id} if id else {})
    others = [media(segment) for segment in message.segments if not isinstance(segment, Text)]
    return [{"functionResponse": answer}, *others]


def _build_model_parts(message: AssistantMessage) -> Iterator[dict[str, Any]]:
    signatures = read_signatures(message.provider_state)
    if message.segments:
        yield _sign({"text": "".join(segment.text for segment in message.segments)}, signatures.get("text"))
    for place, call in enumerate(message.proposals):
        said: dict[str, Any] = {"name": derive_dialect_name(DIALECT, call.name), "args": call.arguments or {}}
        if call.provider_id:
            said["id"] = call.provider_id
        yield _sign({"functionCall": said}, signatures.get(str(place)))


def _sign(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return part | ({"thoughtSignature": signature} if signature else {})


def read_signatures(state: ProviderState | None) -> dict[str, str]:
    """By what they belong to: ``text``, or the place of a call among those of the answer. None of another provider."""
    if state is None or state.provider != PROVIDER or not isinstance(state.data, dict):
        return {}
    return {name: signature for name, signature in state.data.items() if isinstance(signature, str)}
