"""Agents over REST: agents and their keys. Texts of keys are answered once, and never again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.response import Response

from access.agents import services as agents
from access.models import Agent, ApiKey
from access.roles import SCOPES
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import PageSerializer, PatternField, StrictSerializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

SCOPE = "agents:manage"

KEY_STATES = ["live", "expired", "revoked"]


class AgentSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    state = serializers.ChoiceField(["enabled", "disabled"])
    created_at = serializers.DateTimeField()
    disabled_at = serializers.DateTimeField(allow_null=True)


class KeySerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    lookup = serializers.CharField(help_text="The public part of the key.")
    scopes = serializers.ListField(child=serializers.CharField())
    networks = serializers.ListField(child=serializers.CharField())
    state = serializers.ChoiceField(KEY_STATES)
    expires_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    created_by = serializers.CharField()
    replaces = serializers.CharField(allow_null=True)


class NewKeySerializer(KeySerializer):
    key = serializers.CharField(help_text="The key itself. Answered this once.")


def _envelope(name: str, data: Any) -> Any:
    return inline_serializer(name, {"ok": serializers.BooleanField(), "data": data})


def _page(name: str, rows: str, row: Any) -> Any:
    fields = {rows: row(many=True), "next": serializers.CharField(allow_null=True)}
    return _envelope(f"{name}Envelope", inline_serializer(name, fields))


AGENT, AGENTS = _envelope("AgentEnvelope", AgentSerializer()), _page("AgentPage", "agents", AgentSerializer)
KEY, KEYS = _envelope("KeyEnvelope", KeySerializer()), _page("KeyPage", "keys", KeySerializer)
NEW_KEY = _envelope("NewKeyEnvelope", NewKeySerializer())


_SEEN = r"\u0000-\u001f\u007f-\u00a0"
NAME = rf"^[^{_SEEN}]*[^\s{_SEEN}][^{_SEEN}]*$"


@extend_schema_field({"type": "string", "format": "visible-text", "maxLength": 80})
class AgentNameField(PatternField):
    """A name without what nobody sees."""


class NewAgentSerializer(StrictSerializer):
    name = AgentNameField(NAME, wanted="a name without characters that nobody sees", max_length=80)


class KeyRequestSerializer(StrictSerializer):
    name = serializers.CharField(max_length=80, required=False, default="", allow_blank=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(list(SCOPES)), max_length=len(SCOPES))
    expires_at = serializers.DateTimeField(required=False, default=None, allow_null=True)
    networks = serializers.ListField(
        child=serializers.CharField(max_length=60), required=False, default=list, max_length=agents.MAX_NETWORKS
    )


class RotationSerializer(StrictSerializer):
    overlap_s = serializers.IntegerField(
        required=False,
        default=int(agents.OVERLAP.total_seconds()),
        min_value=0,
        max_value=int(agents.MAX_OVERLAP.total_seconds()),
        help_text="How long both keys work.",
    )

    def validate_overlap_s(self, seconds: int) -> timedelta:
        return timedelta(seconds=seconds)


def _text_of(moment: Any) -> str | None:
    return moment.isoformat() if moment else None


def agent_json(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.wire_id,
        "name": agent.name,
        "state": "disabled" if agent.disabled_at else "enabled",
        "created_at": _text_of(agent.created_at),
        "disabled_at": _text_of(agent.disabled_at),
    }


def key_state(key: ApiKey) -> str:
    if key.revoked_at:
        return "revoked"
    return "live" if agents.is_live(key) else "expired"


def key_json(key: ApiKey, text: str = "") -> dict[str, Any]:
    found = {
        "id": key.wire_id,
        "name": key.name,
        "lookup": key.lookup,
        "scopes": key.scopes,
        "networks": key.networks,
        "state": key_state(key),
        "expires_at": _text_of(key.expires_at),
        "last_used_at": _text_of(key.last_used_at),
        "created_by": key.created_by,
        "replaces": key.replaces.wire_id if key.replaces else None,
    }
    return found | ({"key": text} if text else {})


AGENT_ACTIONS = ActionTable(__name__, SCOPE, AGENT, agent_json)
KEY_ACTIONS = ActionTable(__name__, SCOPE, KEY, key_json)


def _answer(data: Any, *, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store"} if isinstance(data, dict) and "key" in data else {}
    return Response(ResponseEnvelope(data=data).to_json(), status=status, headers=headers)


class AgentListView(Endpoint):
    """The tenant's agents; making one."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "agt"

    @extend_schema(operation_id="list_agents", responses={200: AGENTS})
    def get(self, request: Request) -> Response:
        rows = Agent.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        return _answer({"agents": [agent_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(operation_id="create_agent", request=NewAgentSerializer, responses={201: AGENT})
    def post(self, request: Request) -> Response:
        agent = agents.create_agent(by=get_caller(request), **read_body(request, NewAgentSerializer))
        return _answer(agent_json(agent), status=201)


class AgentView(Endpoint):
    """One agent."""

    required_scope = SCOPE

    @extend_schema(operation_id="read_agent", responses={200: AGENT})
    def get(self, request: Request, agent_id: UUID) -> Response:
        return _answer(agent_json(Agent.objects.get(pk=agent_id, tenant_id=get_caller(request).tenant_id)))


AgentDisableView = AGENT_ACTIONS.build_view(
    "disable_agent", agents.disable_agent, "Refuse all that the agent sends, from its next request on."
)


AgentEnableView = AGENT_ACTIONS.build_view(
    "enable_agent", agents.enable_agent, "Let through again what a disabled agent sends."
)


class KeyListView(Endpoint):
    """An agent's keys; making one."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "key"

    @extend_schema(operation_id="list_keys", responses={200: KEYS})
    def get(self, request: Request, agent_id: UUID) -> Response:
        agent = Agent.objects.get(pk=agent_id, tenant_id=get_caller(request).tenant_id)
        rows = ApiKey.objects.filter(agent=agent).select_related("replaces")
        page = self.page_of(rows)
        return _answer({"keys": [key_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(operation_id="create_key", request=KeyRequestSerializer, responses={201: NEW_KEY})
    def post(self, request: Request, agent_id: UUID) -> Response:
        agent = Agent.objects.get(pk=agent_id, tenant_id=get_caller(request).tenant_id)
        row, text = agents.create_key(agent=agent, by=get_caller(request), **read_body(request, KeyRequestSerializer))
        return _answer(key_json(row, text), status=201)


def show_new_key(made: tuple[ApiKey, str]) -> dict[str, Any]:
    return key_json(*made)


KeyRotateView = ActionTable(
    __name__, SCOPE, NEW_KEY, show_new_key, renamed={"overlap_s": "overlap"}, headers={"Cache-Control": "no-store"}
).build_view(
    "rotate_key",
    agents.rotate_key,
    "A key that takes over; both work for a while.",
    body=RotationSerializer,
    status=201,
)
KeyRevokeView = KEY_ACTIONS.build_view(
    "revoke_key", agents.revoke_key, "End a key; it is refused with its next request.", body=None
)
