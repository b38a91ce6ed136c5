"""Gemini embeddings: vectors in Google's words, of one text or of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StrictStr
from pydantic.dataclasses import dataclass

from kernel.problems import SchemaInvalid
from llm.documents import read_document
from llm.served.body_parts import BodyPart
from llm.served.gemini_parts import WIRE, TextContent
from llm.served.gemini_requests import check_model, name_fields
from llm.served.openai_chat import write_hub
from llm.served.openai_embeddings import HUB, OF_REQUEST
from llm.served.parameters import Findings, passed, read_parameters, refused

if TYPE_CHECKING:
    from llm.served.formats import Answered

# Whether a text is looked for or looked through. The hub tells models no other purpose of a vector.
KINDS = {"RETRIEVAL_QUERY": "query", "RETRIEVAL_DOCUMENT": "passage"}
UNSPECIFIED = "TASK_TYPE_UNSPECIFIED"
OTHER_TASK = "The hub tells models of RETRIEVAL_QUERY and RETRIEVAL_DOCUMENT. Leave out any other."
ONE_TASK = "All requests have one taskType."
EMBEDDED = (
    passed("model", "As in the address."),
    passed("content", "One text."),
    passed("taskType", "`RETRIEVAL_QUERY` or `RETRIEVAL_DOCUMENT`: `kind` of the hub's own. Others are refused."),
    refused("title", "Put it into the text."),
    refused("outputDimensionality", "Vectors are as long as the model makes them."),
)
OF_THE_HUB = passed("hub", f"Parameters of the hub itself: {', '.join(OF_REQUEST)}.")
PARAMETERS = (*EMBEDDED, OF_THE_HUB)
BATCH = (passed("requests", "Each as of `embedContent`, without `hub`."), OF_THE_HUB)


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class EmbedBody(BodyPart):
    content: TextContent
    model: StrictStr | None = None
    task_type: StrictStr = UNSPECIFIED


@dataclass(frozen=True, slots=True, config=WIRE, kw_only=True)
class BatchBody(BodyPart):
    requests: Annotated[tuple[EmbedBody, ...], Field(min_length=1)]


def read_content_embedding(body: Any, *, model: str) -> dict[str, Any]:
    """The arguments of the hub's own embedding. Raises SchemaInvalid, ParameterUnsupported."""
    findings = Findings()
    given, _ = read_parameters(name_fields(body, PARAMETERS), PARAMETERS, findings)
    hub, _ = read_parameters(given.pop("hub", {}), HUB, findings, "/hub")
    findings.check()
    read = read_document(EmbedBody, given)
    return _build_arguments([("", read)], model, hub, findings)


def read_batch_embedding(body: Any, *, model: str) -> dict[str, Any]:
    """The same of several texts."""
    findings = Findings()
    given, _ = read_parameters(name_fields(body, BATCH), BATCH, findings)
    hub, _ = read_parameters(given.pop("hub", {}), HUB, findings, "/hub")
    requests = given.get("requests")
    if isinstance(requests, list):
        given["requests"] = [
            read_parameters(name_fields(each, EMBEDDED, f"/requests/{at}"), EMBEDDED, findings, f"/requests/{at}")[0]
            for at, each in enumerate(requests)
        ]
    findings.check()
    read = read_document(BatchBody, given)
    return _build_arguments([(f"/requests/{at}", each) for at, each in enumerate(read.requests)], model, hub, findings)


def _build_arguments(
    asked: list[tuple[str, EmbedBody]], model: str, hub: dict[str, Any], findings: Findings
) -> dict[str, Any]:
    items = []
    for pointer, each in asked:
        check_model(each.model, model, f"{pointer}/model")
        texts = [part.text for part in each.content.parts]
        if len(texts) != 1:
            raise SchemaInvalid.at(f"{pointer}/content/parts", "A content is one text here.")
        items.append(texts[0])
        if each.task_type not in (UNSPECIFIED, *KINDS):
            findings.add_unsupported(f"{pointer}/taskType", OTHER_TASK)
        elif each.task_type != asked[0][1].task_type:
            findings.add_unsupported(f"{pointer}/taskType", ONE_TASK)
    kind = KINDS.get(asked[0][1].task_type)
    if kind is not None and hub.get("kind", kind) != kind:
        findings.add_wrong("/hub/kind", "It differs from taskType, which is the same.")
    findings.check()
    return {"items": items} | ({"kind": kind} if kind else {}) | hub


def write_content_embedding(answer: dict[str, Any], about: Answered) -> dict[str, Any]:
    (vector,) = answer["vectors"]
    return {"embedding": {"values": vector}} | _write_beside(answer, about)


def write_batch_embedding(answer: dict[str, Any], about: Answered) -> dict[str, Any]:
    return {"embeddings": [{"values": each} for each in answer["vectors"]]} | _write_beside(answer, about)


def _write_beside(answer: dict[str, Any], about: Answered) -> dict[str, Any]:
    used = answer["usage"]["input_tokens"]
    return {
        "usageMetadata": {"promptTokenCount": used, "totalTokenCount": used},
        "hub": write_hub(answer, about, about.warnings),
    }
