"""Manifests of models: what the hub writes of a model that a tenant has connected.

A change of any of it is a new version, so calls, grants and facts can say which one they mean.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypedDict

from kernel.http.outbound import read_url
from kernel.problems import SchemaInvalid
from llm.model_features import ModelFeatures, Treatment
from registry.model_providers.settings import ProviderSettings

if TYPE_CHECKING:
    from registry.models import ModelProvider
    from unitools.manifest import Manifest

GROUP = "model"
OPERATIONS = ("chat", "embed", "rerank")
UNPRICED = ("refuse", "count")
MAX_FALLBACKS = 5
CALLER_TOOLS = ("refuse", "allow")
KEY = "API_KEY"  # what the manifest calls the provider's key
MAX_MODEL_NAME = 200
MAX_TOKENS = 100_000_000
DEFAULT_OUTPUT_TOKENS = 1024
LIMITS = {"max_bytes_in": 1048576, "max_bytes_out": 1048576, "depth": 64}
_NUMBERS = ("window_tokens", "max_output_tokens", "default_output_tokens")


class ModelTerms(TypedDict, total=False):
    """What a person says of a model; of a change what is left out stays as it is."""

    model: str  # the provider's own name
    operation: str
    window_tokens: int | None
    max_output_tokens: int | None
    default_output_tokens: int
    features: dict[str, str]
    unpriced: str
    fallbacks: list[str]  # ids of models of the tenant
    caller_tools: str


USUAL = ModelTerms(
    operation="chat",
    window_tokens=None,
    max_output_tokens=None,
    default_output_tokens=DEFAULT_OUTPUT_TOKENS,
    features={},
    unpriced="refuse",
    fallbacks=[],
    caller_tools="refuse",
)


def read_terms(manifest: Manifest) -> ModelTerms:
    """What somebody said of a model when this manifest was written."""
    part = manifest.document["model"]
    return ModelTerms(
        model=part["name"],
        operation=part["operation"],
        window_tokens=part["window_tokens"],
        max_output_tokens=part["max_output_tokens"],
        default_output_tokens=part["default_output_tokens"],
        features=part["features"],
        unpriced=part["unpriced"],
        fallbacks=part.get("fallbacks", []),
        caller_tools=part.get("caller_tools", USUAL["caller_tools"]),  # older versions do not say
    )


def check_terms(terms: ModelTerms) -> None:
    """Raise :class:`SchemaInvalid` for what no model can have."""
    name = terms["model"]
    if not 0 < len(name) <= MAX_MODEL_NAME or any(ord(letter) <= 32 or ord(letter) == 127 for letter in name):
        raise SchemaInvalid.at("/model", f"It is the provider's name of the model: 1 to {MAX_MODEL_NAME} characters.")
    if terms["operation"] not in OPERATIONS:
        raise SchemaInvalid.at("/operation", f"It is one of {', '.join(OPERATIONS)}.")
    if terms["unpriced"] not in UNPRICED:
        raise SchemaInvalid.at("/unpriced", f"It is one of {', '.join(UNPRICED)}.")
    if terms["caller_tools"] not in CALLER_TOOLS:
        raise SchemaInvalid.at("/caller_tools", f"It is one of {', '.join(CALLER_TOOLS)}.")
    for field in _NUMBERS:
        value: Any = terms[field]  # type: ignore[literal-required]
        if value is None and field != "default_output_tokens":
            continue
        if type(value) is not int or not 1 <= value <= MAX_TOKENS:
            raise SchemaInvalid.at(f"/{field}", f"It is a number of tokens from 1 to {MAX_TOKENS:,}.")
    limit = terms["max_output_tokens"]
    # What is usual is no contradiction: an answer is held to the smaller of the two.
    if limit is not None and DEFAULT_OUTPUT_TOKENS != terms["default_output_tokens"] > limit:
        raise SchemaInvalid.at("/default_output_tokens", f"The model writes at most {limit:,} tokens.")
    read_features(terms["features"])


def read_features(table: dict[str, str]) -> ModelFeatures:
    """The table in the words of the model layer."""
    for name, treatment in table.items():
        if treatment not in list(Treatment):
            raise SchemaInvalid.at(f"/features/{name}", f"It is one of {', '.join(Treatment)}.")
    try:
        return ModelFeatures({name: Treatment(treatment) for name, treatment in table.items()})
    except ValueError as error:
        raise SchemaInvalid.at("/features", str(error)) from None


def build_manifest(provider: ModelProvider, alias: str, terms: ModelTerms, *, version: str) -> dict[str, Any]:
    """The manifest of one model, as calls of it are decided by."""
    total_s = ProviderSettings.from_json(provider.settings).timeouts.total_s
    return {
        "id": f"{GROUP}.{provider.name}.{alias}",
        "version": version,
        "display_name": f"{alias} ({provider.name})"[:80],
        "description": f"The model {terms['model']} of the provider {provider.name}.",
        "tags": [terms["operation"]],
        "input_schema": {"type": "object"},  # a request is read by llm.documents
        "output_schema": {"type": "object"},
        "side_effect": "Read",
        "data_classes": provider.data_classes,
        "determinism": {"output": "none"},
        "limits": LIMITS,
        "timeout_ms": round(total_s * 1000),
        **_reach(provider),
        "model": {
            "provider": provider.name,
            "name": terms["model"],
            "operation": terms["operation"],
            "window_tokens": terms["window_tokens"],
            "max_output_tokens": terms["max_output_tokens"],
            "default_output_tokens": terms["default_output_tokens"],
            "features": terms["features"],
            "unpriced": terms["unpriced"],
            "fallbacks": terms["fallbacks"],
            "caller_tools": terms["caller_tools"],
        },
    }


def _reach(provider: ModelProvider) -> dict[str, Any]:
    """The host that a call goes to, and the key that goes with it, as grants and policies ask for them."""
    needs_key = {"name": KEY, "description": f"The key of the provider {provider.name}."}
    if not provider.address:
        return {"secrets": [needs_key]} if provider.secret else {}
    target = read_url(provider.address)
    try:
        address = ip_address(target.host.strip("[]"))
    except ValueError:
        net = {"host": target.host.lower(), "port": target.port, "scheme": target.scheme}
        secrets = [{**needs_key, "hosts": [target.host.lower()]}]
        return {"capabilities": {"net": [net]}, "secrets": secrets if provider.secret else []}
    cidr = {"cidr": f"{address}/{address.max_prefixlen}", "ports": [str(target.port)]}
    return {"capabilities": {"cidr": [cidr]}, "secrets": [needs_key] if provider.secret else []}
