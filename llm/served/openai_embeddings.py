"""OpenAI embeddings: vectors in the format that most programs ask for."""

from __future__ import annotations

import base64
from array import array
from sys import byteorder
from typing import TYPE_CHECKING, Any

from llm.served.openai_chat import read_model, write_hub
from llm.served.parameters import Findings, passed, read_parameters, refused

if TYPE_CHECKING:
    from llm.served.formats import Answered

# What the hub takes of its own, in `hub`.
OF_REQUEST = ("kind", "pooling", "normalize", "strict_parameters")
HUB = tuple(passed(name, "As the hub's own embedding takes it.") for name in OF_REQUEST)
PARAMETERS = (
    passed("model", "A model of the hub that was connected for `embed`."),
    passed("input", "A text, or a list of texts; tokens are refused, since each model has its own."),
    passed("encoding_format", "`float` or `base64`."),
    passed("user", "The person for whom the agent asks: `user_id` of the hub's envelope. No provider is sent it."),
    passed("hub", f"Parameters of the hub itself: {', '.join(OF_REQUEST)}."),
    refused("dimensions", "Vectors are as long as the model makes them."),
)


def read_embedding(body: Any) -> tuple[str, dict[str, Any], dict[str, Any], bool]:
    """(Model, arguments of the hub's own embedding, fields of its envelope, whether vectors are wanted as base64)."""
    findings = Findings()
    given, _ = read_parameters(body, PARAMETERS, findings)
    model = read_model(given, findings)
    items = given.get("input")
    items = [items] if isinstance(items, str) else items
    if not isinstance(items, list) or not all(isinstance(each, str) for each in items):
        findings.add_wrong("/input", "This is a text, or a list of texts. Tokens are not taken: send the texts.")
    form = given.get("encoding_format", "float")
    if form not in ("float", "base64"):
        findings.add_wrong("/encoding_format", "This is float or base64.")
    user = given.get("user", "")
    if not isinstance(user, str):
        findings.add_wrong("/user", "This is a text.")
    hub, _ = read_parameters(given.get("hub", {}), HUB, findings, "/hub")
    findings.check()
    return model, {"items": items, **hub}, {"user_id": user} if user else {}, form == "base64"


def write_embedding(answer: dict[str, Any], about: Answered, *, as_base64: bool) -> dict[str, Any]:
    used = answer["usage"]["input_tokens"]
    vectors = [encode_vector(each) if as_base64 else each for each in answer["vectors"]]
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": place, "embedding": each} for place, each in enumerate(vectors)],
        "model": about.model,
        "usage": {"prompt_tokens": used, "total_tokens": used},
        "hub": write_hub(answer, about, about.warnings),
    }


def encode_vector(vector: list[float]) -> str:
    """32 bits a number, the least significant byte first."""
    numbers = array("f", vector)
    if byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(numbers.tobytes()).decode()
