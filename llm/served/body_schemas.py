"""Body schemas: what the bodies in served formats may be, as components of the OpenAPI document."""

from __future__ import annotations

from llm.served import openai_embeddings, rerank
from llm.served.body_forms import (
    FLAG,
    HELD_COMPONENTS,
    TEXT,
    WORDS,
    Schema,
    any_of,
    describe_body,
    list_of,
    object_of,
    one_of,
)
from llm.served.chat_schemas import describe_chat
from llm.served.gemini_schemas import describe_contents
from llm.served.messages_schemas import describe_messages
from llm.served.responses_schemas import describe_responses


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
        **describe_chat(),
        **describe_messages(),
        **describe_responses(),
        **describe_contents(),
    }
