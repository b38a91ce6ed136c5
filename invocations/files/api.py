"""Files over REST: how the files that tools use are stored, read and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from invocations.files import services as files
from invocations.models import StoredFile
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import PageSerializer, build_envelope_serializer, build_page_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from rest_framework.request import Request


class StoredFileSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    path = serializers.CharField()
    size = serializers.IntegerField()
    changed_by = serializers.CharField()
    changed_at = serializers.DateTimeField()


ONE, MANY = (
    build_envelope_serializer("FileEnvelope", StoredFileSerializer()),
    build_page_serializer("FilePage", "files", StoredFileSerializer),
)


def file_json(row: StoredFile) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "path": row.path,
        "size": row.size,
        "changed_by": row.changed_by,
        "changed_at": row.changed_at.isoformat(),
    }


class FileQuerySerializer(PageSerializer):
    below = serializers.CharField(required=False, help_text="A folder.")


class FileListView(Endpoint):
    """The files that tools of this tenant may be given, newest first."""

    required_scope = "files:manage"
    query = FileQuerySerializer
    cursor = "fil"

    @extend_schema(
        operation_id="list_files",
        responses={200: MANY},
    )
    def get(self, request: Request) -> Response:
        rows = StoredFile.objects.filter(tenant_id=get_caller(request).tenant_id).defer("ciphertext")
        if below := self.asked.get("below", "").rstrip("/"):
            rows = rows.filter(path__startswith=f"{below}/")
        page = self.page_of(rows)
        data = {"files": [file_json(row) for row in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())


PATH = OpenApiParameter(
    "path",
    {"type": "string", "format": "file-path", "minLength": 1, "maxLength": 380},
    OpenApiParameter.PATH,
    description="Folders and a name, as tools see them below /data.",
)


@extend_schema(parameters=[PATH])
class FileView(Endpoint):
    """One file, at the path that tools see: `/api/v1/files/reports/june.csv` is `/data/reports/june.csv` there."""

    required_scope = "files:manage"

    @extend_schema(operation_id="read_file", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, path: str) -> HttpResponse:
        content = files.read_file(path=f"/data/{path}", by=get_caller(request))
        headers = {
            "Cache-Control": "no-store",
            "Content-Disposition": "attachment",
            "X-Content-Type-Options": "nosniff",
        }
        return HttpResponse(content, content_type="application/octet-stream", headers=headers)

    @extend_schema(
        operation_id="store_file",
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={200: ONE, 201: ONE},
    )
    def put(self, request: Request, path: str) -> Response:
        content = request.read()  # not `data`, which is empty when no length was announced
        row, created = files.store_file(path=f"/data/{path}", content=content, by=get_caller(request))
        return Response(ResponseEnvelope(data=file_json(row)).to_json(), status=201 if created else 200)

    @extend_schema(operation_id="remove_file", responses={204: None})
    def delete(self, request: Request, path: str) -> Response:
        files.remove_file(path=f"/data/{path}", by=get_caller(request))
        return Response(status=204)
