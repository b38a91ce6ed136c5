"""Served formats: what becomes of each parameter that programs send to /v1 and /v1beta."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from llm.served import (
    anthropic_requests,
    gemini_embeddings,
    gemini_requests,
    openai_chat,
    openai_embeddings,
    openai_messages,
    rerank,
    responses_requests,
)
from llm.served.problem_objects import CODES
from toolhub.management.reference.markdown import format_code, format_page, format_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from llm.served.parameters import Parameter

ENDPOINTS = {
    "POST /v1/chat/completions": openai_chat.PARAMETERS,
    "POST /v1/messages": anthropic_requests.PARAMETERS,
    "POST /v1/messages/count_tokens": anthropic_requests.COUNTED,
    "POST /v1/responses": responses_requests.PARAMETERS,
    "POST /v1/embeddings": openai_embeddings.PARAMETERS,
    "POST /v1/rerank": rerank.PARAMETERS,
    "POST /v1beta/models/{model}:generateContent": gemini_requests.PARAMETERS,
    "POST /v1beta/models/{model}:countTokens": gemini_requests.COUNTED,
    "POST /v1beta/models/{model}:batchEmbedContents": gemini_embeddings.BATCH,
    "POST /v1beta/models/{model}:embedContent": gemini_embeddings.PARAMETERS,
}


def _table(parameters: Iterable[Parameter]) -> str:
    rows = [
        (
            format_code(each.name),
            each.treatment,
            ", ".join(format_code(json.dumps(value)) for value in each.usual),
            each.meaning,
        )
        for each in parameters
    ]
    return format_table(("parameter", "it is", "but", "meaning"), rows)


def served_formats_page() -> str:
    parts = [part for endpoint, table in ENDPOINTS.items() for part in (f"## {endpoint}", _table(table))]
    messages = [
        part
        for role, table in openai_messages.FIELDS.items()
        for part in (f"### A message of the role {role}", _table(table))
    ]
    return format_page(
        "Served formats",
        "the tables of llm/served",
        "What becomes of each parameter of a request in a format of others ([OpenAI's](../how-to/use-an-openai-sdk.md), "
        "[Anthropic's, and Responses](../how-to/use-anthropics-sdk.md), [Google's](../how-to/use-googles-sdk.md)). "
        "`passed`: the hub does what it says. `warned`: it changes nothing in the answer; it is left out, and `hub.warnings` says so. "
        "`refused`: the request is refused, with `param` for its place. Null, and the values in the column *but*, ask for nothing "
        "beyond what is done anyhow. A parameter that no table names is refused.",
        *parts,
        "## Messages and tools of Chat Completions",
        *messages,
        "### A tool",
        _table(openai_messages.OF_A_TOOL),
        "## generationConfig of generateContent",
        "`streamGenerateContent` takes the same as `generateContent`, and all of them are there below `/v1` too. "
        "Names may be written with underscores.",
        _table(gemini_requests.GENERATION),
        "## Errors",
        'The body is `{"error": {"message", "type", "code", "param"}}`. `X-Hub-Reason` has the hub\'s [own word](problems.md), and '
        "`X-Should-Retry` tells SDKs whether to send the request again. What the hub answers with 422 is 400 here. `code` is the word "
        "that others have for it; where they have none it is the reason. "
        "Beside the error stands `hub`: the reason, and what the problem names, its `details`. "
        'Below `/v1/messages` it is `{"type": "error", "error": {"type", "message"}}`, and a provider that is away is 529 there. '
        'At Google\'s addresses it is `{"error": {"code", "message", "status", "details"}}`: `code` is the status of the answer, and '
        "`details` hold the reason, `fieldViolations` with the places, and `retryDelay`.",
        format_table(("reason", "code"), [(format_code(reason), format_code(code)) for reason, code in CODES.items()]),
        "## What judges of others say",
        "`llm-comply` 0.5.0, `--format openai-chat`, against a hub that serves: 8 of 9 tests pass, without a warning. "
        "`chat-reasoning-summary` is skipped by the program itself, which asks it only of models that it knows by name. "
        "Of `--format anthropic` 8 of 9 pass, of `--format open-responses` 12 of 13, one of them (`compact-response`, for the hub has "
        "no `/responses/compact`) with a warning; the test of reasoning is skipped in both, for the same reason. "
        "Of `--format google-genai` 9 of 9 pass, one of them (`google-thinking`) with a warning: there are no texts of thoughts.",
    )
