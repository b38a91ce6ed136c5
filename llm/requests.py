"""Requests: what a model is asked for, within bounds that hold for every provider.

A request that is out of bounds does not come about: its constructor raises pydantic's ``ValidationError``, and a JSON body is refused
by :func:`llm.documents.read_document` with the place of each mistake. What a model does not support is another question
(:mod:`llm.model_features`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    InstanceOf,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
)
from pydantic.dataclasses import dataclass

from llm.documents import RULES, build_discriminator, build_tag, refuse_field
from llm.messages import MAX_NAME, Message, check_conversation
from llm.output_schemas import find_schema_mistake
from unitools.calls import ToolSpec

MAX_MESSAGES = 10_000
MAX_TOKENS = 10_000_000
MAX_BIASES = 2000
MAX_STOPS = 16
MAX_TOP_K = 1_000_000
MAX_ITEMS = 10_000
MAX_ITEM = 1024 * 1024  # characters
MAX_KEY = 255

_PROVIDER = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,199}")
_ALIAS = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_TOKEN = re.compile(r"0|[1-9][0-9]{0,9}")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")

MODEL_WANTED = (
    "Name a model as `provider:model`, or by an alias of lower-case letters, digits, dots, hyphens and underscores."
)


@plain_dataclass(frozen=True, slots=True)
class ModelId:
    """A provider's name and its own name of a model, which may hold colons and slashes itself."""

    provider: str
    model: str

    @classmethod
    def parse(cls, text: str) -> ModelId:
        """The id in a text of the form ``provider:model``. Raises ValueError."""
        provider, _, model = text.partition(":")
        if not is_provider_name(provider) or not _MODEL.fullmatch(model):
            raise ValueError(MODEL_WANTED)
        return cls(provider, model)

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


@plain_dataclass(frozen=True, slots=True)
class NamedTool:
    """One of the tools of a request, by its name there."""

    name: str


def is_alias(name: str) -> bool:
    return _ALIAS.fullmatch(name) is not None


def is_provider_name(name: str) -> bool:
    return _PROVIDER.fullmatch(name) is not None


def _check_model_name(name: str) -> str:
    if not is_alias(name):
        try:
            ModelId.parse(name)
        except ValueError:
            raise refuse_field(MODEL_WANTED) from None
    return name


