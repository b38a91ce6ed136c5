"""Responses schemas: what a body of OpenAI's Responses may be, as strictly as it is read."""

from __future__ import annotations

from llm.messages import MAX_TEXT
from llm.served import responses_requests
from llm.served.body_forms import (
    COUNT,
    EFFORTS,
    FLAG,
    HELD_FORMS,
    HINT,
    HUB,
    NAME,
    NUMBER,
    OBJECT,
    PNG_URL,
    STATE,
    TEXT,
    Schema,
    any_of,
    describe_body,
    ignore_all,
    list_of,
    object_of,
    one_of,
    refer_to,
)


def describe_responses() -> dict[str, Schema]:
    words = {"type": "string", "maxLength": MAX_TEXT}
    parts = (
        object_of(
            "type text",
            type=one_of("input_text", "output_text", "text"),
            text=words,
            **ignore_all("annotations logprobs parsed"),
        ),
        object_of("type refusal", type=one_of("refusal"), refusal=words),
        object_of("type image_url", type=one_of("input_image"), image_url=PNG_URL, **ignore_all("filename detail")),
    )
    kinds = dict(zip(("ServedTextItemPart", "ServedRefusalItemPart", "ServedPictureItemPart"), parts, strict=True))
    content = any_of(words, list_of(any_of(*map(refer_to, kinds), *HELD_FORMS)))
    items = (
        object_of(
            "role content",
            type=one_of("message"),
            role=one_of("user", "assistant", "system", "developer"),
            content=content,
            **ignore_all("id status phase"),
        ),
        object_of(
            "type call_id name arguments",
            type=one_of("function_call"),
            call_id=NAME,
            name=NAME,
            arguments=TEXT,
            **ignore_all("parsed_arguments id status caller"),
        ),
        object_of(
            "type call_id output",
            type=one_of("function_call_output"),
            call_id=NAME,
            output=content,
            **ignore_all("id status caller name"),
        ),
        object_of(
            "type encrypted_content",
            type=one_of("reasoning"),
            encrypted_content=STATE,
            **ignore_all("id status summary content"),
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
            "reasoning": describe_body(responses_requests.OF_REASONING, "", {"effort": one_of(*EFFORTS)}),
            "text": object_of("", format=any_of(form, schema_form)),
            "stream": FLAG,
            "metadata": {"type": "object", "additionalProperties": TEXT},
            "user": TEXT,
            "prompt_cache_key": HINT,
            "hub": HUB,
        },
    )
    names = ("ServedMessageItem", "ServedCallItem", "ServedOutputItem", "ServedReasoningItem")
    named = dict(zip(names, items, strict=True))
    return {"ServedResponse": body, "ServedItem": any_of(*map(refer_to, named)), **named, **kinds}
