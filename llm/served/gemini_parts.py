"""Gemini parts: what contents of Google's generateContent are made of, and as which messages of the hub they are read."""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, StrictStr, Tag, model_validator
from pydantic.dataclasses import dataclass

from kernel.problems import SchemaInvalid
from llm.documents import RULES, build_tag, refuse_field
from llm.messages import MAX_NAME, MAX_TEXT, AttachmentRef, AudioRef, ImageRef
from llm.pictures import PictureShelf, read_picture
from llm.served.body_parts import BodyPart
from llm.served.file_data import refuse_file
from llm.served.openai_messages import EMPTY, NO_DETAIL, OWN_SEGMENTS
from llm.served.provider_states import FOREIGN, read_state

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

OF_A_PROVIDER = "The hub passes on no tools that a provider runs itself."
IN_PIECES = "A call comes when its arguments are whole."
AT_ONCE = "A call is answered once, before anybody else speaks."
NO_CLIP = "Parts of a file are not chosen here. Send what counts."
NOT_KEPT = "Kept nowhere."
ONE_KIND = "A part is one of text, inlineData, functionCall, functionResponse, or what the hub holds."
OF_A_USER = "What the hub holds is named in a content of the role user."
ONE_SIGNATURE = "An answer has one signature."
KINDS = ("text", "inline_data", "file_data", "function_call", "function_response")


def to_wire(name: str) -> str:
    """A name as it stands on the wire. Bodies may have either: Google's own clients send both."""
    return re.sub(r"(?<=[a-z0-9])_([a-z0-9])", lambda found: found[1].upper(), name)


WIRE = ConfigDict(**RULES, alias_generator=to_wire, validate_by_name=True, validate_by_alias=True)


def refuse(message: str, *usual: Any) -> AfterValidator:
    """Of a field: it may have the values that ask for nothing, and no other."""

    def check(value: Any) -> Any:
        if any(type(value) is type(each) and value == each for each in usual):
            return value
        raise refuse_field(message)

    return AfterValidator(check)


Words = Annotated[StrictStr, Field(max_length=MAX_TEXT)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=MAX_NAME)]


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class InlineData(BodyPart):
    data: StrictStr
    mime_type: StrictStr = ""
    display_name: Any = None


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class FileData(BodyPart):
    file_uri: StrictStr = ""
    mime_type: StrictStr = ""
    display_name: Any = None


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class FunctionCall(BodyPart):
    name: Name
    args: dict[str, Any] = Field(default_factory=dict)
    id: Name | None = None
    partial_args: Annotated[Any, refuse(IN_PIECES)] = None
    will_continue: Annotated[Any, refuse(IN_PIECES, False)] = None


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class ResponsePart(BodyPart):
    inline_data: InlineData | None = None
    file_data: FileData | None = None

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if (self.inline_data is None) == (self.file_data is None):
            raise refuse_field("A part of what a function answers is inlineData.")
        return self


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class FunctionResponse(BodyPart):
    name: Name
    response: dict[str, Any] = Field(default_factory=dict)
    id: Name | None = None
    parts: tuple[ResponsePart, ...] = ()
    will_continue: Annotated[Any, refuse(AT_ONCE, False)] = None
    scheduling: Annotated[Any, refuse(AT_ONCE, "SCHEDULING_UNSPECIFIED")] = None


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class Part(BodyPart):
    text: Words | None = None
    inline_data: InlineData | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    thought: Annotated[Any, refuse(FOREIGN, False)] = None
    thought_signature: StrictStr | None = None
    media_resolution: Any = None
    part_metadata: Any = None
    video_metadata: Annotated[Any, refuse(NO_CLIP)] = None
    executable_code: Annotated[Any, refuse(OF_A_PROVIDER)] = None
    code_execution_result: Annotated[Any, refuse(OF_A_PROVIDER)] = None
    tool_call: Annotated[Any, refuse(OF_A_PROVIDER)] = None
    tool_response: Annotated[Any, refuse(OF_A_PROVIDER)] = None

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if sum(getattr(self, kind) is not None for kind in KINDS) != 1:
            raise refuse_field(ONE_KIND)
        return self


def _find_kind(value: object) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return build_tag(kind) if kind in OWN_SEGMENTS else build_tag("part")


