"""Chat schemas: what a body of OpenAI's Chat Completions may be, as strictly as it is read."""

from __future__ import annotations

from llm.served import openai_chat, openai_messages
from llm.served.body_forms import (
    COUNT,
    FLAG,
    HELD_FORMS,
    HINT,
    HUB,
    NAME,
    NUMBER,
    OBJECT,
    PNG_URL,
    TEXT,
    WORDS,
    Schema,
    any_of,
    describe_body,
    list_of,
    object_of,
    one_of,
    refer_to,
)


def describe_chat() -> dict[str, Schema]:
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
            "prompt_cache_key": HINT,
            "hub": HUB,
        },
    )
    body["not"] = {"required": ["max_completion_tokens", "max_tokens"]}
    forms = {f"ServedChatMessage{number}": message for number, message in enumerate(messages, 1)}
    return {"ServedChat": body, "ServedChatMessage": any_of(*map(refer_to, forms))} | forms | named
