"""Messages schemas: what a body of Anthropic's Messages may be, as strictly as it is read."""

from __future__ import annotations

from llm.messages import MAX_TEXT
from llm.served import anthropic_requests
from llm.served.body_forms import (
    COUNT,
    EFFORTS,
    FLAG,
    HELD_FORMS,
    HUB,
    NAME,
    NUMBER,
    OBJECT,
    PNG,
    STATE,
    TEXT,
    WORDS,
    Schema,
    any_of,
    describe_body,
    ignore_all,
    list_of,
    object_of,
    one_of,
    refer_to,
)


def describe_messages() -> dict[str, Schema]:
    source = {
        "type": "object",
        "required": ["data"],
        "properties": {"type": one_of("base64"), "data": PNG, "media_type": one_of("image/png")},
        "additionalProperties": False,
    }
    picture = object_of("type source", type=one_of("image"), source=refer_to("ServedPictureSource"), cache_control={})
    text = object_of(
        "type text",
        type=one_of("text"),
        text={**WORDS, "maxLength": MAX_TEXT},
        **ignore_all("cache_control parsed_output"),
    )
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
        **ignore_all("cache_control caller"),
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
        effort=one_of(*EFFORTS),
    )
    tool = object_of(
        "name input_schema",
        name=NAME,
        input_schema=OBJECT,
        description=TEXT,
        type=one_of("custom"),
        strict=FLAG,
        **ignore_all("cache_control eager_input_streaming"),
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
                "properties": {"effort": {"enum": [each for each in EFFORTS if each != "none"]}},
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
