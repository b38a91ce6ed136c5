"""Model lists over HTTP: the models that an agent may call now, in the words of each format.

OpenAI's and Google's SDKs look at the same address. Whose it is, the header says in which the key is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from invocations.decide.callable_tools import offer_tools
from invocations.model_calls.asked_models import SCOPE
from invocations.model_calls.served.gemini.verbs import COUNT, EMBED, EMBED_BATCH, GENERATE, STREAM
from invocations.model_calls.served.key_authentication import GOOGLES, ServedKeyAuthentication
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import PatternField, QuerySerializer
from kernel.http.endpoints import Endpoint
from registry.model_catalogue.api import CURSOR, find_named_model, show_offered_model
from registry.models import Installation, ToolKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rest_framework.request import Request

    from kernel.principal import Principal
    from unitools.manifest import Manifest

PREFIX = "models/"  # before an id, in Google's lists
PAGE, LARGEST_PAGE = 50, 1000  # as Google has them
# What Google's clients may do with a model, by what it was connected for.
METHODS = {"chat": (GENERATE, STREAM, COUNT), "embed": (EMBED, EMBED_BATCH)}


class GooglePageSerializer(QuerySerializer):
    """Which part of a list, in Google's words."""

    def get_fields(self) -> dict[str, Any]:
        size = serializers.IntegerField(required=False, default=PAGE, min_value=1, max_value=LARGEST_PAGE)
        token = PatternField(
            f"^{CURSOR.pattern}$",
            wanted="the id of a model",
            required=False,
            help_text="The `nextPageToken` of the page before.",
        )
        return {**super().get_fields(), "pageSize": size, "pageToken": token}


class ModelsView(Endpoint):
    authentication_classes = [ServedKeyAuthentication]
    required_scope = SCOPE


def list_offered(by: Principal) -> list[Manifest]:
    return sorted(offer_tools(by=by, kind=ToolKind.MODEL).manifests, key=lambda each: each.id)


def list_googles(asked: Mapping[str, Any], *, by: Principal) -> JsonResponse:
    """A page of the list, as Google has it."""
    rest = [each for each in list_offered(by) if each.id > asked.get("pageToken", "")]
    shown = rest[: asked["pageSize"]]
    following = {"nextPageToken": shown[-1].id} if len(rest) > len(shown) else {}
    return JsonResponse({"models": [describe_to_google(each) for each in shown], **following})


class ServedModelListView(ModelsView):
    """The models that this agent may call now, as OpenAI's list has them, or as Google's where the key comes in Google's header."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if GOOGLES in request.headers:
            self.query = GooglePageSerializer  # type: ignore[misc]
        super().initial(request, *args, **kwargs)

    @extend_schema(operation_id="list_served_models", responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request) -> JsonResponse:
        by = get_caller(request)
        if GOOGLES in request.headers:
            return vary(list_googles(self.asked, by=by))
        return vary(JsonResponse({"object": "list", "data": describe_to_openai(list_offered(by), by=by)}))


class ServedOneModelView(ModelsView):
    """One of them, by its id or its alias."""

    @extend_schema(operation_id="read_served_model", responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, model_id: str) -> JsonResponse:
        by = get_caller(request)
        found = find_named_model(list_offered(by), model_id)
        if GOOGLES in request.headers:
            return vary(JsonResponse(describe_to_google(found)))
        return vary(JsonResponse(describe_to_openai([found], by=by)[0]))


class GoogleModelListView(ModelsView):
    """The models that this agent may call now, as Google's list has them."""

    query = GooglePageSerializer

    @extend_schema(operation_id="list_google_models", responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request) -> JsonResponse:
        return list_googles(self.asked, by=get_caller(request))


class GoogleModelView(ModelsView):
    """One of them, by its id or its alias."""

    @extend_schema(operation_id="read_google_model", responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request, model_id: str) -> JsonResponse:
        return JsonResponse(describe_to_google(find_named_model(list_offered(get_caller(request)), model_id)))


def vary(response: JsonResponse) -> JsonResponse:
    """For whoever keeps answers: this one depends on who asks."""
    response.headers["Vary"] = GOOGLES
    return response


def describe_to_openai(manifests: Iterable[Manifest], *, by: Principal) -> list[dict[str, Any]]:
    """Each with the time since which it is what it is, and what the hub says of it beside."""
    models = {each.id: each for each in manifests}
    rows = Installation.objects.visible_to(by).filter(name__in=models)
    since = dict(rows.values_list("name", "version__submitted_at"))
    return [
        {
            "id": id,
            "object": "model",
            "created": int(since[id].timestamp()) if since.get(id) else 0,
            "owned_by": id.split(".")[1],
            "hub": show_offered_model(manifest),
        }
        for id, manifest in sorted(models.items())
    ]


def describe_to_google(manifest: Manifest) -> dict[str, Any]:
    """What is not known of a model is left out."""
    beside = show_offered_model(manifest)
    limits = {"inputTokenLimit": beside["window_tokens"], "outputTokenLimit": beside["max_output_tokens"]}
    return {
        "name": PREFIX + manifest.id,
        "version": manifest.version,
        "displayName": manifest.name,
        "description": manifest.description,
        **{name: value for name, value in limits.items() if value is not None},
        "supportedGenerationMethods": list(METHODS.get(beside["operation"], ())),
        "hub": beside,
    }
