"""Issuers over REST: identity providers trusted, and their subjects mapped to agents.

An agent says so within what it holds itself: it maps no subject to more scopes than its key carries, nor to another agent
without ``agents:manage``, and changes no keys of an issuer whose subjects have more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from access.connections.services import MAX_TOOLS
from access.issuers import assertion_rules
from access.issuers import services as issuers
from access.issuers.jwks import MAX_KEYS, read_keys
from access.models import AgentIdentity, AssertionRule, TrustedIssuer
from access.roles import AGENT_SCOPES, SCOPES
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    OptionalWebAddressField,
    PageSerializer,
    StrictSerializer,
    WebAddressField,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import decode, encode
from kernel.problems import NotFound

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

SCOPE = "issuers:manage"


class AssertionRuleSerializer(serializers.Serializer[Any]):
    agent = serializers.CharField(help_text="As which programs of its people act.")
    scopes = serializers.ListField(child=serializers.CharField(), help_text="At most these.")
    tools = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="Only these; null: all that the agent is given."
    )
    token_minutes = serializers.IntegerField(help_text="So long a token is good that was given for one assertion.")


class TrustedIssuerSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    issuer = serializers.CharField(help_text="The iss claim, compared exactly.")
    audience = serializers.CharField(help_text="The aud claim.")
    jwks_url = serializers.CharField(allow_null=True)
    jwks = serializers.JSONField(allow_null=True, help_text="The public keys that count, where they were given.")
    state = serializers.ChoiceField(["trusted", "distrusted"])
    assertion_rule = AssertionRuleSerializer(
        allow_null=True, help_text="What it may vouch for without a page (ID-JAG); null: nothing."
    )
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    disabled_at = serializers.DateTimeField(allow_null=True)


class MappedSubjectSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    subject = serializers.CharField(help_text="The sub claim.")
    agent = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()


HAS_URL, HAS_KEYS = {"pattern": r"\S"}, {"type": "object"}


@extend_schema_field(
    {
        "type": "object",
        "nullable": True,
        "required": ["keys"],
        "properties": {
            "keys": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_KEYS,
                "items": {"$ref": "#/components/schemas/PublicJsonWebKey"},
            }
        },
        "additionalProperties": {},
    }
)
class KeySetField(serializers.DictField):
    """A JSON Web Key Set. Which of its keys can be used, the service finds out."""


class IssuerKeysSerializer(StrictSerializer):
    audience = serializers.CharField(
        max_length=issuers.MAX_NAME, help_text="Whom the tokens must be for. It leads to this tenant and to no other."
    )
    jwks_url = OptionalWebAddressField(
        max_length=500, required=False, default="", allow_blank=True, help_text="Where its keys are: public and https."
    )
    jwks = KeySetField(required=False, default=None, allow_null=True, help_text="Or the keys: a JSON Web Key Set.")

    never = (
        {"required": ["jwks_url", "jwks"], "properties": {"jwks_url": HAS_URL, "jwks": HAS_KEYS}},
        {
            "not": {
                "anyOf": [
                    {"required": ["jwks_url"], "properties": {"jwks_url": HAS_URL}},
                    {"required": ["jwks"], "properties": {"jwks": HAS_KEYS}},
                ]
            }
        },
    )


class NewIssuerSerializer(IssuerKeysSerializer):
    issuer = WebAddressField(max_length=issuers.MAX_NAME, help_text="Exactly as its tokens name it.")


class NewSubjectSerializer(StrictSerializer):
    subject = serializers.CharField(max_length=issuers.MAX_NAME, help_text="Exactly as the tokens name it.")
    agent = serializers.CharField(max_length=40, help_text="agt_…")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(list(SCOPES)), max_length=len(SCOPES), help_text="At most these."
    )


class NewAssertionRuleSerializer(StrictSerializer):
    agent = serializers.CharField(max_length=40, help_text="agt_…: as which programs of its people act.")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(list(AGENT_SCOPES)),
        min_length=1,
        max_length=len(AGENT_SCOPES),
        help_text="At most these.",
    )
    tools = serializers.ListField(
        child=serializers.CharField(max_length=assertion_rules.MAX_TOOL_NAME),
        min_length=1,
        max_length=MAX_TOOLS,
        required=False,
        default=None,
        allow_null=True,
        help_text="Ids of tools, and only these; null: all that the agent is given, now and later.",
    )
    token_minutes = serializers.IntegerField(
        min_value=1, help_text="So long a token is good, and no longer than those of other connections."
    )


ISSUER = build_envelope_serializer("TrustedIssuerEnvelope", TrustedIssuerSerializer())
ISSUERS = build_page_serializer("TrustedIssuerPage", "issuers", TrustedIssuerSerializer)
SUBJECT = build_envelope_serializer("IssuerSubjectEnvelope", MappedSubjectSerializer())
SUBJECTS = build_page_serializer("IssuerSubjectPage", "subjects", MappedSubjectSerializer)
TRUST = OpenApiExample(
    "Keycloak",
    value={
        "issuer": "https://idp.example.org/realms/main",
        "audience": "toolhub",
        "jwks_url": "https://idp.example.org/realms/main/protocol/openid-connect/certs",
    },
    request_only=True,
)
VOUCH = OpenApiExample(
    "Reading and calling, an hour at most",
    value={
        "agent": "agt_01kc8q4m7tfxzv3r5m0b6g8h9j",
        "scopes": ["tools:read", "invocations:create"],
        "token_minutes": 60,
    },
    request_only=True,
)
MAP = OpenApiExample(
    "A service account",
    value={
        "subject": "service-account-buyer",
        "agent": "agt_01kc8q4m7tfxzv3r5m0b6g8h9j",
        "scopes": ["tools:read", "invocations:create"],
    },
    request_only=True,
)


def _rule_json(row: TrustedIssuer) -> dict[str, Any] | None:
    rule: AssertionRule | None = getattr(row, "assertion_rule", None)
    if rule is None:
        return None
    return {
        "agent": encode("agt", rule.agent_id),
        "scopes": rule.scopes,
        "tools": rule.tools,
        "token_minutes": rule.token_minutes,
    }


def issuer_json(row: TrustedIssuer) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "issuer": row.issuer,
        "audience": row.audience,
        "jwks_url": row.jwks_url or None,
        "jwks": {"keys": [key.as_dict(private=False) for key in read_keys(row.jwks)]} if row.jwks else None,
        "state": "distrusted" if row.disabled_at else "trusted",
        "assertion_rule": _rule_json(row),
        "created_by": row.created_by,
        "created_at": row.created_at.isoformat(),
        "disabled_at": row.disabled_at.isoformat() if row.disabled_at else None,
    }


def subject_json(row: AgentIdentity) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "subject": row.subject,
        "agent": encode("agt", row.agent_id),
        "scopes": row.scopes,
        "created_at": row.created_at.isoformat(),
    }


def _agent_id(text: str) -> UUID:
    try:
        return decode("agt", text)
    except ValueError as error:
        raise NotFound("There is no agent with this id.") from error


def _issuer(request: Request, issuer_id: UUID) -> TrustedIssuer:
    rows = TrustedIssuer.objects.select_related("assertion_rule")
    return rows.get(pk=issuer_id, tenant_id=get_caller(request).tenant_id)


def _answer(data: Any, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=data).to_json(), status=status)


class IssuerListView(Endpoint):
    """The identity providers whose tokens the tenant accepts, or did; trusting one, also again."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "iss"

    @extend_schema(operation_id="list_issuers", responses={200: ISSUERS})
    def get(self, request: Request) -> Response:
        rows = TrustedIssuer.objects.filter(tenant_id=get_caller(request).tenant_id).select_related("assertion_rule")
        page = self.page_of(rows)
        return _answer({"issuers": [issuer_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(operation_id="trust_issuer", request=NewIssuerSerializer, responses={201: ISSUER}, examples=[TRUST])
    def post(self, request: Request) -> Response:
        data = read_body(request, NewIssuerSerializer)
        return _answer(issuer_json(issuers.trust_issuer(by=get_caller(request), **data)), status=201)


class IssuerView(Endpoint):
    """One identity provider; another audience or other keys for it, which takes managing the agents of its subjects too."""

    required_scope = SCOPE
    conditional = True

    @extend_schema(operation_id="read_issuer", responses={200: ISSUER})
    def get(self, request: Request, issuer_id: UUID) -> Response:
        return _answer(issuer_json(_issuer(request, issuer_id)))

    @extend_schema(operation_id="change_issuer", request=IssuerKeysSerializer, responses={200: ISSUER})
    def put(self, request: Request, issuer_id: UUID) -> Response:
        data = read_body(request, IssuerKeysSerializer)
        row = issuers.change_issuer(issuer_id=issuer_id, by=get_caller(request), **data)
        return _answer(issuer_json(row))


IssuerDistrustView = ActionTable(__name__, SCOPE, ISSUER, issuer_json).build_view(
    "distrust_issuer", issuers.distrust_issuer, "Refuse its tokens from the next request on."
)


class IssuerAssertionRuleView(Endpoint):
    """What the identity provider may vouch for without a page (ID-JAG); for another agent with ``agents:manage``, too."""

    required_scope = SCOPE

    @extend_schema(
        operation_id="set_issuer_assertion_rule",
        request=NewAssertionRuleSerializer,
        responses={200: ISSUER},
        examples=[VOUCH],
    )
    def post(self, request: Request, issuer_id: UUID) -> Response:
        found = _issuer(request, issuer_id)
        data = read_body(request, NewAssertionRuleSerializer)
        agent_id = _agent_id(data.pop("agent"))
        assertion_rules.set_assertion_rule(issuer_id=found.pk, agent_id=agent_id, by=get_caller(request), **data)
        return _answer(issuer_json(_issuer(request, issuer_id)))


IssuerAssertionRuleEndView = ActionTable(__name__, SCOPE, ISSUER, issuer_json).build_view(
    "end_issuer_assertion_rule",
    assertion_rules.end_assertion_rule,
    "Let it vouch for nobody any more, and end what it has opened.",
    body=None,
)


class IssuerSubjectListView(Endpoint):
    """Which subjects of an issuer's tokens speak for which agents; mapping one, to another agent with ``agents:manage`` too."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "idn"

    @extend_schema(operation_id="list_issuer_subjects", responses={200: SUBJECTS})
    def get(self, request: Request, issuer_id: UUID) -> Response:
        rows = AgentIdentity.objects.filter(issuer=_issuer(request, issuer_id))
        page = self.page_of(rows)
        return _answer({"subjects": [subject_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(
        operation_id="map_issuer_subject", request=NewSubjectSerializer, responses={201: SUBJECT}, examples=[MAP]
    )
    def post(self, request: Request, issuer_id: UUID) -> Response:
        found = _issuer(request, issuer_id)
        data = read_body(request, NewSubjectSerializer)
        row = issuers.map_identity(
            issuer_id=found.pk,
            subject=data["subject"],
            agent_id=_agent_id(data["agent"]),
            scopes=data["scopes"],
            by=get_caller(request),
        )
        return _answer(subject_json(row), status=201)


class IssuerSubjectRemoveView(Endpoint):
    """Let a subject speak for nobody, from the next request on."""

    required_scope = SCOPE

    @extend_schema(operation_id="unmap_issuer_subject", request=None, responses={204: None})
    def post(self, request: Request, issuer_id: UUID, identity_id: UUID) -> Response:
        found = AgentIdentity.objects.get(pk=identity_id, issuer=_issuer(request, issuer_id))
        issuers.unmap_identity(identity_id=found.pk, by=get_caller(request))
        return Response(status=204)
