"""Model providers over REST: how a tenant connects, changes, pauses and removes them, and their models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import ApiKeyAuthentication
from access.authentication.sessions import PersonAuthentication
from kernel.database.connections import database_time
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    OptionalWebAddressField,
    PageSerializer,
    PatternField,
    StatedReasonSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from llm.model_features import Treatment
from registry.model_providers import connected_models, services
from registry.model_providers.circuits import read_state
from registry.model_providers.kind_checks import list_kind_warnings
from registry.model_providers.manifests import CALLER_TOOLS, MAX_FALLBACKS, MAX_TOKENS, OPERATIONS, UNPRICED
from registry.model_providers.rows import SEGMENT, WORD, find_provider
from registry.models import InstallationState, ModelCircuitState, ModelProvider, ModelProviderState, ToolState

if TYPE_CHECKING:
    from rest_framework.request import Request

    from registry.models import Installation, ModelCircuit, Tool

SCOPE, PERMISSION = "models:manage", "models.manage"
FEATURES = serializers.DictField(
    child=serializers.ChoiceField(list(Treatment)),
    required=False,
    help_text="Each part of a request that the model can take or not: passed, warned (left out and said) or refused.",
)
NAME = "up to 40 lower-case letters, digits and underscores, beginning with a letter"
A_WORD = "up to 40 lower-case letters, digits, hyphens and underscores, beginning with a letter"
EXAMPLE = OpenApiExample(
    "A provider that speaks OpenAI's API",
    value={
        "name": "openai",
        "kind": "openai",
        "address": "https://api.openai.com/v1",
        "secret": "openai.key",
        "settings": {"timeouts": {"first_event_s": 30}},
        "data_classes": ["personal"],
        "reason": "for the assistants",
    },
    request_only=True,
)


FALLBACKS = serializers.ListField(
    child=serializers.CharField(max_length=128),
    required=False,
    max_length=MAX_FALLBACKS,
    help_text="Ids of models of the tenant that are asked in its place, in this order, where its provider does not begin to answer.",
)


class CircuitSerializer(serializers.Serializer[Any]):
    """Whether the provider is asked for this model, after failures."""

    state = serializers.ChoiceField(
        ModelCircuitState.choices, help_text="`half_open`: the next call tries, and decides."
    )
    failures = serializers.IntegerField(help_text="In a row.")
    open_until = serializers.DateTimeField(allow_null=True)
    why = serializers.CharField(help_text="Reason of the last failure.")


class ConnectedModelSerializer(serializers.Serializer[Any]):
    """A model that is connected."""

    id = serializers.CharField(help_text="What it is granted, limited, stopped and called by.")
    alias = serializers.CharField()
    version = serializers.CharField(help_text="Of what the hub knows of it; another with each change.")
    model = serializers.CharField(help_text="The provider's own name.")
    operation = serializers.ChoiceField(OPERATIONS)
    window_tokens = serializers.IntegerField(allow_null=True)
    max_output_tokens = serializers.IntegerField(allow_null=True)
    default_output_tokens = serializers.IntegerField()
    features = serializers.DictField(child=serializers.ChoiceField(list(Treatment)))
    unpriced = serializers.ChoiceField(UNPRICED)
    fallbacks = FALLBACKS
    circuit = CircuitSerializer(allow_null=True, help_text="What is known of its failures; null: it answers.")
    caller_tools = serializers.ChoiceField(CALLER_TOOLS)
    state = serializers.ChoiceField(ModelProviderState.choices, help_text="Paused by itself, or with its provider.")


class ProviderSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.CharField()
    address = serializers.CharField(allow_null=True)
    secret = serializers.CharField(allow_null=True, help_text="Name of the secret that holds the key.")
    settings = serializers.JSONField()
    data_classes = serializers.ListField(child=serializers.CharField())
    state = serializers.ChoiceField(ModelProviderState.choices)
    models = ConnectedModelSerializer(many=True)
    reason = serializers.CharField()
    changed_by = serializers.CharField()
    changed_at = serializers.DateTimeField()


class ChangeProviderSerializer(StatedReasonSerializer):
    kind = PatternField(
        f"^{WORD.pattern}$", wanted=A_WORD, required=False, help_text="Which kind of provider, as `openai`."
    )
    address = OptionalWebAddressField(
        max_length=500, allow_blank=True, required=False, help_text="Empty: the usual one of its kind, or none."
    )
    secret = serializers.CharField(
        max_length=80, allow_blank=True, required=False, help_text="Name of a secret that is set. Empty: no key."
    )
    settings = serializers.DictField(
        required=False,
        help_text="`timeouts` in seconds, `retries`, `rates` (`requests` and `tokens` a minute), and `options` for its kind.",
    )
    data_classes = serializers.ListField(
        child=PatternField(f"^{WORD.pattern}$", wanted=A_WORD),
        required=False,
        help_text="Which classes of data it may be sent.",
    )


class ConnectProviderSerializer(ChangeProviderSerializer):
    name = PatternField(f"^{SEGMENT.pattern}$", wanted=NAME)
    kind = PatternField(f"^{WORD.pattern}$", wanted=A_WORD, help_text="Which kind of provider, as `openai`.")


class ChangeModelSerializer(StatedReasonSerializer):
    model = serializers.CharField(max_length=200, required=False, help_text="The provider's own name.")
    operation = serializers.ChoiceField(OPERATIONS, required=False)
    window_tokens = serializers.IntegerField(min_value=1, max_value=MAX_TOKENS, allow_null=True, required=False)
    max_output_tokens = serializers.IntegerField(min_value=1, max_value=MAX_TOKENS, allow_null=True, required=False)
    default_output_tokens = serializers.IntegerField(min_value=1, max_value=MAX_TOKENS, required=False)
    features = FEATURES
    unpriced = serializers.ChoiceField(UNPRICED, required=False)
    fallbacks = FALLBACKS
    caller_tools = serializers.ChoiceField(
        CALLER_TOOLS,
        required=False,
        help_text="Whether the model may be shown tools that callers describe themselves. The hub never runs them.",
    )


class ConnectModelSerializer(ChangeModelSerializer):
    alias = PatternField(f"^{SEGMENT.pattern}$", wanted=NAME)
    model = serializers.CharField(max_length=200, help_text="The provider's own name.")


ONE = build_envelope_serializer("ModelProviderEnvelope", ProviderSerializer())
MANY = build_page_serializer("ModelProviderPage", "model_providers", ProviderSerializer)
MODEL = build_envelope_serializer("ConnectedModelEnvelope", ConnectedModelSerializer())


def describe_circuit(row: ModelCircuit | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "state": str(read_state(row, database_time())),
        "failures": row.failures,
        "open_until": row.open_until.isoformat() if row.open_until else None,
        "why": row.why,
    }


def show_model(row: Installation, circuit: ModelCircuit | None) -> dict[str, Any]:
    assert row.version is not None
    manifest = row.version.view
    part = manifest.model
    assert part is not None
    works = row.state == InstallationState.ENABLED and row.tool.state == ToolState.ENABLED
    return {
        "id": row.name,
        "alias": manifest.name,
        "version": manifest.version,
        "model": part.name,
        "operation": part.operation,
        "window_tokens": part.window_tokens,
        "max_output_tokens": part.max_output_tokens,
        "default_output_tokens": part.default_output_tokens,
        "features": part.features,
        "unpriced": part.unpriced,
        "fallbacks": list(part.fallbacks),
        "circuit": describe_circuit(circuit),
        "caller_tools": part.caller_tools,
        "state": str(ToolState.ENABLED if works else ToolState.PAUSED),
    }


def show_models(row: ModelProvider) -> list[dict[str, Any]]:
    circuits = {each.model: each for each in row.circuits.all()}
    found = []
    for each in connected_models.find_models(row):
        assert each.version is not None
        part = each.version.view.model
        assert part is not None
        found.append(show_model(each, circuits.get(part.name)))
    return found


def show_provider(row: ModelProvider) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "name": row.name,
        "kind": row.kind,
        "address": row.address or None,
        "secret": row.secret or None,
        "settings": row.settings,
        "data_classes": row.data_classes,
        "state": row.state,
        "models": show_models(row),
        "reason": row.reason,
        "changed_by": row.changed_by,
        "changed_at": row.changed_at.isoformat(),
    }


def _answer(data: dict[str, Any], *, status: int = 200, warnings: tuple[str, ...] = ()) -> Response:
    return Response(ResponseEnvelope(data=data, warnings=warnings).to_json(), status=status)


def _answer_model(tool: Tool, *, status: int = 200) -> Response:
    provider = find_provider(tool.name.split(".")[1], tenant_id=tool.tenant_id)
    return _answer(next(each for each in show_models(provider) if each["id"] == tool.name), status=status)


class ProviderEndpoint(Endpoint):
    """For keys with the scope, and for people with the permission."""

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]
    required_scope = SCOPE
    required_permission = PERMISSION


class ProviderListView(ProviderEndpoint):
    """Whom this tenant has connected to answer models; connecting another one.

    The address is asked for its list of models, without the key. That it does not answer as providers of its kind do is a warning.
    """

    query = PageSerializer
    cursor = "mpr"

    @extend_schema(operation_id="list_model_providers", responses={200: MANY})
    def get(self, request: Request) -> Response:
        rows = ModelProvider.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        return _answer({"model_providers": [show_provider(row) for row in page.rows], "next": page.next or None})

    @extend_schema(
        operation_id="connect_model_provider",
        request=ConnectProviderSerializer,
        responses={201: ONE},
        examples=[EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        row = services.connect_provider(by=get_caller(request), **read_body(request, ConnectProviderSerializer))
        return _answer(show_provider(row), status=201, warnings=list_kind_warnings(row))


class ProviderView(ProviderEndpoint):
    """One provider, by its name; changing how it is reached, which counts with the next call."""

    @extend_schema(operation_id="read_model_provider", responses={200: ONE})
    def get(self, request: Request, name: str) -> Response:
        return _answer(show_provider(find_provider(name, tenant_id=get_caller(request).tenant_id)))

    @extend_schema(operation_id="change_model_provider", request=ChangeProviderSerializer, responses={200: ONE})
    def patch(self, request: Request, name: str) -> Response:
        said = read_body(request, ChangeProviderSerializer)
        row = services.change_provider(name=name, by=get_caller(request), **said)
        warnings = list_kind_warnings(row) if {"kind", "address"} & set(said) else ()
        return _answer(show_provider(row), warnings=warnings)


PROVIDER_ACTIONS = ActionTable(__name__, SCOPE, ONE, show_provider)
ProviderPauseView = PROVIDER_ACTIONS.build_view(
    "pause_model_provider", services.pause_provider, "Stop the calls of all its models at once."
)
ProviderEnableView = PROVIDER_ACTIONS.build_view(
    "enable_model_provider", services.enable_provider, "Let the calls of its models through again."
)


ProviderRemoveView = ActionTable[None](__name__, SCOPE, None, None).build_view(
    "remove_model_provider", services.remove_provider, "Forget a provider, and remove its models.", status=204
)


class ModelListView(Endpoint):
    """Connecting a model of a provider, under an alias."""

    required_scope = SCOPE

    @extend_schema(operation_id="connect_model", request=ConnectModelSerializer, responses={201: MODEL})
    def post(self, request: Request, name: str) -> Response:
        said = read_body(request, ConnectModelSerializer)
        return _answer_model(connected_models.connect_model(provider=name, by=get_caller(request), **said), status=201)


class ModelView(Endpoint):
    """Letting an alias mean another model, or the same one otherwise; counts with the next call."""

    required_scope = SCOPE

    @extend_schema(operation_id="change_model", request=ChangeModelSerializer, responses={200: MODEL})
    def patch(self, request: Request, name: str, alias: str) -> Response:
        said = read_body(request, ChangeModelSerializer)
        return _answer_model(connected_models.change_model(provider=name, alias=alias, by=get_caller(request), **said))


ModelRemoveView = ActionTable[None](__name__, SCOPE, None, None, renamed={"name": "provider"}).build_view(
    "remove_model",
    connected_models.remove_model,
    "Let an alias mean no model any more; it may be connected again.",
    status=204,
)
