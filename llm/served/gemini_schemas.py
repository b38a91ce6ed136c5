"""Gemini schemas: what bodies of Google's generateContent may be, as strictly as they are read. Names are those of the wire."""

from __future__ import annotations

from llm.messages import MAX_TEXT
from llm.served import gemini_embeddings, gemini_requests, gemini_subset
from llm.served.body_forms import (
    COUNT,
    FLAG,
    HELD_FORMS,
    HUB,
    NAME,
    NUMBER,
    OBJECT,
    PNG,
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
from llm.served.openai_embeddings import HUB as OF_EMBEDDING

SAID: Schema = {**WORDS, "maxLength": MAX_TEXT}
# Of an embedding: each way to say the purpose of all texts.
TASKS = (gemini_embeddings.UNSPECIFIED, *gemini_embeddings.KINDS)


def describe_contents() -> dict[str, Schema]:
    return {**_describe_parts(), **_describe_tools(), **_describe_generation(), **_describe_vectors()}


def _describe_parts() -> dict[str, Schema]:
    beside = ignore_all("partMetadata mediaResolution")
    data = {
        "type": "object",
        "required": ["data", "mimeType"],
        "properties": {"data": PNG, "mimeType": one_of("image/png"), "displayName": {}},
        "additionalProperties": False,
    }
    picture = object_of("inlineData", inlineData=refer_to("ServedInlineData"))
    call = object_of("name", name=NAME, args=OBJECT, id=NAME)
    answer = object_of("name", name=NAME, response=OBJECT, id=NAME, parts=list_of(picture))
    said = refer_to("ServedContentText")
    asked = any_of(
        said, *(refer_to(f"ServedContent{kind}") for kind in ("Picture", "Answer")), *HELD_FORMS
    )  # fmt: skip
    return {
        "ServedInlineData": data,
        "ServedContentText": object_of("text", text=SAID, **beside),
        "ServedContentPicture": object_of("inlineData", inlineData=refer_to("ServedInlineData"), **beside),
        "ServedContentCall": object_of("functionCall", functionCall=call, **beside),
        "ServedContentAnswer": object_of("functionResponse", functionResponse=answer, **beside),
        "ServedUserContent": object_of("parts", role=one_of("user", "function"), parts=list_of(asked, least=1)),
        "ServedModelContent": object_of(
            "role parts", role=one_of("model"), parts=list_of(any_of(said, refer_to("ServedContentCall")), least=1)
        ),
        "ServedTextContent": object_of("parts", role={}, parts=list_of(object_of("text", text=SAID), least=1)),
    }


def _describe_tools() -> dict[str, Schema]:
    inner = refer_to("ServedSubset")
    count = {"type": "integer", "minimum": 0}
    subset = object_of(
        "",
        type=one_of(*sorted(gemini_subset.TYPES)),
        **dict.fromkeys(("title", "description"), TEXT),
        nullable=FLAG,
        properties={"type": "object", "additionalProperties": inner},
        items=inner,
        **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), count),
        propertyOrdering=list_of(TEXT),
    )
    declared = object_of(
        "name",
        name=NAME,
        description=TEXT,
        parameters=inner,
        parametersJsonSchema=OBJECT,
        **ignore_all("response responseJsonSchema"),
        behavior=one_of("BLOCKING", "UNSPECIFIED"),
    )
    declared["not"] = {"required": ["parameters", "parametersJsonSchema"]}
    calling = any_of(
        object_of("mode", mode=one_of("ANY", "VALIDATED"), allowedFunctionNames=list_of(NAME)),
        object_of("", mode=one_of("AUTO", "NONE", "MODE_UNSPECIFIED")),
    )
    return {
        "ServedSubset": subset,
        "ServedFunction": declared,
        "ServedFunctions": object_of("", functionDeclarations=list_of(refer_to("ServedFunction"))),
        "ServedToolConfig": object_of("", functionCallingConfig=calling),
    }


def _describe_generation() -> dict[str, Schema]:
    thinking = object_of(
        "",
        includeThoughts=FLAG,
        thinkingBudget={"type": "integer", "minimum": -1},
        thinkingLevel=one_of("MINIMAL", "LOW", "MEDIUM", "HIGH"),
    )
    thinking["not"] = {
        "required": ["thinkingBudget", "thinkingLevel"],
        "properties": {"thinkingBudget": {"maximum": 0}},
    }
    penalty = {**NUMBER, "minimum": -2, "maximum": 2}
    generation = describe_body(
        gemini_requests.GENERATION,
        "",
        {
            "temperature": {**NUMBER, "minimum": 0, "maximum": 2},
            "topP": {**NUMBER, "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
            "topK": {"type": "integer", "minimum": 1},
            "maxOutputTokens": COUNT,
            "stopSequences": list_of(WORDS),
            "seed": {"type": "integer"},
            "presencePenalty": penalty,
            "frequencyPenalty": penalty,
            "responseMimeType": one_of("text/plain", "application/json"),
            "responseSchema": refer_to("ServedSubset"),
            "responseJsonSchema": OBJECT,
            "thinkingConfig": thinking,
        },
    )
    as_text = {"responseMimeType": {"enum": ["text/plain"]}}
    generation["not"] = any_of(
        {"required": ["responseSchema", "responseJsonSchema"]},
        {"required": ["responseSchema", "responseMimeType"], "properties": as_text},
        {"required": ["responseJsonSchema", "responseMimeType"], "properties": as_text},
    )
    contents = list_of(any_of(refer_to("ServedUserContent"), refer_to("ServedModelContent")), least=1)
    setting = object_of(
        "category threshold", category=TEXT, threshold=one_of(*gemini_requests.USUAL_THRESHOLDS), method={}
    )
    # That a body repeats the model of its address no schema can say.
    table = [each for each in gemini_requests.PARAMETERS if each.name != "model"]
    body = describe_body(
        table,
        "contents",
        {
            "contents": contents,
            "systemInstruction": refer_to("ServedTextContent"),
            "tools": list_of(refer_to("ServedFunctions")),
            "toolConfig": refer_to("ServedToolConfig"),
            "generationConfig": refer_to("ServedGeneration"),
            "safetySettings": list_of(setting),
            "hub": HUB,
        },
    )
    whole = {"contents": contents, "generateContentRequest": refer_to("ServedContents"), "hub": HUB}
    count = describe_body(gemini_requests.COUNTED, "", whole)
    count["not"] = any_of(
        {"required": ["generateContentRequest", "contents"]},
        {"required": ["generateContentRequest", "hub"]},
        {"not": any_of({"required": ["contents"]}, {"required": ["generateContentRequest"]})},
    )
    return {"ServedContents": body, "ServedGeneration": generation, "ServedContentCount": count}


def _describe_vectors() -> dict[str, Schema]:
    hub = describe_body(OF_EMBEDDING, "", {"kind": TEXT, "pooling": TEXT, "normalize": FLAG, "strict_parameters": FLAG})
    text = object_of("parts", role={}, parts=list_of(object_of("text", text=SAID), least=1) | {"maxItems": 1})
    one = object_of(
        "content",
        content=text,
        taskType=one_of(*TASKS),
        hub=hub,
    )
    batches = []
    for place, task in enumerate(TASKS):
        needed = "content taskType" if place else "content"
        batches.append(list_of(object_of(needed, content=text, taskType=one_of(task)), least=1))
    return {
        "ServedContentVector": one,
        "ServedContentVectors": object_of("requests", requests=any_of(*batches), hub=hub),
    }
