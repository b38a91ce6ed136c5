"""Installations over REST: how a tenant installs tools and sets them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StatedReasonSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from registry.installations import services as installations
from registry.installations import setup
from registry.installations.catalogue import not_gone, publisher_slugs, shared_tools
from registry.models import Installation, InstallationState, Tool, ToolKind
from registry.problems import NotInstalled
from unitools.semver import RANGE_PATTERN

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from rest_framework.request import Request


SCOPE = {"GET": "tools:read", "POST": "tools:operate"}


class InstallationSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    tool = serializers.CharField()
    publisher = serializers.CharField(help_text="The short name of the tenant that publishes it.")
    version = serializers.CharField(allow_null=True, help_text="What calls get now.")
    pin = serializers.CharField(allow_blank=True, help_text="A SemVer range; empty follows the publisher.")
    state = serializers.ChoiceField(InstallationState.choices)
    config = serializers.DictField()
    hosts = serializers.ListField(child=serializers.CharField(), allow_null=True)
    paths = serializers.ListField(child=serializers.CharField(), allow_null=True)
    secrets = serializers.DictField(help_text="The manifest's name of each secret, and the tenant's. Never a value.")
    missing = serializers.ListField(child=serializers.CharField(), help_text="What it lacks; then calls are refused.")
    reason = serializers.CharField(allow_blank=True)
    changed_by = serializers.CharField()
    changed_at = serializers.DateTimeField()


class SharedToolSerializer(serializers.Serializer[Any]):
    tool = serializers.CharField()
    publisher = serializers.CharField()
    version = serializers.CharField()
    display_name = serializers.CharField()
    description = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    side_effect = serializers.CharField()
    safety_class = serializers.CharField()
    takes_config = serializers.BooleanField()
    secrets = serializers.ListField(child=serializers.CharField())
    installed = serializers.BooleanField()


ONE = build_envelope_serializer("InstallationEnvelope", InstallationSerializer())
MANY = build_page_serializer("InstallationPage", "installations", InstallationSerializer)
SHARED = build_page_serializer("CataloguePage", "tools", SharedToolSerializer)


@extend_schema_field({"type": "string", "maxLength": setup.MAX_PIN, "pattern": f"{RANGE_PATTERN}|^$"})
class RangeField(serializers.CharField):
    """A SemVer range, or nothing."""


@extend_schema_field({"type": "string", "format": "host-pattern", "maxLength": setup.MAX_ENTRY})
class HostField(serializers.CharField):
    """A host, a pattern of them, an address or a range of addresses."""


@extend_schema_field({"type": "string", "format": "absolute-path", "maxLength": setup.MAX_ENTRY})
class PathField(serializers.CharField):
    """A tree of files."""


class SetupSerializer(StrictSerializer):
    pin = RangeField(max_length=setup.MAX_PIN, required=False, allow_blank=True)
    config = serializers.DictField(required=False)
    hosts = serializers.ListField(
        child=HostField(max_length=setup.MAX_ENTRY),
        required=False,
        allow_null=True,
        max_length=setup.MAX_LISTED,
    )
    paths = serializers.ListField(
        child=PathField(max_length=setup.MAX_ENTRY),
        required=False,
        allow_null=True,
        max_length=setup.MAX_LISTED,
    )
    secrets = serializers.DictField(child=serializers.CharField(max_length=80), required=False)


class ConfigureSerializer(StatedReasonSerializer, SetupSerializer):
    """What is left out stays as it is; null hosts or paths leave it to the manifest."""


class InstallSerializer(ConfigureSerializer):
    tool = serializers.CharField(max_length=128)
    publisher = serializers.CharField(
        max_length=40, required=False, default="", help_text="Needed when more than one shares a tool of this name."
    )


def list_missing_setup(row: Installation, present: Collection[str]) -> list[str]:
    """What an installation lacks before it can be called, as sentences."""
    if row.version is None:
        return ["No approved version is within its pin."]
    return setup.missing_setup(row.version.view, config_digest=row.config_digest, secrets=row.secrets, present=present)


def installation_json(row: Installation, *, publishers: dict[UUID, str], present: Collection[str]) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "tool": row.name,
        "publisher": publishers.get(row.tool.tenant_id, ""),
        "version": row.version.version if row.version else None,
        "pin": row.pin,
        "state": row.state,
        "config": row.config,
        "hosts": row.hosts,
        "paths": row.paths,
        "secrets": row.secrets,
        "missing": list_missing_setup(row, present),
        "reason": row.reason,
        "changed_by": row.changed_by,
        "changed_at": row.changed_at.isoformat(),
    }


def show_installation(row: Installation) -> dict[str, Any]:
    publishers = publisher_slugs([row.tool.tenant_id])
    return installation_json(row, publishers=publishers, present=installations.present_secrets(row.tenant_id))


def _answer(row: Installation, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=show_installation(row)).to_json(), status=status)


class InstallationListView(Endpoint):
    """What this tenant has installed; installing a tool of its own, or one that others share."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "ins"

    @extend_schema(operation_id="list_installations", responses={200: MANY})
    def get(self, request: Request) -> Response:
        by = get_caller(request)
        rows = Installation.objects.visible_to(by).of_kind(ToolKind.TOOL).exclude(state=InstallationState.REMOVED)
        page = self.page_of(rows.select_related("tool", "version"))
        publishers = publisher_slugs(row.tool.tenant_id for row in page.rows)
        present = installations.present_secrets(by.tenant_id)
        found = [installation_json(row, publishers=publishers, present=present) for row in page.rows]
        return Response(ResponseEnvelope(data={"installations": found, "next": page.next or None}).to_json())

    @extend_schema(operation_id="install_tool", request=InstallSerializer, responses={201: ONE})
    def post(self, request: Request) -> Response:
        data, by = read_body(request, InstallSerializer), get_caller(request)
        row = installations.install_tool(
            name=data.pop("tool"),
            publisher=data.pop("publisher"),
            reason=data.pop("reason"),
            values=installations.Setup(**data),  # type: ignore[typeddict-item]
            by=by,
        )
        return _answer(row, status=201)


