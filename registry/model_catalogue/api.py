"""Model catalogue over REST: the models that an agent may call now.

By the rules that hold in lists of tools (:mod:`invocations.decide.callable_tools`), for the other kind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from invocations.decide.callable_tools import offer_tools
from invocations.model_calls.model_prices import find_prices
from kernel.database.connections import database_time
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import PageSerializer, PatternField, build_envelope_serializer, build_page_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.pagination import PAGE_SIZE
from llm.model_features import Treatment
from llm.prices import PACKAGE, SET
from registry.model_providers.circuits import read_state
from registry.model_providers.manifests import CALLER_TOOLS, OPERATIONS, UNPRICED
from registry.model_providers.rows import SEGMENT
from registry.models import ModelCircuit, ModelCircuitState, ToolKind
from registry.problems import UnknownModel

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from rest_framework.request import Request

    from invocations.model_calls.model_prices import CallPrices
    from unitools.manifest import Manifest

SCOPE = "models:call"
CURSOR = re.compile(rf"model\.{SEGMENT.pattern}\.{SEGMENT.pattern}")  # the id of a model that may have gone meanwhile


class OfferedPriceSerializer(serializers.Serializer[Any]):
    """The price in force: tokens by the million, all else by the piece."""

    origin = serializers.ChoiceField((SET, PACKAGE), help_text="Whether the tenant has set it, or the package has it.")
    input = serializers.CharField(required=False, help_text="In US dollars, as all of them.")
    cached = serializers.CharField(required=False, help_text="Of input that the provider had read before.")
    output = serializers.CharField(required=False)
    image = serializers.CharField(required=False)
    audio_second = serializers.CharField(required=False)
    request = serializers.CharField(required=False)
    version = serializers.CharField(help_text="Of all prices and rates; what a call says that it was priced by.")
    currency = serializers.CharField(help_text="Of budgets, and of what a call says that it cost.")
    rate = serializers.CharField(help_text="What a US dollar costs in it.")


class OfferedModelSerializer(serializers.Serializer[Any]):
    """A model that this agent may call."""

    id = serializers.CharField(help_text="What it is called by.")
    alias = serializers.CharField(help_text="Its short name, which stands for it where no other provider has the same.")
    provider = serializers.CharField()
    model = serializers.CharField(help_text="The provider's own name.")
    version = serializers.CharField(help_text="Another with each change of what is said here.")
    operation = serializers.ChoiceField(OPERATIONS)
    window_tokens = serializers.IntegerField(
        allow_null=True, help_text="Question and answer together; null: not known."
    )
    max_output_tokens = serializers.IntegerField(allow_null=True)
    default_output_tokens = serializers.IntegerField(help_text="The longest answer where a request names no limit.")
    features = serializers.DictField(child=serializers.ChoiceField(list(Treatment)))
    unpriced = serializers.ChoiceField(UNPRICED, help_text="What becomes of a call without a known price.")
    fallbacks = serializers.ListField(
        child=serializers.CharField(), help_text="Ids of models that may answer in its place. Each needs a grant."
    )
    circuit = serializers.ChoiceField(
        ModelCircuitState.choices, help_text="`open`: its provider fails, and is not asked for now."
    )
    caller_tools = serializers.ChoiceField(CALLER_TOOLS, help_text="Whether it may be shown tools of the caller's own.")
    data_classes = serializers.ListField(child=serializers.CharField(), help_text="Data that its provider may be sent.")
    price = OfferedPriceSerializer(allow_null=True, help_text="Null: no price is known.")


class ModelQuerySerializer(PageSerializer):
    after = PatternField(
        f"^{CURSOR.pattern}$",
        wanted="the id of a model",
        required=False,
        help_text="The cursor `next` of the page before.",
    )
    operation = serializers.ChoiceField(OPERATIONS, required=False)


MODEL = build_envelope_serializer("OfferedModelEnvelope", OfferedModelSerializer())
MODELS = build_page_serializer("OfferedModels", "models", OfferedModelSerializer)


def find_circuit_states(tenant_id: UUID) -> dict[tuple[str, str], str]:
    """Of the models of a tenant's providers that have failed lately, by the names of both."""
    now, rows = database_time(), ModelCircuit.objects.filter(tenant_id=tenant_id).select_related("provider")
    return {(row.provider.name, row.model): str(read_state(row, now)) for row in rows}


