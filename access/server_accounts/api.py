"""Server accounts over REST: a person's own ones, for their session; and for operators which there are, and ending one.

A person connects in the browser in which they are signed in: the answer of the authorization server comes there. No answer of these
endpoints holds a token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import ApiKeyAuthentication
from access.authentication.sessions import PersonAuthentication
from access.models import AccountServer, ReturnState, ServerAccount, ServerAccountState
from access.server_accounts import services
from access.server_accounts.authorizations import begin_authorization
from access.server_accounts.clients import callback_url
from access.server_accounts.pages import find_account_tools, find_wishes, list_offered_agents
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    IdField,
    PageSerializer,
    StrictSerializer,
    WebAddressField,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.problems import NotFound, StateUnfit

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet
    from rest_framework.request import Request

    from kernel.principal import Principal

SCOPE, PERMISSION = "tools:operate", "secrets.manage"
MAX_AGENTS = 100


class ServerAccountSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    person = serializers.CharField()
    server = serializers.CharField(help_text="The address that is asked as the person.")
    state = serializers.ChoiceField(ServerAccountState.choices)
    scopes = serializers.ListField(child=serializers.CharField())
    agents = serializers.ListField(
        child=serializers.CharField(), help_text="That may use it on their own word that a call is for the person."
    )
    asked_by = serializers.ListField(child=serializers.CharField(), help_text="Agents that ask for it.")
    requested_at = serializers.DateTimeField()
    connected_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    end_reason = serializers.CharField(allow_null=True)
    returned = serializers.ChoiceField(
        ReturnState.choices,
        allow_null=True,
        help_text="What became of its tokens at who gave them: `lapsed` ones were not taken, and run out by themselves.",
    )


class BegunServerAccountSerializer(serializers.Serializer[Any]):
    account = ServerAccountSerializer()
    url = serializers.CharField(
        help_text="For the browser in which the person is signed in, within a quarter of an hour."
    )
    host = serializers.CharField(help_text="Of the authorization server.")


class AccountServerSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    server = serializers.CharField()
    issuer = serializers.CharField(allow_null=True, help_text="Who gives tokens for it. Null: not asked yet.")
    client_kind = serializers.ChoiceField(AccountServer.HubClientKind.choices, allow_null=True)
    client_refused_at = serializers.DateTimeField(allow_null=True)
    redirect_uri = serializers.CharField(help_text="Of the hub, for this server alone.")
    tools = serializers.ListField(child=serializers.CharField(), help_text="Installed tools that ask it as a person.")
    connected = serializers.IntegerField(help_text="So many persons have their account connected.")


class NewServerAccountSerializer(StrictSerializer):
    server = WebAddressField(max_length=400, help_text="As an installed tool names it.")


class ConnectServerAccountSerializer(StrictSerializer):
    agents = serializers.ListField(
        child=IdField("agt"),
        required=False,
        default=list,
        max_length=MAX_AGENTS,
        help_text="Of those that ask: which may use it on their own word.",
    )


class AgentsOfAccountSerializer(StrictSerializer):
    agents = serializers.ListField(child=IdField("agt"), max_length=MAX_AGENTS, help_text="These and no others.")


ONE = build_envelope_serializer("ServerAccountEnvelope", ServerAccountSerializer())
MANY = build_page_serializer("ServerAccountPage", "accounts", ServerAccountSerializer)
BEGUN = build_envelope_serializer("BegunServerAccountEnvelope", BegunServerAccountSerializer())
SERVERS = build_page_serializer("AccountServerPage", "servers", AccountServerSerializer)


def account_json(row: ServerAccount) -> dict[str, Any]:
    returned = row.returned_tokens.order_by("-pk").first()
    return {
        "id": row.wire_id,
        "person": row.person,
        "server": row.server.resource,
        "state": row.state,
        "scopes": row.scopes,
        "agents": row.agents,
        "asked_by": row.asked_by,
        "requested_at": row.requested_at.isoformat(),
        "connected_at": row.connected_at.isoformat() if row.connected_at else None,
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
        "end_reason": row.end_reason or None,
        "returned": returned.state if returned else None,
    }


def server_json(row: AccountServer, tools: list[str], connected: int) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "server": row.resource,
        "issuer": row.issuer or None,
        "client_kind": row.client_kind or None,
        "client_refused_at": row.client_refused_at.isoformat() if row.client_refused_at else None,
        "redirect_uri": callback_url(row.callback_key),
        "tools": tools,
        "connected": connected,
    }


def _answer(data: Any, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=data).to_json(), status=status, headers={"Cache-Control": "no-store"})


class OwnAccountView(Endpoint):
    """For people alone, whatever their role: each has their own accounts, and sees and changes no others."""

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]
    required_scope: ClassVar[dict[str, str | None]] = {"POST": None}
    required_permission = ""  # of anybody who belongs to the tenant

    def find_own(self, request: Request, account_id: UUID) -> ServerAccount:
        row = _own_accounts(get_caller(request)).filter(pk=account_id).first()
        if row is None:
            raise NotFound("You have no such account.")
        return row


def _member_of(by: Principal) -> int:
    return int(by.id.removeprefix("usr_"))


def _own_accounts(by: Principal) -> QuerySet[ServerAccount]:
    rows = ServerAccount.objects.filter(tenant_id=by.tenant_id, member_id=_member_of(by))
    return rows.select_related("server")


def _check_offered(row: ServerAccount, agents: list[str]) -> list[str]:
    offered = {each.wire_id for each in list_offered_agents(row)}
    if unknown := sorted(set(agents) - offered):
        raise StateUnfit.at("/agents", f"{unknown[0]} neither asks for this account nor may use it.")
    return agents


class ServerAccountListView(OwnAccountView):
    """The caller's own accounts, the newest first; asking for one at a server that an installed tool asks as a person."""

    required_scope = {"GET": None, "POST": None}
    query = PageSerializer
    cursor = "sac"

    @extend_schema(operation_id="list_server_accounts", responses={200: MANY})
    def get(self, request: Request) -> Response:
        page = self.page_of(_own_accounts(get_caller(request)))
        return _answer({"accounts": [account_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(operation_id="request_server_account", request=NewServerAccountSerializer, responses={201: ONE})
    def post(self, request: Request) -> Response:
        by, resource = get_caller(request), read_body(request, NewServerAccountSerializer)["server"]
        if resource not in find_account_tools(by.tenant_id):
            raise StateUnfit.at("/server", "No tool of this organisation asks for an account there.")
        row = services.request_account(resource=resource, member_id=_member_of(by), by=by)
        return _answer(account_json(row), status=201)


class ServerAccountConnectView(OwnAccountView):
    """Begin to connect an account: where the person's browser is to go, to sign in there and agree."""

    @extend_schema(
        operation_id="connect_server_account", request=ConnectServerAccountSerializer, responses={200: BEGUN}
    )
    def post(self, request: Request, account_id: UUID) -> Response:
        row = self.find_own(request, account_id)
        agents = _check_offered(row, read_body(request, ConnectServerAccountSerializer)["agents"])
        url = begin_authorization(
            account_id=row.pk,
            browser=request._request.session.session_key or "",
            agents=agents,
            **find_wishes(row),
            by=get_caller(request),
        )
        return _answer({"account": account_json(row), "url": url, "host": urlsplit(url).hostname or ""})


class ServerAccountAgentsView(OwnAccountView):
    """Which agents may use an account on their own word that a call is for its person."""

    required_scope = {"PUT": None}

    @extend_schema(operation_id="allow_server_account_agents", request=AgentsOfAccountSerializer, responses={200: ONE})
    def put(self, request: Request, account_id: UUID) -> Response:
        row = self.find_own(request, account_id)
        agents = _check_offered(row, read_body(request, AgentsOfAccountSerializer)["agents"])
        return _answer(account_json(services.allow_agents(account_id=row.pk, agents=agents, by=get_caller(request))))


class ServerAccountEndView(OwnAccountView):
    """Disconnect an account, or say no to who asks for it."""

    @extend_schema(operation_id="end_server_account", request=None, responses={200: ONE})
    def post(self, request: Request, account_id: UUID) -> Response:
        row = self.find_own(request, account_id)
        return _answer(account_json(services.disconnect_account(account_id=row.pk, by=get_caller(request))))


class OperatedView(Endpoint):
    """For keys with the scope, and for people with the permission."""

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]
    required_scope = SCOPE
    required_permission = PERMISSION


class AccountServerListView(OperatedView):
    """The servers that are asked by accounts of persons, and who the hub is there."""

    query = PageSerializer
    cursor = "asv"

    @extend_schema(operation_id="list_account_servers", responses={200: SERVERS})
    def get(self, request: Request) -> Response:
        tenant_id = get_caller(request).tenant_id
        page, tools = self.page_of(AccountServer.objects.filter(tenant_id=tenant_id)), find_account_tools(tenant_id)
        connected = ServerAccount.objects.filter(tenant_id=tenant_id, state=ServerAccountState.CONNECTED)
        of_servers = list(connected.values_list("server_id", flat=True))
        rows = [
            server_json(row, tools.get(row.resource, {}).get("tools", []), of_servers.count(row.pk))
            for row in page.rows
        ]
        return _answer({"servers": rows, "next": page.next or None})


class TenantServerAccountListView(OperatedView):
    """Whose accounts there are, the newest first."""

    query = PageSerializer
    cursor = "sac"

    @extend_schema(operation_id="list_tenant_server_accounts", responses={200: MANY})
    def get(self, request: Request) -> Response:
        rows = ServerAccount.objects.filter(tenant_id=get_caller(request).tenant_id).select_related("server")
        page = self.page_of(rows)
        return _answer({"accounts": [account_json(row) for row in page.rows], "next": page.next or None})


class ServerAccountRevokeView(OperatedView):
    """End a person's account: no call uses it any more, and its tokens are given back. The person may connect anew."""

    @extend_schema(operation_id="revoke_server_account", request=None, responses={200: ONE})
    def post(self, request: Request, account_id: UUID) -> Response:
        return _answer(account_json(services.revoke_account(account_id=account_id, by=get_caller(request))))