class InstallationView(Endpoint):
    """One installation, by the tool's id; changing its settings."""

    required_scope = {"GET": "tools:read", "PATCH": "tools:operate"}
    conditional = True

    @extend_schema(operation_id="read_installation", responses={200: ONE})
    def get(self, request: Request, tool_id: str) -> Response:
        by = get_caller(request)
        rows = Installation.objects.visible_to(by).exclude(state=InstallationState.REMOVED)
        row = rows.select_related("tool", "version").filter(name=tool_id).first()
        if row is None:
            raise NotInstalled(f"{tool_id[:128]} is not installed here.")
        return _answer(row)

    @extend_schema(operation_id="configure_installation", request=ConfigureSerializer, responses={200: ONE})
    def patch(self, request: Request, tool_id: str) -> Response:
        data, by = read_body(request, ConfigureSerializer), get_caller(request)
        row = installations.configure_installation(
            name=tool_id,
            reason=data.pop("reason"),
            values=installations.Setup(**data),  # type: ignore[typeddict-item]
            by=by,
        )
        return _answer(row)


INSTALLATION_ACTIONS = ActionTable(__name__, "tools:operate", ONE, show_installation, renamed={"tool_id": "name"})
InstallationPauseView = INSTALLATION_ACTIONS.build_view(
    "pause_installation", installations.pause_installation, "Stop this tenant's calls of the tool at once."
)


InstallationResumeView = INSTALLATION_ACTIONS.build_view(
    "resume_installation", installations.resume_installation, "Let this tenant's calls of the tool through again."
)


InstallationRemoveView = INSTALLATION_ACTIONS.build_view(
    "remove_installation", installations.remove_installation, "Take the tool away from this tenant's agents."
)


def shared_tool_json(tool: Tool, publishers: dict[UUID, str]) -> dict[str, Any]:
    assert tool.current is not None
    manifest = tool.current.view
    return {
        "tool": tool.name,
        "publisher": publishers.get(tool.tenant_id, ""),
        "version": manifest.version,
        "display_name": manifest.display_name,
        "description": manifest.description,
        "tags": manifest.tags,
        "side_effect": manifest.side_effect,
        "safety_class": manifest.safety_class,
        "takes_config": manifest.config_schema is not None,
        "secrets": list(setup.declared_secrets(manifest)),
        "installed": bool(getattr(tool, "is_installed", False)),
    }


class CatalogueQuerySerializer(PageSerializer):
    q = serializers.CharField(required=False, help_text="A word in id, name, description or tags.")
    publisher = serializers.CharField(required=False, help_text="The short name of a tenant.")


class CatalogueView(Endpoint):
    """The tools that other tenants of this hub share, whether installed here or not."""

    required_scope = "tools:read"
    query = CatalogueQuerySerializer
    cursor = "tol"

    @extend_schema(
        operation_id="list_catalogue",
        responses={200: SHARED},
    )
    def get(self, request: Request) -> Response:
        asked = self.asked
        tools = shared_tools(by=get_caller(request), q=asked.get("q", ""), publisher=asked.get("publisher", ""))
        page = self.page_of(tools)
        publishers = publisher_slugs(tool.tenant_id for tool in page.rows)
        data = {
            "tools": [shared_tool_json(tool, publishers) for tool in not_gone(page.rows)],
            "next": page.next or None,
        }
        return Response(ResponseEnvelope(data=data).to_json())
