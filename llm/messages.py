"""Messages: a conversation with a model, said in the same way to every provider.

A message is made of segments. Pictures, sounds and files are named by their id in the hub, never by an address: a model's provider
is sent their bytes, and nothing is fetched from where a caller points. A picture that stands in the request itself is named by its
digest (:mod:`llm.pictures`).
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    InstanceOf,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)
from pydantic.dataclasses import dataclass

from kernel.ids import decode
from llm.documents import RULES, build_discriminator, build_tag, refuse_field
from llm.pictures import DIGEST, MAX_PIXELS
from unitools.calls import ToolCall
from unitools.dialects.arguments import read_arguments
from unitools.dialects.model_json import copy_json
from unitools.strict_json import JsonRefused

if TYPE_CHECKING:
    from typing import Self

MAX_TEXT = 4 * 1024 * 1024  # characters of a segment
MAX_FILE_BYTES = 32 * 1024 * 1024
MAX_SEGMENTS = 100
MAX_PROPOSALS = 1000
MAX_NAME = 512
MAX_SECONDS = 24 * 60 * 60

PROPOSAL = {"call_id", "name", "arguments"}
HELD = ("art", "fil")  # what begins the id of an artifact, of a file


def _check_hub_id(text: str) -> str:
    prefix = text.partition("_")[0]
    try:
        decode(prefix if prefix in HELD else HELD[0], text)
    except ValueError:
        message = "Name an artifact (art_…) or a file (fil_…) of the hub. Addresses are not fetched."
        raise refuse_field(message) from None
    return text


def _check_picture_id(text: str) -> str:
    return text if DIGEST.fullmatch(text) else _check_hub_id(text)


def _copy_state(value: Any) -> Any:
    try:
        return copy_json(value)
    except JsonRefused as refusal:
        raise refuse_field(f"A provider's state is JSON, but {refusal}") from None


def _read_proposal(value: object) -> object:
    """A proposal as a caller sends it back, in the three fields that it has outside of this program."""
    if isinstance(value, ToolCall):
        return value
    if not isinstance(value, dict) or set(value) != PROPOSAL:
        raise refuse_field("A proposal has the fields call_id, name and arguments.")
    for name in ("call_id", "name"):
        if not isinstance(value[name], str) or not 0 < len(value[name]) <= MAX_NAME:
            raise refuse_field(f"This is a text of 1 to {MAX_NAME} characters.", at=(name,))
    if not isinstance(value["arguments"], dict):
        raise refuse_field("The arguments are an object with the tool's parameters as its keys.", at=("arguments",))
    read = read_arguments(value["arguments"])
    if read.problem is not None:
        raise refuse_field(read.why, at=("arguments",))
    return ToolCall(value["call_id"], value["name"], read.value, provider_id=value["call_id"])


HubId = Annotated[StrictStr, AfterValidator(_check_hub_id)]
PictureId = Annotated[StrictStr, AfterValidator(_check_picture_id)]
Bytes = Annotated[StrictInt, Field(ge=1, le=MAX_FILE_BYTES)]
Pixels = Annotated[StrictInt, Field(ge=1, le=MAX_PIXELS)]
CallId = Annotated[StrictStr, Field(min_length=1, max_length=MAX_NAME)]
Proposals = Annotated[
    tuple[Annotated[InstanceOf[ToolCall], BeforeValidator(_read_proposal)], ...], Field(max_length=MAX_PROPOSALS)
]


@dataclass(frozen=True, slots=True, config=RULES)
class Text:
    text: Annotated[StrictStr, Field(min_length=1, max_length=MAX_TEXT)]
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ImageRef:
    """A picture that the hub holds, or that came with the request."""

    id: PictureId
    media_type: Annotated[StrictStr, Field(pattern=r"^image/[a-z0-9.+-]{1,60}$")]
    size_bytes: Bytes
    width: Pixels
    height: Pixels
    type: Literal["image_ref"] = "image_ref"


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class AudioRef:
    """A sound that the hub holds. Its seconds are what providers charge for."""

    id: HubId
    media_type: Annotated[StrictStr, Field(pattern=r"^audio/[a-z0-9.+-]{1,60}$")]
    size_bytes: Bytes
    seconds: Annotated[StrictFloat, Field(gt=0, le=MAX_SECONDS)]
    sample_rate_hz: Annotated[StrictInt, Field(ge=1000, le=384_000)] | None = None
    type: Literal["audio_ref"] = "audio_ref"


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class AttachmentRef:
    """A file of another kind that the hub holds."""

    id: HubId
    media_type: Annotated[StrictStr, Field(pattern=r"^[a-z]{1,40}/[a-z0-9.+-]{1,80}$")]
    size_bytes: Bytes
    name: Annotated[StrictStr, Field(max_length=255)] = ""
    type: Literal["attachment_ref"] = "attachment_ref"


SEGMENT_TYPES = ("text", "image_ref", "audio_ref", "attachment_ref")
Segment = Annotated[
    Annotated[Text, Tag(build_tag("text"))]
    | Annotated[ImageRef, Tag(build_tag("image_ref"))]
    | Annotated[AudioRef, Tag(build_tag("audio_ref"))]
    | Annotated[AttachmentRef, Tag(build_tag("attachment_ref"))],
    build_discriminator("type", SEGMENT_TYPES),
]
Texts = Annotated[tuple[Text, ...], Field(max_length=MAX_SEGMENTS)]
Segments = Annotated[tuple[Segment, ...], Field(min_length=1, max_length=MAX_SEGMENTS)]


@dataclass(frozen=True, slots=True, config=RULES)
class ProviderState:
    """What a provider wants back unread with the next request, such as signed or encrypted reasoning. Only that provider gets it."""

    provider: Annotated[StrictStr, Field(min_length=1, max_length=64)]
    data: Annotated[Any, AfterValidator(_copy_state)] = field(repr=False)


@dataclass(frozen=True, slots=True, config=RULES)
class SystemMessage:
    segments: Annotated[Texts, Field(min_length=1)]
    role: Literal["system"] = "system"


@dataclass(frozen=True, slots=True, config=RULES)
class UserMessage:
    segments: Segments
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True, config=RULES)
class AssistantMessage:
    """What the model wrote: text, calls that it proposed, or both."""

    segments: Texts = ()
    proposals: Proposals = ()
    provider_state: ProviderState | None = None
    role: Literal["assistant"] = "assistant"

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self.segments and not self.proposals:
            raise refuse_field("A message of the assistant has text or proposals.")
        if len({call.id for call in self.proposals}) < len(self.proposals):
            raise refuse_field("Two proposals have the same call_id.", at=("proposals",))
        return self


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ToolMessage:
    """What came of one proposed call. Providers are sent its texts as untrusted ones: :mod:`llm.untrusted_texts`."""

    call_id: CallId
    segments: Segments
    is_error: bool = False
    role: Literal["tool"] = "tool"


ROLES = ("system", "user", "assistant", "tool")
Message = Annotated[
    Annotated[SystemMessage, Tag(build_tag("system"))]
    | Annotated[UserMessage, Tag(build_tag("user"))]
    | Annotated[AssistantMessage, Tag(build_tag("assistant"))]
    | Annotated[ToolMessage, Tag(build_tag("tool"))],
    build_discriminator("role", ROLES),
]


def check_conversation(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Every proposal is answered once, before anybody but a tool speaks again. All providers ask for that, each in its own words."""
    open_calls: dict[str, int] = {}
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if open_calls.pop(message.call_id, None) is None:
                raise refuse_field("No proposal before it waits for this answer.", at=(place, "call_id"))
            continue
        _check_all_answered(open_calls)
        if isinstance(message, AssistantMessage):
            open_calls = dict.fromkeys((call.id for call in message.proposals), place)
    _check_all_answered(open_calls)
    return messages


def _check_all_answered(open_calls: dict[str, int]) -> None:
    if open_calls:
        place = next(iter(open_calls.values()))
        raise refuse_field("A proposal of this message has no answer of a tool behind it.", at=(place, "proposals"))
