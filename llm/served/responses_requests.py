"""Responses requests: bodies for OpenAI's Responses, read as what the hub asks a model. Nothing is kept from one to the next."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr, Tag
from pydantic.dataclasses import dataclass

from llm.documents import RULES, build_discriminator, build_tag, read_document, refuse_field
from llm.messages import MAX_NAME, MAX_TEXT, AttachmentRef, AudioRef, ImageRef
from llm.pictures import PictureShelf, is_data_url, read_data_url
from llm.served.body_parts import BodyPart
from llm.served.file_data import refuse_file
from llm.served.formats import ServedChat
from llm.served.openai_chat import CACHE_KEY, NOT_KEPT, OF_THE_HUB, SINGLE, read_hub
from llm.served.openai_messages import EMPTY, NO_DETAIL, NOT_STRICT, OWN_SEGMENTS
from llm.served.parameters import Findings, passed, read_parameters, refused, warned
from llm.served.provider_states import read_state
from unitools.calls import ToolSpec
from unitools.dialects.arguments import read_arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

STATELESS = "The hub keeps no conversation. Send all of it in `input`, and leave this out."
NO_SUMMARY = "Summaries of reasoning are not passed on; what the provider wants back of it is."
PARAMETERS = (
    passed("model", "A model of the hub, by its id or its alias."),
    passed(
        "input", "A text, or the whole conversation: messages, calls, their outputs and reasoning that the hub sent."
    ),
    passed("instructions", "What stands before the conversation."),
    passed(
        "tools",
        "Functions by the names that models know tools of the registry by. Tools that a provider runs are refused.",
    ),
    passed("tool_choice", "`auto`, `none`, `required` or one function; a list of allowed tools is refused."),
    passed("parallel_tool_calls", SINGLE),
    passed("max_output_tokens", "The most tokens that the answer may have."),
    passed("temperature", "0 to 2."),
    passed("top_p", "More than 0, up to 1."),
    passed(
        "reasoning",
        "`effort`, where the model takes it; else it is left out with a warning. Summaries are not passed on.",
    ),
    passed("presence_penalty", "-2 to 2."),
    passed("frequency_penalty", "-2 to 2."),
    passed("text", "A `format`: `text`, `json_object` or `json_schema`. A `verbosity` is refused."),
    passed("stream", "Whether the answer comes as events."),
    passed("metadata", "It stands in the answer again."),
    passed("user", "The person for whom the agent asks: `user_id` of the hub's envelope. No provider is sent it."),
    passed("prompt_cache_key", CACHE_KEY),
    OF_THE_HUB,
    warned("include", "What there is of it is always there: encrypted reasoning.", [], ["reasoning.encrypted_content"]),
    warned("safety_identifier", "Sent to nobody; providers know the hub's key only."),
    warned("prompt_cache_retention", "The provider decides by itself how long it keeps what it has read."),
    warned("stream_options", "Events are not padded.", {"include_obfuscation": False}),
    refused("store", NOT_KEPT, False),
    refused("previous_response_id", STATELESS),
    refused("conversation", STATELESS),
    refused("prompt", STATELESS),
    refused("background", "The answer is there when the request ends.", False),
    refused("truncation", "The hub sends the conversation as it is. Shorten it yourself.", "disabled"),
    refused("context_management", "The hub sends the conversation as it is. Shorten it yourself."),
    refused("max_tool_calls", "The hub makes no calls for a model, it only passes on what is proposed."),
    refused("top_logprobs", "Probabilities of tokens are not passed on.", 0),
    refused("service_tier", "The provider's usual one is asked for.", "auto", "default"),
    refused("moderation", "Not passed on."),
)
NOT_HELD = "The hub keeps no items. Send the item itself."
OF_REASONING = (
    passed("effort", "`reasoning_effort` of the hub's chat."),
    warned("summary", NO_SUMMARY),
    warned("generate_summary", NO_SUMMARY),
)
OF_A_PROVIDER = "The hub shows models tools of the type function. It passes on none that a provider runs itself."
NO_CHOICE = "This is `auto`, `none`, `required`, or a function of `tools`."


def _to_parts(kind: str) -> BeforeValidator:
    """A text is a list of one part."""

    def split(value: object) -> object:
        return [{"type": kind, "text": value}] if isinstance(value, str) and value else value or ()

    return BeforeValidator(split)


def _name_message(value: object) -> object:
    """An item without a type is a message."""
    return {"type": "message"} | value if isinstance(value, dict) and "role" in value else value


def _check_item(value: object) -> object:
    if isinstance(value, dict) and value.get("type") == "item_reference":
        raise refuse_field(NOT_HELD)
    return _name_message(value)


def _check_tool_kind(value: object) -> object:
    if isinstance(value, dict) and value.get("type") != "function":
        raise refuse_field(OF_A_PROVIDER, at=("type",))
    return value


Words = Annotated[StrictStr, Field(max_length=MAX_TEXT)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=MAX_NAME)]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class TextPart(BodyPart):
    text: Words
    type: Literal["input_text", "output_text", "text"]
    annotations: Any = None
    logprobs: Any = None
    parsed: Any = None  # what OpenAI's SDK has added for its user


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class RefusalPart(BodyPart):
    refusal: Words
    type: Literal["refusal"]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class FilePart(BodyPart):
    type: Literal["input_image", "input_file"]
    image_url: StrictStr | None = None
    file_data: StrictStr | None = None
    file_url: StrictStr | None = None
    file_id: StrictStr | None = None
    filename: Any = None
    detail: Any = None


_TEXTS = (
    Annotated[TextPart, Tag(build_tag("input_text"))]
    | Annotated[TextPart, Tag(build_tag("output_text"))]
    | Annotated[TextPart, Tag(build_tag("text"))]
)
InputPart = Annotated[
    _TEXTS
    | Annotated[RefusalPart, Tag(build_tag("refusal"))]
    | Annotated[FilePart, Tag(build_tag("input_image"))]
    | Annotated[FilePart, Tag(build_tag("input_file"))]
    | Annotated[ImageRef, Tag(build_tag("image_ref"))]
    | Annotated[AudioRef, Tag(build_tag("audio_ref"))]
    | Annotated[AttachmentRef, Tag(build_tag("attachment_ref"))],
    build_discriminator("type", ("input_text", "output_text", *OWN_SEGMENTS)),
]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class MessageItem(BodyPart):
    role: Literal["user", "assistant", "system", "developer"]
    content: Annotated[tuple[InputPart, ...], _to_parts("text")]
    type: Literal["message"] = "message"
    id: Any = None
    status: Any = None
    phase: Any = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class CallItem(BodyPart):
    call_id: Name
    name: Name
    arguments: StrictStr
    type: Literal["function_call"]
    parsed_arguments: Any = None
    id: Any = None
    status: Any = None
    caller: Any = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class OutputItem(BodyPart):
    call_id: Name
    output: Annotated[tuple[InputPart, ...], _to_parts("text")]
    type: Literal["function_call_output"]
    id: Any = None
    status: Any = None
    caller: Any = None
    name: Any = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ReasoningItem(BodyPart):
    encrypted_content: StrictStr
    type: Literal["reasoning"]
    id: Any = None
    status: Any = None
    summary: Any = None
    content: Any = None


Item = Annotated[
    Annotated[MessageItem, Tag(build_tag("message"))]
    | Annotated[CallItem, Tag(build_tag("function_call"))]
    | Annotated[OutputItem, Tag(build_tag("function_call_output"))]
    | Annotated[ReasoningItem, Tag(build_tag("reasoning"))],
    build_discriminator("type", ("message", "function_call", "function_call_output", "reasoning")),
]


def _to_items(value: object) -> object:
    return [{"type": "message", "role": "user", "content": value}] if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class FunctionTool(BodyPart):
    name: Name
    type: Literal["function"]
    parameters: dict[str, Any] | None = None
    description: StrictStr | None = None
    strict: StrictBool | None = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class TextSettings(BodyPart):
    format: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ResponsesBody(BodyPart):
    model: Name
    input: Annotated[tuple[Annotated[Item, BeforeValidator(_check_item)], ...], BeforeValidator(_to_items)]
    instructions: Words = ""
    tools: tuple[Annotated[FunctionTool, BeforeValidator(_check_tool_kind)], ...] = ()
    tool_choice: Any = "auto"
    parallel_tool_calls: StrictBool = True
    max_output_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    temperature: StrictFloat | None = None
    top_p: StrictFloat | None = None
    presence_penalty: StrictFloat | None = None
    frequency_penalty: StrictFloat | None = None
    text: TextSettings = TextSettings()
    stream: StrictBool = False
    metadata: dict[str, StrictStr] | None = None
    user: StrictStr = ""
    prompt_cache_key: StrictStr | None = None


SAME = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
# What an answer repeats of its request.
ECHOED = (
    "instructions",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "metadata",
    "text",
    "prompt_cache_key",
    *SAME,
)


def read_responses(body: Any) -> ServedChat:
    """Raises SchemaInvalid, ParameterUnsupported."""
    findings = Findings()
    given, warnings = read_parameters(body, PARAMETERS, findings)
    of_request, envelope = read_hub(given, findings)
    choice = _read_choice(given.get("tool_choice", "auto"), findings)
    reasoning, said = read_parameters(given.pop("reasoning", {}), OF_REASONING, findings, "/reasoning")
    warnings += said
    findings.check()
    read = read_document(ResponsesBody, given)
    arguments = {name: value for name in SAME if (value := getattr(read, name)) is not None}
    builder = ConversationBuilder(read.instructions)
    arguments |= {"messages": builder.build(read.input)}
    if choice is not None:
        arguments["tool_choice"] = choice
    if "effort" in reasoning:
        arguments["reasoning_effort"] = reasoning["effort"]
    if read.prompt_cache_key is not None:
        arguments["cache_hint"] = read.prompt_cache_key
    if not read.parallel_tool_calls:
        arguments["parallel_calls"] = False
    if read.max_output_tokens is not None:
        arguments["max_tokens"] = read.max_output_tokens
    warnings += tuple(f"/tools/{at}/strict: {NOT_STRICT}" for at, tool in enumerate(read.tools) if tool.strict)
    return ServedChat(
        model=read.model,
        arguments=arguments | _read_format(read.text.format) | of_request,
        own_tools=tuple(map(_build_spec, read.tools)) if given.get("tool_choice") != "none" else (),
        envelope=envelope | ({"user_id": read.user} if read.user else {}),
        wants_stream=read.stream,
        options={name: given[name] for name in ECHOED if name in given}
        | {"tools": [asdict(tool) for tool in read.tools]}
        | ({"reasoning": {"effort": None, "summary": None} | reasoning} if reasoning else {}),
        warnings=(*warnings, *builder.warnings),
        pictures=builder.shelf.pictures,
    )


def _build_spec(tool: FunctionTool) -> ToolSpec:
    return ToolSpec(tool.name, tool.description or "", tool.parameters or {"type": "object", "properties": {}})


def _read_choice(choice: Any, findings: Findings) -> Any:
    match choice:
        case "auto" | "none":
            return None
        case "required":
            return "required"
        case {"type": "function", "name": str() as name}:
            return {"name": name}
    findings.add_unsupported("/tool_choice", NO_CHOICE)
    return None


def _read_format(wanted: dict[str, Any] | None) -> dict[str, Any]:
    match wanted:
        case None | {"type": "text"}:
            return {}
        case {"type": "json_object"}:
            return {"response_format": {"type": "json"}}
        case {"type": "json_schema", "schema": dict() as schema}:
            return {"response_format": {"type": "schema", "json_schema": schema}}
    findings = Findings()
    if wanted.get("type") == "json_schema":
        findings.add_wrong("/text/format/schema", "This field is needed.")
    else:
        findings.add_wrong("/text/format/type", "This is one of text, json_object, json_schema.")
    findings.check()
    return {}


class ConversationBuilder:
    """Items as messages: what the assistant says, thinks and proposes without anybody between is one message."""

    def __init__(self, instructions: str) -> None:
        self.shelf = PictureShelf()
        self.warnings: list[str] = []
        self._messages: list[dict[str, Any]] = []
        if instructions:
            self._messages.append({"role": "system", "segments": [{"type": "text", "text": instructions}]})

    def build(self, items: Iterable[MessageItem | CallItem | OutputItem | ReasoningItem]) -> list[dict[str, Any]]:
        for place, item in enumerate(items):
            pointer = f"/input/{place}"
            match item:
                case MessageItem(role="assistant"):
                    self._open_assistant()["segments"] += self._build_segments(item.content, f"{pointer}/content")
                case MessageItem():
                    role = "user" if item.role == "user" else "system"
                    self._messages.append(
                        {"role": role, "segments": self._build_segments(item.content, f"{pointer}/content")}
                    )
                case CallItem():
                    call = {"call_id": item.call_id, "name": item.name, "arguments": _read_arguments(item.arguments)}
                    self._open_assistant()["proposals"].append(call)
                case OutputItem():
                    told = self._build_segments(item.output, f"{pointer}/output") or [{"type": "text", "text": EMPTY}]
                    self._messages.append({"role": "tool", "call_id": item.call_id, "segments": told})
                case ReasoningItem():
                    state = read_state(item.encrypted_content, f"{pointer}/encrypted_content")
                    self._open_assistant()["provider_state"] = state
        return self._messages

    def _open_assistant(self) -> dict[str, Any]:
        if not self._messages or self._messages[-1]["role"] != "assistant":
            self._messages.append({"role": "assistant", "segments": [], "proposals": []})
        return self._messages[-1]

    def _build_segments(self, parts: Iterable[Any], pointer: str) -> list[dict[str, Any]]:
        segments: list[dict[str, Any]] = []
        for at, part in enumerate(parts):
            match part:
                case TextPart(text=text) | RefusalPart(refusal=text):
                    segments += [{"type": "text", "text": text}] if text else []
                case FilePart(type="input_image", image_url=str() as url) if is_data_url(url):
                    segments.append(self.shelf.add(read_data_url(url, f"{pointer}/{at}/image_url")))
                    if part.detail not in (None, "auto"):
                        self.warnings.append(f"{pointer}/{at}/detail: {NO_DETAIL}")
                case FilePart():
                    kind = "image_ref" if part.type == "input_image" else "attachment_ref"
                    refuse_file(f"{pointer}/{at}", kind, is_inline=part.file_data is not None)
                case _:
                    segments.append(asdict(part))
        return segments


def _read_arguments(text: str) -> dict[str, Any]:
    """What a model wrote wrongly goes back as nothing: the output behind it says what was wrong."""
    value = read_arguments(text).value
    return value if isinstance(value, dict) else {}
