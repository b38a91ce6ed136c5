"""Body schemas: what the bodies in served formats may be, as JSON Schema of OpenAPI 3.0, as strictly as they are read.

Which parameters there are, and what becomes of each, the tables say by which bodies are read; what each may be stands here. A
parameter that is refused may have the values that ask for nothing; null always does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.ids import id_pattern
from llm.messages import MAX_NAME, MAX_TEXT
from llm.model_features import Treatment
from llm.requests import MAX_TOKENS
from llm.served import anthropic_requests, openai_chat, openai_embeddings, openai_messages, rerank, responses_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from llm.served.parameters import Parameter

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
WORDS: Schema = {"type": "string", "minLength": 1}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_NAME}
OBJECT: Schema = {"type": "object", "additionalProperties": {}}
COUNT: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS}
HUB: Schema = {"$ref": "#/components/schemas/ServedHub"}
PNG: Schema = {"type": "string", "format": "png-base64"}
PNG_URL: Schema = {"type": "string", "format": "picture-url", "description": "data:image/png;base64,… and other types."}
HELD: Schema = {"type": "string", "pattern": f"{id_pattern('art')}|{id_pattern('fil')}"}
STATE: Schema = {"type": "string", "format": "provider-state", "description": "As an answer had it."}


def one_of(*words: Any) -> Schema:
    kind = {bool: "boolean", int: "integer", str: "string"}[type(words[0])]
    return {"type": kind, "enum": list(words)}


def any_of(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def refer_to(component: str) -> Schema:
    return {"$ref": f"#/components/schemas/{component}"}


def list_of(items: Schema, *, least: int = 0) -> Schema:
    return {"type": "array", "items": items} | ({"minItems": least} if least else {})


def object_of(needed: str = "", **properties: Schema) -> Schema:
    required = {"required": needed.split()} if needed else {}
    optional = {
        name: said if name in needed.split() else {**said, "nullable": True} for name, said in properties.items()
    }
    return {"type": "object", "additionalProperties": False, **required, "properties": optional}


def _usual_values(parameter: Parameter) -> Schema | None:
    """The values that ask for nothing beyond what is done anyhow; None where there is none but null."""
    first = next(iter(parameter.usual), None)
    if isinstance(first, list):
        return {
            "type": "array",
            "items": TEXT if not first else one_of(*first),
            "minItems": len(first),
            "maxItems": len(first),
        }
    if isinstance(first, bool):  # makers of clients know no enumeration of one truth value
        return {"type": "boolean", "not": {"enum": [not first]}}
    return one_of(*parameter.usual) if isinstance(first, (int, str)) else None


def describe_body(table: Iterable[Parameter], needed: str, shapes: Mapping[str, Schema]) -> Schema:
    """A body of these parameters. ``shapes``: what those may be that are passed on."""
    properties: dict[str, Schema] = {}
    for each in table:
        shape = _usual_values(each) if each.treatment is Treatment.REFUSED else shapes.get(each.name, {})
        if shape is not None:
            properties[each.name] = shape if "$ref" in shape else {**shape, "description": each.meaning}
    return object_of(needed, **properties)


_SIDE: Schema = {"type": "integer", "minimum": 1, "maximum": 65_535}
_SIZE: Schema = {"type": "integer", "minimum": 1, "maximum": 32 * 1024 * 1024}
_HELD: tuple[Schema, ...] = (
    object_of(
        "type id media_type size_bytes width height",
        type=one_of("image_ref"),
        id=HELD,
        media_type={"type": "string", "pattern": "^image/[a-z0-9.+-]{1,60}$"},
        size_bytes=_SIZE,
        width=_SIDE,
        height=_SIDE,
    ),
    object_of(
        "type id media_type size_bytes seconds",
        type=one_of("audio_ref"),
        id=HELD,
        media_type={"type": "string", "pattern": "^audio/[a-z0-9.+-]{1,60}$"},
        size_bytes=_SIZE,
        seconds={"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 86_400},
    ),
    object_of(
        "type id media_type size_bytes",
        type=one_of("attachment_ref"),
        id=HELD,
        media_type={"type": "string", "pattern": "^[a-z]{1,40}/[a-z0-9.+-]{1,80}$"},
        size_bytes=_SIZE,
    ),
)
HELD_COMPONENTS = dict(zip(("ServedImageRef", "ServedAudioRef", "ServedAttachmentRef"), _HELD, strict=True))
HELD_FORMS = tuple(map(refer_to, HELD_COMPONENTS))


# ── OpenAI's Chat Completions


def _describe_chat() -> dict[str, Schema]:
    def part(kind: str, **said: Schema) -> Schema:
        return object_of(f"type {' '.join(said)}", type=one_of(kind), **said)

    named = {
        "ServedPictureAddress": object_of("url", url=PNG_URL, detail=TEXT),
        "ServedTextPart": part("text", text=TEXT),
        "ServedRefusalPart": part("refusal", refusal=TEXT),
        "ServedPicturePart": part("image_url", image_url=any_of(PNG_URL, refer_to("ServedPictureAddress"))),
        "ServedChatPart": any_of(
            *(refer_to(f"Served{kind}Part") for kind in ("Text", "Refusal", "Picture")), *HELD_FORMS
        ),
    }
    content = any_of(TEXT, list_of(refer_to("ServedChatPart")))
    call = {
        "type": "object",
        "required": ["id", "function"],
        "properties": {
            "id": NAME,
            "type": one_of("function"),
            "function": {
                "type": "object",
                "required": ["name", "arguments"],
                "properties": {"name": NAME, "arguments": TEXT},
            },
        },
    }
    shapes = {
        "content": content,
        "refusal": content,
        "tool_calls": list_of(call),
        "tool_call_id": NAME,
        "annotations": {},
        "name": TEXT,
        "parsed": {},
    }
    messages = [
        describe_body(table, "role", shapes | {"role": one_of(role)}) for role, table in openai_messages.FIELDS.items()
    ]
    function = describe_body(
        openai_messages.OF_A_TOOL, "name", {"name": WORDS, "description": TEXT, "parameters": OBJECT, "strict": FLAG}
    )
    chosen = {
        "type": "object",
        "required": ["type", "function"],
        "properties": {
            "type": one_of("function"),
            "function": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
        },
    }
    form = {"type": "object", "required": ["type"], "properties": {"type": one_of("text", "json_object")}}
    schema_form = {
        "type": "object",
        "required": ["type", "json_schema"],
        "properties": {
            "type": one_of("json_schema"),
            "json_schema": {
                "type": "object",
                "required": ["schema"],
                "properties": {"schema": OBJECT, "name": TEXT, "strict": FLAG},
            },
        },
    }
    body = describe_body(
        openai_chat.PARAMETERS,
        "model messages",
        {
            "model": WORDS,
            "messages": list_of({"$ref": "#/components/schemas/ServedChatMessage"}, least=1),
            "tools": list_of(any_of(TEXT, object_of("type function", type=one_of("function"), function=function))),
            "tool_choice": any_of(one_of("auto", "none", "required"), chosen),
            "parallel_tool_calls": FLAG,
            "response_format": any_of(form, schema_form),
            "max_completion_tokens": COUNT,
            "max_tokens": COUNT,
            "stop": any_of(WORDS, list_of(WORDS)),
            "temperature": {**NUMBER, "minimum": 0, "maximum": 2},
            "top_p": {**NUMBER, "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
            "stream": FLAG,
            "stream_options": describe_body(openai_chat.STREAM_OPTIONS, "", {"include_usage": FLAG}),
            "user": TEXT,
            "hub": HUB,
        },
    )
    body["not"] = {"required": ["max_completion_tokens", "max_tokens"]}
    forms = {f"ServedChatMessage{number}": message for number, message in enumerate(messages, 1)}
    return {"ServedChat": body, "ServedChatMessage": any_of(*map(refer_to, forms))} | forms | named


# ── Anthropic's Messages


def _describe_messages() -> dict[str, Schema]:
    picture = object_of(
        "type source",
        type=one_of("image"),
        source={
            "type": "object",
            "required": ["data"],
            "properties": {"type": one_of("base64"), "data": PNG, "media_type": one_of("image/png")},
            "additionalProperties": False,
        },
        cache_control={},
    )
    text = object_of(
        "type text",
        type=one_of("text"),
        text={**WORDS, "maxLength": MAX_TEXT},
        cache_control={},
        parsed_output={},
    )
    source = picture["properties"]["source"]
    picture["properties"]["source"] = refer_to("ServedPictureSource")
    blocks = {"ServedPictureSource": source, "ServedPictureBlock": picture, "ServedTextBlock": text}
    text, picture = refer_to("ServedTextBlock"), refer_to("ServedPictureBlock")
    words = {**WORDS, "maxLength": MAX_TEXT}
    told = any_of(TEXT, list_of(any_of(text, picture, *HELD_FORMS)))
    result = object_of(
        "type tool_use_id",
        type=one_of("tool_result"),
        tool_use_id=NAME,
        content=told,
        is_error=FLAG,
        cache_control={},
    )
    use = object_of(
        "type id name input",
        type=one_of("tool_use"),
        id=NAME,
        name=NAME,
        input=OBJECT,
        cache_control={},
        caller={},
    )
    redacted = object_of("type data", type=one_of("redacted_thinking"), data=STATE)
    blocks |= {"ServedResultBlock": result, "ServedUseBlock": use, "ServedRedactedBlock": redacted}
    result, use, redacted = map(refer_to, ("ServedResultBlock", "ServedUseBlock", "ServedRedactedBlock"))
    turns = (
        object_of(
            "role content",
            role=one_of("user"),
            content=any_of(words, list_of(any_of(text, picture, result, *HELD_FORMS), least=1)),
        ),
        object_of(
            "role content",
            role=one_of("assistant"),
            content=any_of(words, list_of(any_of(text, use, redacted), least=1)),
        ),
        object_of("role content", role=one_of("system"), content=any_of(words, list_of(text, least=1))),
    )
    thinking = any_of(
        object_of(
            "type budget_tokens", type=one_of("enabled"), budget_tokens=COUNT, display=one_of("summarized", "omitted")
        ),
        object_of("type", type=one_of("adaptive", "disabled"), display=one_of("summarized", "omitted")),
    )
    effort = object_of(
        "",
        format=object_of("type schema", type=one_of("json_schema"), schema=OBJECT),
        effort=one_of("auto", "none", "minimal", "low", "medium", "high", "xhigh", "max"),
    )
    tool = object_of(
        "name input_schema",
        name=NAME,
        input_schema=OBJECT,
        description=TEXT,
        type=one_of("custom"),
        strict=FLAG,
        cache_control={},
        eager_input_streaming={},
    )
    shapes = {
        "model": NAME,
        "messages": list_of({"$ref": "#/components/schemas/ServedTurn"}, least=1),
        "system": any_of(TEXT, list_of(text)),
        "tools": list_of(tool),
        "tool_choice": object_of(
            "type", type=one_of("auto", "any", "tool", "none"), name=NAME, disable_parallel_tool_use=FLAG
        ),
        "output_config": effort,
        "thinking": thinking,
        "max_tokens": COUNT,
        "stop_sequences": list_of(WORDS),
        "temperature": {**NUMBER, "minimum": 0, "maximum": 2},
        "top_p": {**NUMBER, "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
        "top_k": {"type": "integer"},
        "stream": FLAG,
        "metadata": object_of("", user_id=TEXT),
        "hub": HUB,
    }
    # Of a model that does not think nobody can ask how much effort it takes.
    unsure = {
        "required": ["thinking", "output_config"],
        "properties": {
            "thinking": {"required": ["type"], "properties": {"type": {"enum": ["disabled"]}}},
            "output_config": {
                "required": ["effort"],
                "properties": {"effort": {"enum": [each for each in _EFFORTS if each != "none"]}},
            },
        },
    }
    named = dict(zip(("ServedUserTurn", "ServedAssistantTurn", "ServedSystemTurn"), turns, strict=True))
    count = describe_body(anthropic_requests.COUNTED, "model messages", shapes)
    body = describe_body(anthropic_requests.PARAMETERS, "model messages max_tokens", shapes)
    return {
        "ServedMessages": body | {"not": unsure},
        "ServedMessageCount": count | {"not": unsure},
        "ServedTurn": any_of(*map(refer_to, named)),
        **named,
        **blocks,
    }


_EFFORTS = ("auto", "none", "minimal", "low", "medium", "high", "xhigh", "max")


# ── OpenAI's Responses


def _describe_responses() -> dict[str, Schema]:
    words = {"type": "string", "maxLength": MAX_TEXT}
    parts = (
        object_of(
            "type text",
            type=one_of("input_text", "output_text", "text"),
            text=words,
            annotations={},
            logprobs={},
            parsed={},
        ),
        object_of("type refusal", type=one_of("refusal"), refusal=words),
        object_of("type image_url", type=one_of("input_image"), image_url=PNG_URL, filename={}, detail={}),
    )
    kinds = dict(zip(("ServedTextItemPart", "ServedRefusalItemPart", "ServedPictureItemPart"), parts, strict=True))
    content = any_of(words, list_of(any_of(*map(refer_to, kinds), *HELD_FORMS)))
    items = (
        object_of(
            "role content",
            type=one_of("message"),
            role=one_of("user", "assistant", "system", "developer"),
            content=content,
            id={},
            status={},
            phase={},
        ),
        object_of(
            "type call_id name arguments",
            type=one_of("function_call"),
            call_id=NAME,
            name=NAME,
            arguments=TEXT,
            parsed_arguments={},
            id={},
            status={},
            caller={},
        ),
        object_of(
            "type call_id output",
            type=one_of("function_call_output"),
            call_id=NAME,
            output=content,
            id={},
            status={},
            caller={},
            name={},
        ),
        object_of(
            "type encrypted_content",
            type=one_of("reasoning"),
            encrypted_content=STATE,
            id={},
            status={},
            summary={},
            content={},
        ),
    )
    form = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": one_of("text", "json_object")},
    }
    schema_form = {
        "type": "object",
        "required": ["type", "schema"],
        "properties": {"type": one_of("json_schema"), "schema": OBJECT, "name": TEXT, "strict": FLAG},
    }
    chosen = {"type": "object", "required": ["type", "name"], "properties": {"type": one_of("function"), "name": TEXT}}
    penalty = {**NUMBER, "minimum": -2, "maximum": 2}
    body = describe_body(
        responses_requests.PARAMETERS,
        "model input",
        {
            "model": NAME,
            "input": any_of(TEXT, list_of({"$ref": "#/components/schemas/ServedItem"})),
            "instructions": words,
            "tools": list_of(
                object_of(
                    "type name", type=one_of("function"), name=NAME, parameters=OBJECT, description=TEXT, strict=FLAG
                )
            ),
            "tool_choice": any_of(one_of("auto", "none", "required"), chosen),
            "parallel_tool_calls": FLAG,
            "max_output_tokens": COUNT,
            "temperature": {**NUMBER, "minimum": 0, "maximum": 2},
            "top_p": {**NUMBER, "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
            "presence_penalty": penalty,
            "frequency_penalty": penalty,
            "reasoning": describe_body(responses_requests.OF_REASONING, "", {"effort": one_of(*_EFFORTS)}),
            "text": object_of("", format=any_of(form, schema_form)),
            "stream": FLAG,
            "metadata": {"type": "object", "additionalProperties": TEXT},
            "user": TEXT,
            "hub": HUB,
        },
    )
    names = ("ServedMessageItem", "ServedCallItem", "ServedOutputItem", "ServedReasoningItem")
    named = dict(zip(names, items, strict=True))
    return {"ServedResponse": body, "ServedItem": any_of(*map(refer_to, named)), **named, **kinds}


def describe_bodies() -> dict[str, Schema]:
    """By the names of components."""
    embedding = describe_body(
        openai_embeddings.PARAMETERS,
        "model input",
        {
            "model": WORDS,
            "input": any_of(TEXT, list_of(TEXT)),
            "encoding_format": one_of("float", "base64"),
            "user": {"type": "string", "maxLength": 128},
            "hub": describe_body(
                openai_embeddings.HUB,
                "",
                {"kind": TEXT, "pooling": TEXT, "normalize": FLAG, "strict_parameters": FLAG},
            ),
        },
    )
    document = any_of(TEXT, object_of("text", text=TEXT))
    ranking = describe_body(
        rerank.PARAMETERS,
        "model query documents",
        {
            "model": WORDS,
            "query": TEXT,
            "documents": list_of(document, least=1),
            "top_n": {"type": "integer", "minimum": 1},
            "return_documents": FLAG,
        },
    )
    return {
        "ServedEmbedding": embedding,
        "ServedRerank": ranking,
        **HELD_COMPONENTS,
        **_describe_chat(),
        **_describe_messages(),
        **_describe_responses(),
    }