Held = ImageRef | AudioRef | AttachmentRef
AnyPart = Annotated[
    Annotated[Part, Tag(build_tag("part"))]
    | Annotated[ImageRef, Tag(build_tag("image_ref"))]
    | Annotated[AudioRef, Tag(build_tag("audio_ref"))]
    | Annotated[AttachmentRef, Tag(build_tag("attachment_ref"))],
    Discriminator(_find_kind),
]
Parts = Annotated[tuple[AnyPart, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class Content(BodyPart):
    parts: Parts
    role: Literal["user", "model", "function"] = "user"


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class InstructionPart(BodyPart):
    text: Words
    part_metadata: Any = None
    thought: Annotated[Any, refuse(FOREIGN, False)] = None


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class TextContent(BodyPart):
    """Of which only the texts count, such as an instruction."""

    parts: Annotated[tuple[InstructionPart, ...], Field(min_length=1)]
    role: Any = None


class ContentsReader:
    """Contents as messages. What the model says without anybody between is one message: streams are sent back piece by piece.

    A call without an id gets one by its place. An answer without an id is that of the first open call of its name; where there is
    none, the decision refuses it as any answer that nothing waits for.
    """

    def __init__(self) -> None:
        self.shelf = PictureShelf()
        self.warnings: list[str] = []
        self._messages: list[dict[str, Any]] = []
        self._open: list[tuple[str, str]] = []  # (Id, name) of calls that have no answer yet

    def add_instruction(self, content: TextContent) -> None:
        if segments := [_write_text(each.text) for each in content.parts if each.text]:
            self._messages.append({"role": "system", "segments": segments})

    def read(self, contents: Iterable[Content]) -> list[dict[str, Any]]:
        """Raises SchemaInvalid, ParameterUnsupported, TooLarge."""
        for place, content in enumerate(contents):
            is_new = True  # two contents of a user are two messages
            for at, part in enumerate(content.parts):
                pointer = f"/contents/{place}/parts/{at}"
                if not isinstance(part, Part):
                    if content.role == "model":
                        raise SchemaInvalid.at(pointer, OF_A_USER)
                    self._add_segment(asdict(part), is_new=is_new)
                    is_new = False
                    continue
                self._note_left_out(part, pointer)
                if content.role == "model":
                    self._add_model_part(part, pointer, f"call_{place}_{at}")
                elif part.function_response is not None:
                    self._add_answer(part.function_response, f"{pointer}/functionResponse")
                    is_new = True
                elif (segment := self._read_user_part(part, pointer)) is not None:
                    self._add_segment(segment, is_new=is_new)
                    is_new = False
        return self._messages

    def _note_left_out(self, part: Part, pointer: str) -> None:
        if part.media_resolution is not None:
            self.warnings.append(f"{pointer}/mediaResolution: {NO_DETAIL}")
        if part.part_metadata is not None:
            self.warnings.append(f"{pointer}/partMetadata: {NOT_KEPT}")

    def _add_segment(self, segment: dict[str, Any], *, is_new: bool) -> None:
        if is_new or self._messages[-1]["role"] != "user":
            self._messages.append({"role": "user", "segments": []})
        self._messages[-1]["segments"].append(segment)

    def _read_user_part(self, part: Part, pointer: str) -> dict[str, Any] | None:
        """A part of what a user says; None for one that says nothing."""
        if part.function_call is not None:
            raise SchemaInvalid.at(f"{pointer}/functionCall", "This stands in a content of the role model.")
        if part.thought_signature is not None:
            raise SchemaInvalid.at(f"{pointer}/thoughtSignature", FOREIGN)
        if part.text is not None:
            return _write_text(part.text) if part.text else None
        return self._read_file(part, pointer)

    def _read_file(self, part: Part | ResponsePart, pointer: str) -> dict[str, Any]:
        data, named = part.inline_data, part.file_data
        if data is None:
            refuse_file(f"{pointer}/fileData", find_held_kind(named.mime_type if named else ""), is_inline=False)
        if (kind := find_held_kind(data.mime_type)) != "image_ref":
            refuse_file(f"{pointer}/inlineData", kind, is_inline=True)
        text = to_plain_base64(data.data)
        return self.shelf.add(read_picture(text, f"{pointer}/inlineData/data", claim=data.mime_type))

    def _open_answer(self) -> dict[str, Any]:
        """The message of the model that is being read."""
        if not self._messages or self._messages[-1]["role"] != "assistant":
            self._messages.append({"role": "assistant", "segments": [], "proposals": []})
            self._open = []
        return self._messages[-1]

    def _add_model_part(self, part: Part, pointer: str, id: str) -> None:
        message = self._open_answer()
        if part.thought_signature is not None:
            state = read_signature(part.thought_signature, f"{pointer}/thoughtSignature")
            if message.setdefault("provider_state", state) != state:
                raise SchemaInvalid.at(f"{pointer}/thoughtSignature", ONE_SIGNATURE)
        if part.text is not None:
            message["segments"] += [_write_text(part.text)] if part.text else []
        elif (call := part.function_call) is not None:
            id = call.id or id
            self._open.append((id, call.name))
            message["proposals"].append({"call_id": id, "name": call.name, "arguments": call.args})
        else:
            raise SchemaInvalid.at(pointer, "A model says texts and proposes calls here.")

    def _add_answer(self, answer: FunctionResponse, pointer: str) -> None:
        id = answer.id or next((id for id, name in self._open if name == answer.name), answer.name)
        self._open = [each for each in self._open if each[0] != id]
        text, is_error = read_result(answer.response)
        segments = [_write_text(text or EMPTY)]
        segments += [self._read_file(each, f"{pointer}/parts/{at}") for at, each in enumerate(answer.parts)]
        self._messages.append({"role": "tool", "call_id": id, "segments": segments, "is_error": is_error})


def _write_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def read_result(response: dict[str, Any]) -> tuple[str, bool]:
    """(What a function answered, whether that is an error). As Google has it: `output` or `error` where it stands alone, else all."""
    is_error = response.get("error") is not None
    value = next(iter(response.values())) if len(response) == 1 and set(response) <= {"output", "error"} else response
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), is_error


def find_held_kind(media_type: str) -> str:
    """How a file of that type is named that the hub holds."""
    return {"image": "image_ref", "audio": "audio_ref"}.get(media_type.partition("/")[0], "attachment_ref")


def to_plain_base64(text: str) -> str:
    """Google's clients send base64 in either alphabet, and may leave out what fills it up."""
    plain = text.replace("-", "+").replace("_", "/")
    return plain + "=" * (-len(plain) % 4)


def read_signature(text: str, pointer: str) -> dict[str, Any]:
    """The state in a signature. Raises SchemaInvalid for one that the hub has not passed on."""
    try:
        state = base64.b64decode(to_plain_base64(text), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise SchemaInvalid.at(pointer, FOREIGN) from None
    return read_state(state, pointer)
