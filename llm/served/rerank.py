"""Rerank: texts in the order of how well they answer, in the shape that Cohere, Jina and the servers after them have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm.served.openai_chat import read_model, write_hub
from llm.served.parameters import Findings, passed, read_parameters, refused

if TYPE_CHECKING:
    from llm.served.formats import Answered

PARAMETERS = (
    passed("model", "A model of the hub that was connected for `rerank`."),
    passed("query", "What the documents are to answer."),
    passed("documents", "Texts, or objects with a `text`."),
    passed("top_n", "At most so many results, the best first."),
    passed("return_documents", "Whether results hold the texts."),
    refused("max_tokens_per_doc", "Documents are not cut; send the part that counts."),
    refused("max_chunks_per_doc", "Documents are not cut; send the part that counts."),
    refused("rank_fields", "Objects have one field, `text`."),
    refused("priority", "Requests are sent as they come.", 0),
)


def read_rerank(body: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """(Model, arguments of the hub's own reranking, how its results are wanted)."""
    findings = Findings()
    given, _ = read_parameters(body, PARAMETERS, findings)
    model = read_model(given, findings)
    documents = given.get("documents")
    texts = [_read_document(each) for each in documents] if isinstance(documents, list) else []
    if not texts or None in texts:
        findings.add_wrong("/documents", "This is a list of texts, or of objects with a `text`.")
    top = given.get("top_n", len(texts))
    if type(top) is not int or top < 1:
        findings.add_wrong("/top_n", "This is a number from 1 on.")
    returned = given.get("return_documents", False)
    if not isinstance(returned, bool):
        findings.add_wrong("/return_documents", "This is true or false.")
    findings.check()
    return model, {"query": given.get("query"), "candidates": texts}, {"top": top, "texts": texts if returned else None}


def _read_document(document: Any) -> str | None:
    text = document.get("text") if isinstance(document, dict) and len(document) == 1 else document
    return text if isinstance(text, str) else None


def write_rerank(
    answer: dict[str, Any], about: Answered, *, top: int, texts: list[str] | None = None
) -> dict[str, Any]:
    used = answer["usage"]["input_tokens"]
    results: list[dict[str, Any]] = [
        {"index": place, "relevance_score": answer["scores"][place]} for place in answer["ordering"][:top]
    ]
    if texts is not None:
        results = [each | {"document": {"text": texts[each["index"]]}} for each in results]
    return {
        "id": about.call_id,
        "object": "list",
        "model": about.model,
        "results": results,
        "usage": {"prompt_tokens": used, "total_tokens": used},
        "meta": {"billed_units": {"search_units": 1}},
        "hub": write_hub(answer, about, about.warnings),
    }