def show_offered_models(manifests: Iterable[Manifest], *, tenant_id: UUID) -> list[dict[str, Any]]:
    """With the prices in force and the circuits, which are looked up once for all of them."""
    shown = [(each, each.model) for each in manifests if each.model is not None]
    prices = find_prices([part for _, part in shown], tenant_id=tenant_id)
    circuits = find_circuit_states(tenant_id)
    return [
        show_offered_model(manifest, prices.get(f"{part.provider}:{part.name}"))
        | {"circuit": circuits.get((part.provider, part.name), str(ModelCircuitState.CLOSED))}
        for manifest, part in shown
    ]


def show_offered_model(manifest: Manifest, prices: CallPrices | None = None) -> dict[str, Any]:
    part = manifest.model
    assert part is not None
    return {
        "id": manifest.id,
        "alias": manifest.name,
        "provider": part.provider,
        "model": part.name,
        "version": manifest.version,
        "operation": part.operation,
        "window_tokens": part.window_tokens,
        "max_output_tokens": part.max_output_tokens,
        "default_output_tokens": part.default_output_tokens,
        "features": part.features,
        "unpriced": part.unpriced,
        "fallbacks": list(part.fallbacks),
        "caller_tools": part.caller_tools,
        "data_classes": manifest.data_classes,
        "price": prices.to_json() if prices is not None else None,
    }


def find_named_model(manifests: Iterable[Manifest], name: str) -> Manifest:
    """By its id, or by an alias that only one of them has. Raises :class:`UnknownModel`."""
    found = [each for each in manifests if name in (each.id, each.name)]
    exact = [each for each in found if each.id == name] or found
    if len(exact) != 1:
        several = f" Several have the alias: {', '.join(each.id for each in exact)}." if exact else ""
        raise UnknownModel(f"This agent may call no model {name[:128]}.{several}")
    return exact[0]


class OfferedModelListView(Endpoint):
    """The models that this agent may call now, by their ids. The cursor is the id of the last one."""

    required_scope = SCOPE
    query = ModelQuerySerializer

    @extend_schema(operation_id="list_models", responses={200: MODELS})
    def get(self, request: Request) -> HttpResponse:
        by = get_caller(request)
        found = show_offered_models(offer_tools(by=by, kind=ToolKind.MODEL).manifests, tenant_id=by.tenant_id)
        operation, after = self.asked.get("operation"), self.asked.get("after", "")
        limit: int = self.asked.get("limit", PAGE_SIZE)
        shown = sorted(
            (each for each in found if operation in (None, each["operation"])), key=lambda each: str(each["id"])
        )
        rest = [each for each in shown if str(each["id"]) > after]
        following = rest[limit - 1]["id"] if len(rest) > limit else None
        warnings = () if shown else ("No model may be called. Ask an operator to connect one, or for a grant.",)
        return JsonResponse(
            ResponseEnvelope(data={"models": rest[:limit], "next": following}, warnings=warnings).to_json()
        )


class OfferedModelView(Endpoint):
    """One of them, by its id or its alias."""

    required_scope = SCOPE

    @extend_schema(operation_id="read_model", responses={200: MODEL})
    def get(self, request: Request, model_id: str) -> HttpResponse:
        by = get_caller(request)
        offer = offer_tools(by=by, kind=ToolKind.MODEL)
        if problem := offer.kept_back.get(model_id):
            raise UnknownModel(f"This agent may not call it now. {problem.detail}", remedy=problem.remedy)
        [shown] = show_offered_models([find_named_model(offer.manifests, model_id)], tenant_id=by.tenant_id)
        return JsonResponse(ResponseEnvelope(data=shown).to_json())
