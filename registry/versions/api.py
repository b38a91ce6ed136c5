"""Versions over REST: how a publisher operates its tools and their versions.

What only people decide (reviews, the mark of trust) is not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StatedReasonSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.problems import NotFound
from registry.models import DependencyState, Tool, ToolState, ToolVersion, VersionState
from registry.tools import lifecycle
from registry.tools.selectors import get_tool
from registry.versions import services
from registry.versions.bump import lock_changes
from registry.versions.presentation import dependencies_json

if TYPE_CHECKING:
    from rest_framework.request import Request

    from kernel.principal import Principal

OPERATE = "tools:operate"


class VersionChangeSerializer(serializers.Serializer[Any]):
    """One difference from the version that it was compared with."""

    id = serializers.CharField()
    kind = serializers.CharField()
    pointer = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)
    bump = serializers.ChoiceField(["none", "patch", "minor", "major"])
    risk = serializers.ChoiceField(["low", "medium", "high"])
    message = serializers.CharField()


class SubmittedManifestSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    version = serializers.CharField()
    review_state = serializers.ChoiceField(VersionState.choices)
    current = serializers.BooleanField(help_text="Whether installations without a pin get it.")
    submitted_by = serializers.CharField()
    submitted_at = serializers.DateTimeField()
    yanked_at = serializers.DateTimeField(allow_null=True)
    yank_reason = serializers.CharField(allow_null=True)
    trusted_at = serializers.DateTimeField(allow_null=True)
    compared_with = serializers.CharField(allow_null=True)
    changes = VersionChangeSerializer(many=True)
    manifest_digest = serializers.CharField()
    build_digest = serializers.CharField()


class PackageSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    alias = serializers.CharField(
        allow_blank=True, help_text="The name by which other packages find it, where that is not its own."
    )
    named = serializers.BooleanField(help_text="Whether the manifest names it; otherwise another package needs it.")
    sha256 = serializers.ListField(child=serializers.CharField(), help_text="Of the files of a package of PyPI.")
    sha512 = serializers.ListField(child=serializers.CharField(), help_text="Of the file of a package of npm.")


class FailureSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()
    output = serializers.CharField(required=False, help_text="The last that a server said which does not start.")


class DependenciesSerializer(serializers.Serializer[Any]):
    """The packages of others that a version needs, and how far they are."""

    state = serializers.ChoiceField(DependencyState.choices)
    changed_at = serializers.DateTimeField()
    lock = serializers.CharField(allow_null=True, help_text="Digest of the lock; null until there is one.")
    packages = PackageSerializer(many=True)
    progress = serializers.ListField(child=serializers.CharField(), help_text="What is being done, the newest last.")
    failure = FailureSerializer(allow_null=True)
    size_bytes = serializers.IntegerField(allow_null=True)


class WholeVersionSerializer(SubmittedManifestSerializer):
    manifest = serializers.JSONField(help_text="As it was submitted.")
    dependencies = DependenciesSerializer(allow_null=True, help_text="null: it needs none.")


class ToolStateSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    state = serializers.ChoiceField(ToolState.choices)
    version = serializers.CharField(allow_null=True)
    shared = serializers.BooleanField()
    sunset_on = serializers.DateField(allow_null=True)
    successor = serializers.CharField(allow_null=True)


class MovedVersionSerializer(serializers.Serializer[Any]):
    """How many installations get another version now, and how many have none that they could get."""

    version = serializers.CharField()
    moved = serializers.IntegerField()
    stuck = serializers.IntegerField()


TOOL = build_envelope_serializer("ToolStateEnvelope", ToolStateSerializer())
VERSIONS = build_page_serializer("VersionPage", "versions", SubmittedManifestSerializer)
VERSION = build_envelope_serializer("VersionEnvelope", WholeVersionSerializer())
MOVED = build_envelope_serializer("MovedEnvelope", MovedVersionSerializer())
DEPENDENCIES = build_envelope_serializer("DependenciesEnvelope", DependenciesSerializer(allow_null=True))


class EnableSerializer(StatedReasonSerializer):
    version = serializers.CharField(
        max_length=64,
        required=False,
        default="",
        help_text="An approved version; left out: the one that it had, or the only one.",
    )


class DeprecateSerializer(StatedReasonSerializer):
    sunset_on = serializers.DateField(help_text="The last day on which it answers.")
    successor = serializers.CharField(
        max_length=128, required=False, default="", allow_blank=True, help_text="The tool to use instead."
    )


class StageSerializer(StatedReasonSerializer):
    tenants = serializers.ListField(
        child=serializers.CharField(max_length=40),
        min_length=1,
        max_length=lifecycle.MAX_STAGED,
        help_text="Short names of tenants that have it installed.",
    )


def tool_state_json(tool: Tool) -> dict[str, Any]:
    return {
        "id": tool.name,
        "state": tool.state,
        "version": tool.current.version if tool.current else None,
        "shared": tool.shared,
        "sunset_on": tool.sunset_on.isoformat() if tool.sunset_on else None,
        "successor": tool.successor or None,
    }


def version_json(version: ToolVersion, tool: Tool) -> dict[str, Any]:
    return {
        "id": version.wire_id,
        "version": version.version,
        "review_state": version.review_state,
        "current": tool.current_id == version.pk,
        "submitted_by": version.submitted_by,
        "submitted_at": version.submitted_at.isoformat(),
        "yanked_at": version.yanked_at.isoformat() if version.yanked_at else None,
        "yank_reason": version.yank_reason or None,
        "trusted_at": version.trusted_at.isoformat() if version.trusted_at else None,
        "compared_with": version.base.version if version.base else None,
        "changes": version.changes,
        "manifest_digest": version.manifest_digest,
        "build_digest": version.build_digest,
    }


def own_version(name: str, number: str, *, by: Principal) -> ToolVersion:
    version = get_tool(name, tenant_id=by.tenant_id).versions.filter(version=number).first()
    if version is None:
        raise NotFound(f"{name} has no version {number[:64]}.")
    return version


def _answer(tool: Tool) -> Response:
    return Response(ResponseEnvelope(data=tool_state_json(tool)).to_json())


class VersionListView(Endpoint):
    """The versions of one of the tenant's own tools, the newest submission first, each with what it changes."""

    required_scope = "tools:read"
    query = PageSerializer
    cursor = "tvn"

    @extend_schema(operation_id="list_tool_versions", responses={200: VERSIONS})
    def get(self, request: Request, tool_id: str) -> Response:
        tool = get_tool(tool_id, tenant_id=get_caller(request).tenant_id)
        page = self.page_of(tool.versions.select_related("base"))
        data = {"versions": [version_json(row, tool) for row in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())


class VersionView(Endpoint):
    """One version of one of the tenant's own tools, with the whole manifest: for who submits versions, not for who calls."""

    required_scope = "tools:register"

    @extend_schema(operation_id="read_tool_version", responses={200: VERSION})
    def get(self, request: Request, tool_id: str, version: str) -> Response:
        row = own_version(tool_id, version, by=get_caller(request))
        data = version_json(row, row.tool) | {"manifest": row.manifest, "dependencies": dependencies_json(row)}
        data["changes"] = [*row.changes, *lock_changes(row.base, row)]
        return Response(ResponseEnvelope(data=data).to_json())


class ToolEnableView(Endpoint):
    """Make a tool callable, or give everybody without a pin another approved version: also an older one."""

    required_scope = OPERATE

    @extend_schema(operation_id="enable_tool", request=EnableSerializer, responses={200: TOOL})
    def post(self, request: Request, tool_id: str) -> Response:
        data, by = read_body(request, EnableSerializer), get_caller(request)
        version = own_version(tool_id, data["version"], by=by) if data["version"] else None
        version_id = version.pk if version else None
        return _answer(lifecycle.enable_tool(name=tool_id, version_id=version_id, reason=data["reason"], by=by))


TOOL_ACTIONS = ActionTable(__name__, OPERATE, TOOL, tool_state_json, renamed={"tool_id": "name"})
ToolPauseView = TOOL_ACTIONS.build_view("pause_tool", lifecycle.pause_tool, "Stop a tool at once, for every tenant.")


ToolDeprecateView = TOOL_ACTIONS.build_view(
    "deprecate_tool",
    lifecycle.deprecate_tool,
    "Hide a tool from discovery; it answers with a warning until its sunset. This cannot be taken back.",
    body=DeprecateSerializer,
)


ToolShareView = TOOL_ACTIONS.build_view(
    "share_tool", lifecycle.share_tool, "Let the other tenants of this hub install the tool."
)


ToolUnshareView = TOOL_ACTIONS.build_view(
    "unshare_tool", lifecycle.unshare_tool, "No other tenant installs the tool any more; who has it keeps it."
)


class VersionStageView(Endpoint):
    """Give a version to named tenants only; everybody else keeps the current one."""

    required_scope = OPERATE

    @extend_schema(operation_id="stage_tool_version", request=StageSerializer, responses={200: MOVED})
    def post(self, request: Request, tool_id: str, version: str) -> Response:
        data, by = read_body(request, StageSerializer), get_caller(request)
        row = own_version(tool_id, version, by=by)
        moved = lifecycle.stage_version(version_id=row.pk, by=by, **data)
        answer = {"version": row.version, "moved": len(moved), "stuck": 0}
        return Response(ResponseEnvelope(data=answer).to_json())


class VersionYankView(Endpoint):
    """Withdraw a version for good: it is never chosen again."""

    required_scope = OPERATE

    @extend_schema(operation_id="yank_tool_version", request=StatedReasonSerializer, responses={200: MOVED})
    def post(self, request: Request, tool_id: str, version: str) -> Response:
        data, by = read_body(request, StatedReasonSerializer), get_caller(request)
        row = own_version(tool_id, version, by=by)
        moved, stuck = lifecycle.yank_version(version_id=row.pk, reason=data["reason"], by=by)
        answer = {"version": row.version, "moved": len(moved), "stuck": len(stuck)}
        return Response(ResponseEnvelope(data=answer).to_json())


class VersionDependenciesView(Endpoint):
    """Try again to resolve or to install what a version needs of others, once that has failed."""

    required_scope = OPERATE

    @extend_schema(operation_id="retry_tool_version_dependencies", request=None, responses={200: DEPENDENCIES})
    def post(self, request: Request, tool_id: str, version: str) -> Response:
        by = get_caller(request)
        row = own_version(tool_id, version, by=by)
        services.retry_dependencies(version_id=row.pk, by=by)
        return Response(ResponseEnvelope(data=dependencies_json(row)).to_json())
