"""Exports over REST: requested, looked at and downloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from evidence.exports.downloads import content_response
from evidence.exports.links import check_link, link_to
from evidence.exports.services import cancel_export, make_export
from evidence.models import ExportFormat, ExportJob, ExportState
from kernel.database.tenancy import act_for
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    LinkSerializer,
    PageSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.principal import ActorKind, Principal

if TYPE_CHECKING:
    from uuid import UUID

    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

EXPORT = "evidence:export"
EXAMPLE = OpenApiExample("All that was denied", value={"format": "jsonl", "query": "verdict:deny"}, request_only=True)


class NewExportSerializer(StrictSerializer):
    format = serializers.ChoiceField(ExportFormat.choices)
    query = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=1000, help_text="As in a search."
    )
    start = serializers.IntegerField(required=False, default=0, min_value=0, help_text="The first leaf of the range.")
    stop = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=0, help_text="The leaf after the last one."
    )
    older = serializers.IntegerField(
        required=False,
        default=None,
        allow_null=True,
        min_value=1,
        help_text="Of a bundle: the size of an older checkpoint that it proves to be continued.",
    )


class NewBundleExportSerializer(NewExportSerializer):
    """Facts with their proofs."""

    format = serializers.ChoiceField([ExportFormat.BUNDLE.value])


class NewListExportSerializer(NewExportSerializer):
    """Facts alone."""

    format = serializers.ChoiceField([each for each in ExportFormat.values if each != ExportFormat.BUNDLE])
    older = None  # type: ignore[assignment]


NEW_EXPORT = PolymorphicProxySerializer(
    "NewExport", [NewBundleExportSerializer, NewListExportSerializer], resource_type_field_name=None
)


class ExportSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    format = serializers.ChoiceField(ExportFormat.choices)
    query = serializers.CharField()
    start = serializers.IntegerField()
    stop = serializers.IntegerField()
    state = serializers.ChoiceField(ExportState.choices)
    percent = serializers.IntegerField()
    facts = serializers.IntegerField()
    bytes = serializers.IntegerField()
    digest = serializers.CharField(allow_null=True, help_text="Of the whole content, once it is done.")
    problem = serializers.CharField(allow_null=True, help_text="Why it failed.")
    url = serializers.CharField(allow_null=True, help_text="Where the content is, for an hour and without a key.")
    made_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)


ONE = build_envelope_serializer("EvidenceExportEnvelope", ExportSerializer())
PAGE = build_page_serializer("EvidenceExportPage", "exports", ExportSerializer)


def export_json(job: ExportJob, by: Principal) -> dict[str, Any]:
    done = job.state == ExportState.DONE
    return {
        "id": job.wire_id,
        "format": job.format,
        "query": job.query,
        "start": job.start,
        "stop": job.stop,
        "state": job.state,
        "percent": job.percent,
        "facts": job.rows,
        "bytes": job.size,
        "digest": job.digest or None,
        "problem": job.problem or None,
        "url": link_to(job, agent=by.id) if done and not job.opens else None,
        "made_by": job.actor_id,
        "created_at": job.created_at.isoformat(),
        "expires_at": job.expires_at.isoformat() if job.expires_at else None,
    }


def _answer(data: Any, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=data).to_json(), status=status, headers={"Cache-Control": "no-store"})


class ExportListView(Endpoint):
    """The tenant's exports, the newest first; asking for another one. It is made in the background."""

    required_scope = EXPORT
    query = PageSerializer
    cursor = "exp"

    @extend_schema(operation_id="list_exports", responses={200: PAGE})
    def get(self, request: Request) -> Response:
        rows = ExportJob.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        return _answer(
            {"exports": [export_json(row, get_caller(request)) for row in page.rows], "next": page.next or None}
        )

    @extend_schema(operation_id="make_export", request=NEW_EXPORT, responses={202: ONE}, examples=[EXAMPLE])
    def post(self, request: Request) -> Response:
        job = make_export(by=get_caller(request), **read_body(request, NewExportSerializer))
        return _answer(export_json(job, get_caller(request)), status=202)


class ExportView(Endpoint):
    """One export. Deleting it while it is being made cancels it."""

    required_scope = EXPORT

    @extend_schema(operation_id="read_export", responses={200: ONE})
    def get(self, request: Request, job_id: UUID) -> Response:
        by = get_caller(request)
        return _answer(export_json(ExportJob.objects.get(pk=job_id, tenant_id=by.tenant_id), by))

    @extend_schema(operation_id="cancel_export", responses={200: ONE})
    def delete(self, request: Request, job_id: UUID) -> Response:
        return _answer(export_json(cancel_export(job_id=job_id, by=get_caller(request)), get_caller(request)))


class ExportContentView(Endpoint):
    """The content: with a key, or by the link that the export's answer gives, for an hour. Range requests are answered. Values that
    somebody had opened are for people only, in the console.
    """

    required_scope = EXPORT
    query = LinkSerializer

    def perform_authentication(self, request: Request) -> None:
        if "signature" in request.query_params:
            job_id: UUID = self.kwargs["job_id"]
            query = {name: str(text) for name, text in request.query_params.items()}
            tenant_id, agent = check_link(job_id, query)
            act_for(tenant_id)
            request.user = Principal(  # type: ignore[assignment]
                kind=ActorKind.AGENT, id=agent, name=agent, tenant_id=tenant_id, allowed=frozenset({EXPORT})
            )
        else:
            super().perform_authentication(request)

    @extend_schema(
        operation_id="download_export",
        parameters=[
            OpenApiParameter("Range", str, OpenApiParameter.HEADER, description="`bytes=…`: only that part."),
        ],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        by = get_caller(request)
        ExportJob.objects.only("pk").get(pk=job_id, tenant_id=by.tenant_id, opens=False)
        via = "link" if "signature" in self.asked else "key"
        return content_response(request._request, job_id=job_id, by=by, via=via)
