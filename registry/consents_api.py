"""How does an agent ask for consent to use a tool?

Lives here because asking needs the tool: its major version and how long its manifest lets a consent last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.api import CONSENT, CONSENTS, consent_json
from access.consents import WIDTH, request_consent, versions_of
from access.models import Consent, ConsentMode, ConsentState
from access.policies.clauses import Effect
from access.problems import ConsentNotNeeded
from evidence.services import fingerprint
from registry.callability import check_callable, check_known
from registry.standing import load_standing
from toolhub.kernel.api import body_of, caller
from toolhub.kernel.endpoints import Endpoint
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.problems import SchemaInvalid
from toolhub.kernel.serializers import PageSerializer, StrictSerializer

if TYPE_CHECKING:
    from rest_framework.request import Request

    from registry.compiled import CompiledVersion
    from registry.standing import Standing


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
        required=False, allow_null=True, default=None, min_value=60, help_text="Less than the manifest lets it hold."
    )
    user_id = serializers.CharField(
        max_length=128, required=False, default="", allow_blank=True, help_text="Only for calls on behalf of this user."
    )


def widest_for(version: CompiledVersion, standing: Standing) -> tuple[str, int]:
    """The widest consent that a call of this tool may rest on, and how long it may hold.

    Which rules of a policy ask for a consent depends on the call; what any of them could ask for is enough to let somebody
    ask in advance. Each call then looks again.
    """
    demands = [rule.consent for layer in standing.layers for rule in layer.rules if rule.effect == Effect.CONSENT]
    modes = [version.manifest.consent_scope] if version.needs_consent else [demand["mode"] for demand in demands]
    if not modes:
        raise ConsentNotNeeded(f"{version.manifest.id} needs no consent; a grant is enough.")
    return max(modes, key=lambda mode: WIDTH[ConsentMode(mode)]), version.manifest.consent_validity_s


def validity_of(asked: int | None, *, longest: int) -> int:
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
        mine = Consent.objects.visible_to(caller(request)).filter(agent_id=caller(request).agent())
        if asked.get("tool"):
            mine = mine.filter(tool=asked["tool"])
        page = self.page_of(mine.in_state(asked.get("state", "")), prefix="cns")
        data = {"consents": [consent_json(consent) for consent in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="request_consent", request=ConsentRequestSerializer, responses={201: CONSENT})
    def post(self, request: Request) -> Response:
        said, by = body_of(request, ConsentRequestSerializer), caller(request)
        standing = load_standing(tenant_id=by.tenant_id, agent_id=by.agent(), tool=said["tool"], now=timezone.now())
        check_known(standing)
        version = check_callable(standing)
        widest, longest = widest_for(version, standing)
        user = said["user_id"].encode()
        consent = request_consent(
            tool=said["tool"],
            versions=versions_of(version.manifest.version),
            purpose=said["purpose"],
            validity_s=validity_of(said["validity_s"], longest=longest),
            mode=said["mode"],
            widest=widest,
            data_classes=version.manifest.data_classes,
            user_fingerprint=fingerprint(user, tenant_id=by.tenant_id) if user else "",
            by=by,
        )
        return Response(
            ResponseEnvelope(data=consent_json(consent)).to_json(),
            status=201,
            headers={"Location": f"/api/v1/consents/{consent.wire_id}"},
        )
