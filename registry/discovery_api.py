"""What is answered to an agent that asks for tools in the dialect of its model?

The tools that it may call now (:mod:`registry.offering`), as the driver of the dialect renders them. The tag of the answer is made
from what it says, so whatever changes that, changes the tag; it is worked out with each request.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers

from registry import discovery
from registry.offering import offer_tools
from registry.showing_to_models import DIALECTS, known_driver, names_in, nonce_key, spec_of
from toolhub.kernel.api import caller
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.problems import SchemaInvalid
from toolhub.kernel.serializers import enveloped
from toolhub.kernel.version import HUB_VERSION
from unitools.dialects import Diagnostic, ModelProfile, Options
from unitools.dialects.rendering import markdown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request

    from registry.offering import Offer
    from toolhub.kernel.principal import Principal
    from unitools.calls import ToolSpec
    from unitools.dialects import Rendered

MARKDOWN = "markdown"  # is written and not read
RENDERED = (*DIALECTS, MARKDOWN)
PARAMETERS = ("dialect", "model", "limit", *discovery.FILTERS)
LIMIT, MAX_LIMIT = 128, 1000  # many models take 128 tools at most
CLASH = "Another tool of this tenant would have the same name in {}."
NEW_EACH_TIME = "xml"  # each rendering has a nonce of its own; the one before is as good

RENDERED_TOOLS = enveloped(
    "RenderedToolsEnvelope",
    inline_serializer(
        "RenderedTools",
        {
            "dialect": serializers.ChoiceField(RENDERED),
            "tools": serializers.JSONField(
                help_text="For the request to the model as it is: a list, or text for its prompt."
            ),
            "names": serializers.DictField(child=serializers.CharField(), help_text="The tool behind each name in it."),
            "diagnostics": inline_serializer(
                "Diagnostic",
                {
                    "tool": serializers.CharField(help_text="Empty where it is about all of them."),
                    "pointer": serializers.CharField(help_text="Into the tool's input schema."),
                    "message": serializers.CharField(),
                    "severity": serializers.ChoiceField(["lossy", "skipped", "info"]),
                },
                many=True,
            ),
            "matching": serializers.IntegerField(help_text="How many there are without the limit."),
        },
    ),
)
DESCRIBED = [
    OpenApiParameter(
        "dialect",
        str,
        enum=RENDERED,
        description="The tools that this agent may call now, as the provider's API takes them; `markdown` is for people and prompts.",
    ),
    OpenApiParameter("model", str, description="A model by its name; says the dialect where that is left out."),
    OpenApiParameter(
        "limit", int, description=f"With a dialect: at most so many tools, the best matches of `q` first. Else {LIMIT}."
    ),
    OpenApiParameter(
        "If-None-Match", str, OpenApiParameter.HEADER, description="With a dialect: the ETag of an answer, for 304."
    ),
]


def is_asked_for(request: Request) -> bool:
    return any(name in request.query_params for name in ("dialect", "model", "limit"))


def rendered_tools(request: Request) -> HttpResponse:
    """The answer, or 304 to who has it already."""
    by, asked = caller(request), request.query_params
    for name in asked:
        if name not in PARAMETERS:
            raise SchemaInvalid(
                f"Beside a dialect there is no parameter {name[:40]}. There are {', '.join(PARAMETERS)}."
            )
    dialect, model = asked.get("dialect", ""), asked.get("model", "")
    if not dialect and not model:
        raise SchemaInvalid(f"Say for which dialect or model. The dialects are {', '.join(RENDERED)}.")
    if dialect != MARKDOWN:
        dialect = known_driver(dialect, model=model).dialect
    limit = _limit(asked.get("limit", ""))
    offer = offer_tools(by=by, **{name: asked.get(name, "") for name in discovery.FILTERS})
    specs = [spec_of(manifest) for manifest in offer.manifests[:limit]]
    rendered, diagnostics = _render(specs, dialect, offer, model=model, by=by)
    warnings = offer.warnings(shown=len(specs))
    data = {
        "dialect": dialect,
        "tools": rendered.payload,
        "names": dict(rendered.names),
        "diagnostics": diagnostics,
        "matching": len(offer.manifests),
    }
    response = JsonResponse(ResponseEnvelope(data=data, warnings=tuple(warnings)).to_json())
    payload: Any = rendered.payload
    if dialect == NEW_EACH_TIME:  # under another key nothing of the one before would be read any more
        payload = [specs, hashlib.sha256(nonce_key(by.tenant_id)).hexdigest()]
    etag = _tag(data | {"tools": payload, "warnings": warnings})
    response.headers["ETag"], response.headers["Cache-Control"] = etag, "private, no-cache"
    patch_vary_headers(response, ["Authorization"])
    answer = get_conditional_response(request._request, etag=etag, response=response)
    assert isinstance(answer, HttpResponse)
    return answer


def _limit(text: str) -> int:
    if not text:
        return LIMIT
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MAX_LIMIT):
        raise SchemaInvalid.at("/limit", f"The limit is a number from 1 to {MAX_LIMIT}.")
    return int(text)


def _render(
    specs: Sequence[ToolSpec], dialect: str, offer: Offer, *, model: str, by: Principal
) -> tuple[Rendered, list[dict[str, Any]]]:
    """With what is left out or said otherwise, tool by tool: one that a dialect cannot say does not take the others with it."""
    profile = ModelProfile.from_name(model) if model else None
    options = Options(on_unrenderable="skip", key=nonce_key(by.tenant_id), profile=profile)
    if dialect == MARKDOWN:
        rendered = markdown.render(specs, options)
        return rendered, [asdict(each) for each in rendered.diagnostics]
    named = set(names_in(dialect, offer.installed).values())
    rendered = known_driver(dialect).render([spec for spec in specs if spec.name in named], options)
    clashes = [Diagnostic(spec.name, "", CLASH.format(dialect), "skipped") for spec in specs if spec.name not in named]
    return rendered, [asdict(each) for each in (*clashes, *rendered.diagnostics)]


def _tag(said: dict[str, Any]) -> str:
    """Weak where a nonce is left out; whoever compares does not care."""
    text = json.dumps([HUB_VERSION, said], default=asdict)
    return f'W/"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
