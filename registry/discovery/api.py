"""Discovery over REST: what is answered to an agent that asks for tools in the dialect of its model.

The tools that it may call now (:mod:`invocations.decide.callable_tools`), as the driver of the dialect renders them. The tag
of the answer is made
from what it says, so whatever changes that, changes the tag; it is worked out with each request.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers

from invocations.decide.callable_tools import offer_tools
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import PageSerializer, PatternField, build_envelope_serializer
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.pagination import PAGE_SIZE
from kernel.ids import id_pattern
from kernel.problems import StateUnfit
from kernel.version import HUB_VERSION
from registry.discovery import selectors as discovery_selectors
from registry.discovery.tool_specs import DIALECTS, build_spec, known_driver, names_in, nonce_key
from registry.models import ToolState
from unitools.dialects import Diagnostic, ModelProfile, RenderOptions
from unitools.dialects.renderers import markdown
from unitools.expressions import DOMAINS, EFFECTS, SAFETY_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rest_framework.request import Request

    from invocations.decide.callable_tools import Offer
    from kernel.principal import Principal
    from unitools.calls import ToolSpec
    from unitools.dialects import Rendered

MARKDOWN = "markdown"  # is written and not read
RENDERED = (*DIALECTS, MARKDOWN)
VIEWS = ("full", "llm")
NO_VIEW = "With a dialect or a model tools are written as models see them; `view` changes nothing."
LIMIT, MAX_LIMIT = 128, 1000  # many models take 128 tools at most
CLASH = "Another tool of this tenant would have the same name in {}."
NEW_EACH_TIME = "xml"  # each rendering has a nonce of its own; the one before is as good

RENDERED_TOOLS = build_envelope_serializer(
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


class ToolQuerySerializer(PageSerializer):
    after = PatternField(
        f"{id_pattern('ins')}|{id_pattern('tol')}",
        wanted="a cursor of this list",
        required=False,
        help_text="The cursor `next` of the page before.",
    )
    q = serializers.CharField(required=False, help_text="Words in id, name, description or tags.")
    group = serializers.CharField(required=False, help_text="What the ids begin with, up to a point: `sample.tools`.")
    tag = serializers.CharField(required=False)
    safety_class = serializers.ChoiceField(SAFETY_CLASSES, required=False)
    side_effect = serializers.ChoiceField(EFFECTS, required=False)
    capability = serializers.ChoiceField(DOMAINS, required=False)
    state = serializers.ChoiceField(
        ToolState.values, required=False, help_text="Without: `enabled`, those that can be called."
    )
    dialect = serializers.ChoiceField(
        RENDERED,
        required=False,
        help_text="The tools that this agent may call now, as the provider's API takes them; `markdown` is for people and prompts.",
    )
    model = serializers.CharField(
        required=False, help_text="The tools that this model may call; says the dialect where that is left out."
    )
    view = serializers.ChoiceField(
        VIEWS,
        required=False,
        help_text="`llm`: only name, description and input_schema, of the tools that this agent has a grant for.",
    )
    limit = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MAX_LIMIT,
        help_text=f"At most so many tools: of a page, else {PAGE_SIZE}; with a dialect the best matches of `q` first, else {LIMIT}.",
    )


def is_asked_for(asked: Mapping[str, Any]) -> bool:
    return "dialect" in asked or "model" in asked


def rendered_tools(request: Request, asked: Mapping[str, Any]) -> HttpResponse:
    """The answer, with a tag of its own."""
    by = get_caller(request)
    if "after" in asked:
        raise StateUnfit.at(
            "/after", "With a dialect or a model there is no page behind this one: the answer is whole."
        )
    dialect, model = asked.get("dialect", ""), asked.get("model", "")
    if dialect != MARKDOWN:
        dialect = known_driver(dialect, model=model).dialect
    limit = asked.get("limit", LIMIT)
    offer = offer_tools(by=by, model=model, **{name: asked.get(name, "") for name in discovery_selectors.FILTERS})
    specs = [build_spec(manifest) for manifest in offer.manifests[:limit]]
    rendered, diagnostics = _render(specs, dialect, offer, model=model, by=by)
    warnings = [*offer.warnings(shown=len(specs)), *([NO_VIEW] if asked.get("view") == VIEWS[0] else [])]
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
    return response


def _render(
    specs: Sequence[ToolSpec], dialect: str, offer: Offer, *, model: str, by: Principal
) -> tuple[Rendered, list[dict[str, Any]]]:
    """With what is left out or said otherwise, tool by tool: one that a dialect cannot say does not take the others with it."""
    profile = ModelProfile.from_name(model) if model else None
    options = RenderOptions(on_unrenderable="skip", key=nonce_key(by.tenant_id), profile=profile)
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
