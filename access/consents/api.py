"""How does an agent ask for consent to use a tool?

Lives here because asking needs the tool: its major version and how long its manifest lets a consent last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.consents.serializers import CONSENT, CONSENTS, consent_json
from access.consents.services import WIDTH, request_consent, version_range
from access.models import Consent, ConsentMode, ConsentState
from access.policies.clauses import RuleEffect
from access.problems import ConsentNotNeeded
from evidence.services import compute_fingerprint
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import PageSerializer, StrictSerializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.problems import SchemaInvalid
from registry.decision_context import load_decision_context
from registry.tools.callability import check_callable, check_known

if TYPE_CHECKING:
    from rest_framework.request import Request

    from registry.decision_context import DecisionContext
    from registry.versions.compiler import CompiledVersion


class ConsentRequestSerializer(StrictSerializer):
    tool = serializers.CharField(max_length=128)
    purpose = serializers.CharField(max_length=500, help_text="What for. The person who decides reads it.")
    mode = serializers.ChoiceField(
        choices=ConsentMode.choices,
        required=False,
        default=ConsentMode.PERIOD,
        help_text="For a time, or standing: until it is revoked. One for a single call is asked for with the call.",
    )
    validity_s = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=60, help_text="At most what the manifest lets it hold."
    )
    user_id = serializers.CharField(
        max_length=128, required=False, default="", allow_blank=True, help_text="Only for calls on behalf of this user."
    )


def widest_consent(version: CompiledVersion, standing: DecisionContext) -> tuple[str, int]:
    """The widest consent that a call of this tool may rest on, and how long it may hold.

    Which rules of a policy ask for a consent depends on the call; what any of them could ask for is enough to let somebody
    ask in advance. Each call then looks again.
    """
    demands = [rule.consent for layer in standing.layers for rule in layer.rules if rule.effect == RuleEffect.CONSENT]
    modes = [version.manifest.consent_scope] if version.needs_consent else [demand["mode"] for demand in demands]
    if not modes:
        raise ConsentNotNeeded(f"{version.manifest.id} needs no consent; a grant is enough.")
    return max(modes, key=lambda mode: WIDTH[ConsentMode(mode)]), version.manifest.consent_validity_s


def choose_validity(asked: int | None, *, longest: int) -> int:
    """What was asked for; as long as may be, where nothing was."""
    if asked is not None and asked > longest:
        raise SchemaInvalid.at(
            "/validity_s", f"A consent for this tool holds for {longest:,} seconds at most. Ask for that or less."
        )
    return asked or longest


class ConsentQuerySerializer(PageSerializer):
    state = serializers.ChoiceField(ConsentState.values, required=False)
    tool = serializers.CharField(required=False, help_text="The id of a tool.")


class ConsentListView(Endpoint):
    """The agent's own consents; asking for one."""

    required_scope = "consents:request"
    query = ConsentQuerySerializer

    @extend_schema(
        operation_id="list_consents",
        responses={200: CONSENTS},
    )
    def get(self, request: Request) -> Response:
        asked = self.asked
        mine = Consent.objects.visible_to(get_caller(request)).filter(agent_id=get_caller(request).agent())
        if asked.get("tool"):
            mine = mine.filter(tool=asked["tool"])
        page = self.page_of(mine.in_state(asked.get("state", "")), prefix="cns")
        data = {"consents": [consent_json(consent) for consent in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="request_consent", request=ConsentRequestSerializer, responses={201: CONSENT})
    def post(self, request: Request) -> Response:
        said, by = read_body(request, ConsentRequestSerializer), get_caller(request)
        standing = load_decision_context(tenant_id=by.tenant_id, agent_id=by.agent(), tool=said["tool"])
        check_known(standing)
        version = check_callable(standing)
        widest, longest = widest_consent(version, standing)
        user = said["user_id"].encode()
        consent = request_consent(
            tool=said["tool"],
            versions=version_range(version.manifest.version),
            purpose=said["purpose"],
            validity_s=choose_validity(said["validity_s"], longest=longest),
            mode=said["mode"],
            widest=widest,
            data_classes=version.manifest.data_classes,
            user_fingerprint=compute_fingerprint(user, tenant_id=by.tenant_id) if user else "",
            by=by,
        )
        return Response(
            ResponseEnvelope(data=consent_json(consent)).to_json(),
            status=201,
            headers={"Location": f"/api/v1/consents/{consent.wire_id}"},
        )