def _check_token(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise refuse_field("The keys are numbers of tokens, as texts.")
    return text


def _check_key(text: str) -> str:
    if not _KEY.fullmatch(text):
        raise refuse_field(f"A key has 1 to {MAX_KEY} visible ASCII characters.")
    return text


def _check_tool(value: object) -> object:
    if not isinstance(value, ToolSpec):
        raise refuse_field("Tools come from the registry. A description that a caller sends is not shown to a model.")
    return value


def _check_tool_names(tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    if len({tool.name for tool in tools}) < len(tools):
        raise refuse_field("Two tools have the same name.")
    return tools


def _read_choice(value: object) -> object:
    match value:
        case None | "required" | NamedTool():
            return value
        case {"name": str() as name, **others} if not others and 0 < len(name) <= MAX_NAME:
            return NamedTool(name)
    raise refuse_field("This is `required`, or an object with the `name` of one of the tools.")


def _check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    if mistake := find_schema_mistake(schema):
        raise refuse_field(mistake.message, at=mistake.path)
    return schema


ModelName = Annotated[StrictStr, AfterValidator(_check_model_name)]
Penalty = Annotated[StrictFloat, Field(ge=-2, le=2)]
Bias = Annotated[StrictFloat, Field(ge=-100, le=100)]
Token = Annotated[StrictStr, AfterValidator(_check_token)]
Key = Annotated[StrictStr, AfterValidator(_check_key)]
Tool = Annotated[InstanceOf[ToolSpec], BeforeValidator(_check_tool)]
Tools = Annotated[tuple[Tool, ...], AfterValidator(_check_tool_names)]
ToolChoice = Annotated[Literal["required"] | InstanceOf[NamedTool] | None, BeforeValidator(_read_choice)]
# `auto`: the model decides by itself how much it reasons. Not every model has all of them.
Effort = Literal["auto", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
Hint = Annotated[StrictStr, Field(min_length=1, max_length=MAX_KEY)]
Stop = Annotated[StrictStr, Field(min_length=1, max_length=256)]
Item = Annotated[StrictStr, Field(min_length=1, max_length=MAX_ITEM)]


@dataclass(frozen=True, slots=True, config=RULES)
class TextFormat:
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, config=RULES)
class JsonFormat:
    """One JSON document of any form. ``json_strict``: it is never repaired."""

    json_strict: StrictBool = False
    type: Literal["json"] = "json"


@dataclass(frozen=True, slots=True, config=RULES)
class SchemaFormat:
    """One JSON document that a JSON Schema (2020-12) holds for. ``json_strict``: it is never repaired."""

    json_schema: Annotated[dict[str, Any], AfterValidator(_check_schema)]
    json_strict: StrictBool = False
    type: Literal["schema"] = "schema"


FORMATS = ("text", "json", "schema")
ResponseFormat = Annotated[
    Annotated[TextFormat, Tag(build_tag("text"))]
    | Annotated[JsonFormat, Tag(build_tag("json"))]
    | Annotated[SchemaFormat, Tag(build_tag("schema"))],
    build_discriminator("type", FORMATS),
]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ChatRequest:
    """A conversation to go on with. A parameter that is None is left to the provider.

    ``tool_choice``: the model has to propose a call, of any tool (``required``) or of that one; None leaves it to the model.
    ``parallel_calls``: it may propose several at once.

    ``reasoning_effort``: how much the model reasons before it answers; ``reasoning_tokens``: at most for how many of ``max_tokens``.

    ``cache_hint``: requests with the same one begin alike, which helps a provider to find again what it has read already. It is sent
    as a digest. ``allow_sensitive`` is for whoever stands in between; no provider is sent it. ``strict_parameters``: what the model
    does not support refuses the request, and is no warning.
    """

    model: ModelName
    messages: Annotated[
        tuple[Message, ...], Field(min_length=1, max_length=MAX_MESSAGES), AfterValidator(check_conversation)
    ]
    tools: Tools = ()
    tool_choice: ToolChoice = None
    parallel_calls: StrictBool = True
    temperature: Annotated[StrictFloat, Field(ge=0, le=2)] | None = None
    top_p: Annotated[StrictFloat, Field(gt=0, le=1)] | None = None
    top_k: Annotated[StrictInt, Field(ge=1, le=MAX_TOP_K)] | None = None
    max_tokens: Annotated[StrictInt, Field(ge=1, le=MAX_TOKENS)] | None = None
    reasoning_effort: Effort | None = None
    reasoning_tokens: Annotated[StrictInt, Field(ge=1, le=MAX_TOKENS)] | None = None
    stop: Annotated[tuple[Stop, ...], Field(max_length=MAX_STOPS)] = ()
    seed: Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    logit_bias: Annotated[Mapping[Token, Bias], Field(max_length=MAX_BIASES)] = field(default_factory=dict)
    response_format: ResponseFormat = field(default_factory=TextFormat)
    idempotency_key: Key | None = None
    cache_hint: Hint | None = None
    allow_sensitive: StrictBool = False
    strict_parameters: StrictBool = False


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class EmbedRequest:
    """Texts to be turned into vectors.

    ``kind``: some models want to know whether a text is looked for or looked through. ``pooling``: how the vectors of tokens become
    one; None leaves it to the model.
    """

    model: ModelName
    items: Annotated[tuple[Item, ...], Field(min_length=1, max_length=MAX_ITEMS)]
    normalize: StrictBool = True
    pooling: Literal["mean", "cls", "last"] | None = None
    kind: Literal["query", "passage"] | None = None
    idempotency_key: Key | None = None
    strict_parameters: StrictBool = False


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class RerankRequest:
    """Texts to be ordered by how well they answer a query."""

    model: ModelName
    query: Item
    candidates: Annotated[tuple[Item, ...], Field(min_length=1, max_length=MAX_ITEMS)]
    idempotency_key: Key | None = None
