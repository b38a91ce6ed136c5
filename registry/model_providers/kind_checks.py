"""Kind checks: whether the address of a provider speaks as its kind does.

It is asked for its list of models, without a key: nobody is charged, and a wrong address learns no key. What is found is a warning
and refuses nothing, since a provider may be away today, and some servers have no list.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.http.outbound import AddressRefused, OutboundFailed, send_request
from llm.provider_factory import list_foreign_kinds
from llm.providers.kinds import MODULES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from registry.models import ModelProvider

REFUSED = (401, 403)  # a list that is for keys only
NO_LIST = (404, 405, 501)
ANY_STATUS = range(100, 600)
Recognizer = Callable[[int, "dict[str, Any]"], bool]


def _find_error(document: Mapping[str, Any]) -> dict[str, Any]:
    error = document.get("error")
    return error if isinstance(error, dict) else {}


def is_anthropic(status: int, document: dict[str, Any]) -> bool:
    if status in REFUSED:
        return document.get("type") == "error" and "type" in _find_error(document)
    return (
        status == 200 and isinstance(document.get("data"), list) and "has_more" in document and "object" not in document
    )


def is_gemini(status: int, document: dict[str, Any]) -> bool:
    """It answers a request without a key with 403, and one with a wrong key with 400."""
    if status in (*REFUSED, 400):
        return isinstance(_find_error(document).get("status"), str)
    return status == 200 and isinstance(document.get("models"), list)


def is_openai(status: int, document: dict[str, Any]) -> bool:
    """Servers that speak as OpenAI does refuse in words of their own."""
    if status in REFUSED:
        return not is_anthropic(status, document) and not is_gemini(status, document)
    return status == 200 and isinstance(document.get("data"), list) and not is_anthropic(status, document)


@dataclass(frozen=True, slots=True)
class Probe:
    """``root``: what an address may end with that ``path`` has itself."""

    recognize: Recognizer
    path: str = "/models"
    root: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def build_url(self, address: str) -> str:
        return address.rstrip("/").removesuffix(self.root) + self.path


PROBES = {
    "openai": Probe(is_openai),
    "openai_compatible": Probe(is_openai),
    "openai_responses": Probe(is_openai),
    "anthropic": Probe(is_anthropic, "/v1/models", "/v1", {"anthropic-version": "2023-06-01"}),
    "gemini": Probe(is_gemini),
}


def list_kind_warnings(row: ModelProvider) -> tuple[str, ...]:
    """What is to be said of a provider that was connected or changed. Takes up to some seconds: not within a transaction."""
    said = check_kind(row.kind, row.address)
    return (said,) if said else ()


def check_kind(kind: str, address: str) -> str:
    """A sentence, or nothing where there is nothing to say: an address that is the usual one of its kind is right."""
    if kind not in MODULES and kind not in list_foreign_kinds():
        return f"This hub has no providers of the kind {kind}, so models of this one cannot be asked."
    if not address:
        return ""
    probe = PROBES.get(kind)
    if probe is None:
        return f"Whether {address} speaks as providers of the kind {kind} do was not checked."
    url = probe.build_url(address)
    try:
        response = send_request(url, headers={"Accept": "application/json", **probe.headers}, statuses=ANY_STATUS)
    except (AddressRefused, OutboundFailed) as error:
        return f"Whether {address} speaks as providers of the kind {kind} do could not be checked: {error}"
    document = _read_object(response.body)
    if document is not None and probe.recognize(response.status, document):
        return ""
    if response.status in NO_LIST:
        return (
            f"{url} is not there, where providers of the kind {kind} have their list of models. Unless this one has none, the address "
            "is wrong (many end with /v1), or the kind is."
        )
    return f"{address} does not answer as providers of the kind {kind} do. Look at the address (many end with /v1), and at the kind."


def _read_object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
