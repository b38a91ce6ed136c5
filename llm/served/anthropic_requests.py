"""Anthropic requests: bodies for Anthropic's Messages, read as what the hub asks a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)
from pydantic.dataclasses import dataclass

from llm.documents import RULES, build_discriminator, build_tag, read_document, refuse_field
from llm.messages import MAX_NAME, MAX_TEXT, AttachmentRef, AudioRef, ImageRef
from llm.pictures import PictureShelf, read_picture
from llm.requests import Effort
from llm.served.body_parts import BodyPart
from llm.served.file_data import refuse_file
from llm.served.formats import ServedChat
from llm.served.openai_chat import OF_THE_HUB, WHERE_TAKEN, read_hub
from llm.served.openai_messages import EMPTY, NOT_STRICT, OWN_SEGMENTS
from llm.served.parameters import MAX_FINDINGS, Findings, passed, read_parameters, refused, warned
from llm.served.provider_states import FOREIGN, read_state
from unitools.calls import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from llm.served.parameters import Parameter

NO_SUMMARY = "Texts of reasoning are not passed on; what the provider wants back of it is."
WITHOUT_THINKING = "How much effort a model takes that does not think cannot be asked for here."
NOT_CACHED = "The hub leaves caching to the provider. It was left out."
COUNTED = (
    passed("model", "A model of the hub, by its id or its alias."),
    passed(
        "messages",
        "The conversation. Pictures stand in it in base64; addresses of pictures, and other files, are refused.",
    ),
    passed("system", "What stands before the conversation."),
    passed(
        "tools",
        "Tools of the registry, by the names that models know them by. Tools that a provider runs itself are refused.",
    ),
    passed(
        "tool_choice",
        "`auto`, `any`, `tool` or `none`. Where a model cannot be told `disable_parallel_tool_use`, a warning says that.",
    ),
    passed(
        "output_config",
        "A `format` of the type `json_schema`, and an `effort`, which is `reasoning_effort` of the hub's chat.",
    ),
    passed(
        "thinking",
        "`budget_tokens` are `reasoning_tokens` of the hub's chat; `adaptive` is the effort `auto`, `disabled` the effort `none`. "
        + WHERE_TAKEN,
    ),
    warned("cache_control", NOT_CACHED),
    refused("speed", "The hub does not choose how fast a provider answers.", "standard"),
    refused("context_management", "The hub sends the conversation as it is. Shorten it yourself."),
    refused("mcp_servers", "Tools come from the registry. The hub lets no provider call MCP servers.", []),
)
PARAMETERS = (
    *COUNTED,
    passed("max_tokens", "The most tokens that the answer may have."),
    passed("stop_sequences", "Texts before which the answer ends. Which of them it was is not said."),
    passed("temperature", "0 to 2."),
    passed("top_p", "More than 0, up to 1."),
    passed("top_k", WHERE_TAKEN),
    passed("stream", "Whether the answer comes as events."),
    passed("metadata", "Its `user_id` is the person for whom the agent asks. No provider is sent it."),
    OF_THE_HUB,
    warned("service_tier", "The hub does not choose a tier. It was left out."),
    refused("inference_geo", "The hub does not choose where a provider computes."),
    refused("container", "The hub uses no containers of a provider."),
)
WHOLE = "A call comes when its arguments are whole."
OF_A_PROVIDER = "The hub passes on no tools that a provider runs itself."


def _to_blocks(value: object) -> object:
    """A text is a list of one block, and no text one of none."""
    return ([{"type": "text", "text": value}] if value else []) if isinstance(value, str) else value


def _refuse_thinking(_kind: str) -> str:
    raise refuse_field(FOREIGN)


def _check_tool_kind(value: object) -> object:
    if isinstance(value, dict) and value.get("type") not in ("custom", None):
        raise refuse_field(OF_A_PROVIDER, at=("type",))
    return value


Words = Annotated[StrictStr, Field(min_length=1, max_length=MAX_TEXT)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=MAX_NAME)]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class TextBlock(BodyPart):
    text: Words
    type: Literal["text"] = "text"
    cache_control: Any = None
    citations: None = None
    parsed_output: Any = None  # what Anthropic's SDK has added for its user


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class FileBlock(BodyPart):
    source: dict[str, Any]
    type: Literal["image", "document"]
    cache_control: Any = None
    title: Any = None
    context: Any = None
    citations: Any = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ToolUseBlock(BodyPart):
    id: Name
    name: Name
    input: dict[str, Any]
    type: Literal["tool_use"]
    cache_control: Any = None
    caller: Any = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ThinkingBlock(BodyPart):
    type: Annotated[Literal["thinking"], AfterValidator(_refuse_thinking)]
    thinking: Any = None
    signature: Any = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class RedactedBlock(BodyPart):
    data: StrictStr
    type: Literal["redacted_thinking"]


_TEXT = Annotated[TextBlock, Tag(build_tag("text"))]
_IMAGE = Annotated[FileBlock, Tag(build_tag("image"))]
_DOCUMENT = Annotated[FileBlock, Tag(build_tag("document"))]
_HELD = (
    Annotated[ImageRef, Tag(build_tag("image_ref"))]
    | Annotated[AudioRef, Tag(build_tag("audio_ref"))]
    | Annotated[AttachmentRef, Tag(build_tag("attachment_ref"))]
)
Held = ImageRef | AudioRef | AttachmentRef
ContentBlock = Annotated[_TEXT | _IMAGE | _DOCUMENT | _HELD, build_discriminator("type", ("text", *OWN_SEGMENTS))]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ToolResultBlock(BodyPart):
    tool_use_id: Name
    type: Literal["tool_result"]
    content: Annotated[tuple[ContentBlock, ...], BeforeValidator(_to_blocks)] = ()
    is_error: StrictBool = False
    cache_control: Any = None


UserBlock = Annotated[
    _TEXT | _IMAGE | _DOCUMENT | _HELD | Annotated[ToolResultBlock, Tag(build_tag("tool_result"))],
    build_discriminator("type", ("text", "tool_result", *OWN_SEGMENTS)),
]
AssistantBlock = Annotated[
    _TEXT
    | Annotated[ToolUseBlock, Tag(build_tag("tool_use"))]
    | Annotated[ThinkingBlock, Tag(build_tag("thinking"))]
    | Annotated[RedactedBlock, Tag(build_tag("redacted_thinking"))],
    build_discriminator("type", ("text", "tool_use", "redacted_thinking")),
]
Texts = Annotated[tuple[TextBlock, ...], BeforeValidator(_to_blocks)]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class UserTurn(BodyPart):
    content: Annotated[tuple[UserBlock, ...], BeforeValidator(_to_blocks), Field(min_length=1)]
    role: Literal["user"]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class AssistantTurn(BodyPart):
    content: Annotated[tuple[AssistantBlock, ...], BeforeValidator(_to_blocks), Field(min_length=1)]
    role: Literal["assistant"]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class SystemTurn(BodyPart):
    content: Annotated[Texts, Field(min_length=1)]
    role: Literal["system"]


Turn = Annotated[
    Annotated[UserTurn, Tag(build_tag("user"))]
    | Annotated[AssistantTurn, Tag(build_tag("assistant"))]
    | Annotated[SystemTurn, Tag(build_tag("system"))],
    build_discriminator("role", ("user", "assistant", "system")),
]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ToolBody(BodyPart):
    name: Name
    input_schema: dict[str, Any]
    description: StrictStr = ""
    type: Literal["custom"] | None = None
    strict: StrictBool | None = None
    cache_control: Any = None
    eager_input_streaming: Any = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ToolChoice(BodyPart):
    type: Literal["auto", "any", "tool", "none"]
    name: Name | None = None
    disable_parallel_tool_use: StrictBool = False


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class Metadata(BodyPart):
    user_id: StrictStr | None = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class OutputFormat(BodyPart):
    schema: dict[str, Any]
    type: Literal["json_schema"]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class OutputConfig(BodyPart):
    format: OutputFormat | None = None
    effort: Effort | None = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class Thinking(BodyPart):
    type: Literal["enabled", "adaptive", "disabled"]
    budget_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    display: Literal["summarized", "omitted"] | None = None

    @model_validator(mode="after")
    def _check_budget(self) -> Self:
        if (self.type == "enabled") != (self.budget_tokens is not None):
            raise refuse_field("Thinking that is enabled has these, and no other.", at=("budget_tokens",))
        return self


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class CountBody(BodyPart):
    """What may be counted. Nothing in it is about the answer."""

    model: Name
    messages: Annotated[tuple[Turn, ...], Field(min_length=1)]
    system: Texts = ()
    tools: tuple[Annotated[ToolBody, BeforeValidator(_check_tool_kind)], ...] = ()
    tool_choice: ToolChoice | None = None
    output_config: OutputConfig | None = None
    thinking: Thinking | None = None


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class MessagesBody(CountBody):
    max_tokens: Annotated[StrictInt, Field(ge=1)]
    stop_sequences: tuple[StrictStr, ...] = ()
    temperature: StrictFloat | None = None
    top_p: StrictFloat | None = None
    top_k: StrictInt | None = None
    stream: StrictBool = False
    metadata: Metadata = Metadata()


B = TypeVar("B", bound=CountBody)


def read_messages(body: Any) -> ServedChat:
    """Raises SchemaInvalid, ParameterUnsupported."""
    read, (of_request, envelope), warnings = _read_body(MessagesBody, body, PARAMETERS)
    sampling = {name: getattr(read, name) for name in ("max_tokens", "temperature", "top_p", "top_k")}
    chosen = sampling | read_effort(read)
    arguments: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if read.stop_sequences:
        arguments["stop"] = list(read.stop_sequences)
    user = {"user_id": read.metadata.user_id} if read.metadata.user_id else {}
    shelf = PictureShelf()
    return ServedChat(
        model=read.model,
        arguments=build_arguments(read, shelf) | arguments | of_request,
        own_tools=build_specs(read),
        envelope=envelope | user,
        wants_stream=read.stream,
        warnings=warnings,
        pictures=shelf.pictures,
    )


def read_count(body: Any) -> ServedChat:
    """A conversation that is only to be counted. Raises as :func:`read_messages` does."""
    read, _, warnings = _read_body(CountBody, body, COUNTED)
    shelf = PictureShelf()
    return ServedChat(
        model=read.model,
        arguments=build_arguments(read, shelf),
        own_tools=build_specs(read),
        warnings=warnings,
        pictures=shelf.pictures,
    )


def _read_body(
    kind: type[B], body: Any, table: tuple[Parameter, ...]
) -> tuple[B, tuple[dict[str, Any], dict[str, Any]], tuple[str, ...]]:
    """(The body, what of it is the hub's own, warnings)."""
    findings = Findings()
    given, warnings = read_parameters(body, table, findings)
    hub = read_hub(given, findings)
    findings.check()
    read = read_document(kind, given)
    if read.thinking is not None:
        if read.thinking.type == "disabled" and read_effort(read)["reasoning_effort"] != "none":
            findings.add_unsupported("/output_config/effort", WITHOUT_THINKING)
            findings.check()
        if read.thinking.display == "summarized":
            warnings += (f"/thinking/display: {NO_SUMMARY}",)
    left_out = [f"/tools/{at}/strict: {NOT_STRICT}" for at, each in enumerate(read.tools) if each.strict]
    left_out += [
        f"/tools/{at}/eager_input_streaming: {WHOLE}"
        for at, each in enumerate(read.tools)
        if each.eager_input_streaming
    ]
    left_out += [f"{place}/cache_control: {NOT_CACHED}" for place in _iter_cached(read)][:MAX_FINDINGS]
    return read, hub, (*warnings, *left_out)


def _iter_cached(read: CountBody) -> Iterator[str]:
    """The places of blocks and tools up to which the provider is to keep what it has read."""
    blocks: list[tuple[str, object]] = [(f"/system/{at}", each) for at, each in enumerate(read.system)]
    blocks += [(f"/tools/{at}", each) for at, each in enumerate(read.tools)]
    for place, turn in enumerate(read.messages):
        for at, block in enumerate(turn.content):
            blocks.append((f"/messages/{place}/content/{at}", block))
            inner = block.content if isinstance(block, ToolResultBlock) else ()
            blocks += [(f"/messages/{place}/content/{at}/content/{below}", each) for below, each in enumerate(inner)]
    return (place for place, each in blocks if getattr(each, "cache_control", None) is not None)


def read_effort(read: CountBody) -> dict[str, Any]:
    """How much the model reasons, in the parameters of the hub's chat."""
    thinking = read.thinking
    effort: str | None = read.output_config.effort if read.output_config is not None else None
    if effort is None and thinking is not None:
        effort = {"adaptive": "auto", "disabled": "none"}.get(thinking.type)
    return {"reasoning_effort": effort, "reasoning_tokens": thinking.budget_tokens if thinking is not None else None}


def build_specs(read: CountBody) -> tuple[ToolSpec, ...]:
    if read.tool_choice is not None and read.tool_choice.type == "none":
        return ()
    return tuple(ToolSpec(each.name, each.description, each.input_schema) for each in read.tools)


def build_arguments(read: CountBody, shelf: PictureShelf) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    if read.system:
        messages.append({"role": "system", "segments": _build_texts(read.system)})
    for place, turn in enumerate(read.messages):
        messages += _iter_messages(turn, f"/messages/{place}/content", shelf)
    arguments: dict[str, Any] = {"messages": messages}
    if read.output_config is not None and read.output_config.format is not None:
        arguments["response_format"] = {"type": "schema", "json_schema": read.output_config.format.schema}
    if (choice := read.tool_choice) is not None and choice.type in ("any", "tool"):
        arguments["tool_choice"] = "required" if choice.type == "any" else {"name": choice.name}
    if choice is not None and choice.disable_parallel_tool_use:
        arguments["parallel_calls"] = False
    return arguments


def _build_texts(blocks: tuple[TextBlock, ...]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": each.text} for each in blocks]


def _iter_messages(
    turn: UserTurn | AssistantTurn | SystemTurn, pointer: str, shelf: PictureShelf
) -> Iterator[dict[str, Any]]:
    """A turn of the user may hold answers of tools, each of which is a message of its own here."""
    if isinstance(turn, SystemTurn):
        yield {"role": "system", "segments": _build_texts(turn.content)}
        return
    if isinstance(turn, AssistantTurn):
        yield _build_assistant(turn, pointer)
        return
    said: list[dict[str, Any]] = []
    for at, block in enumerate(turn.content):
        if not isinstance(block, ToolResultBlock):
            said.append(_build_segment(block, f"{pointer}/{at}", shelf))
            continue
        if said:
            yield {"role": "user", "segments": said}
            said = []
        yield _build_result(block, f"{pointer}/{at}/content", shelf)
    if said:
        yield {"role": "user", "segments": said}


def _build_result(block: ToolResultBlock, pointer: str, shelf: PictureShelf) -> dict[str, Any]:
    segments = [_build_segment(each, f"{pointer}/{at}", shelf) for at, each in enumerate(block.content)]
    told = segments or [{"type": "text", "text": EMPTY}]
    return {"role": "tool", "call_id": block.tool_use_id, "segments": told, "is_error": block.is_error}


def _build_segment(block: TextBlock | FileBlock | Held, pointer: str, shelf: PictureShelf) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if not isinstance(block, FileBlock):
        return asdict(block)
    data, claim = block.source.get("data"), block.source.get("media_type")
    if block.type == "image" and isinstance(data, str):
        claim = claim if isinstance(claim, str) else ""
        return shelf.add(read_picture(data, f"{pointer}/source/data", claim=claim))
    kind = "image_ref" if block.type == "image" else "attachment_ref"
    return refuse_file(f"{pointer}/source", kind, is_inline=isinstance(data, str))


def _build_assistant(turn: AssistantTurn, pointer: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "segments": [], "proposals": []}
    for at, block in enumerate(turn.content):
        match block:
            case TextBlock():
                message["segments"].append({"type": "text", "text": block.text})
            case ToolUseBlock():
                call = {"call_id": block.id, "name": block.name, "arguments": block.input}
                message["proposals"].append(call)
            case RedactedBlock():
                message["provider_state"] = read_state(block.data, f"{pointer}/{at}/data")
    return message
