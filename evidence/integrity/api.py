"""Integrity over REST: the state of the log, and verifications of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from evidence.integrity.alarms import Alarm, list_alarms, verification_for
from evidence.integrity.services import ask_verification
from evidence.integrity.state import load_integrity_state
from evidence.log.origins import log_name
from evidence.models import Verification, VerificationState
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import encode

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from rest_framework.request import Request

READ, EXPORT = "evidence:read", "evidence:export"


class RangeSerializer(StrictSerializer):
    start = serializers.IntegerField(required=False, default=0, min_value=0, help_text="The first leaf.")
    stop = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, help_text="The leaf after the last; all without it."
    )


class LogFindingSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="What is wrong.")
    index = serializers.IntegerField(allow_null=True, help_text="At which leaf. Null: of the log as a whole.")
    detail = serializers.CharField(allow_blank=True)


class VerificationSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    state = serializers.ChoiceField(VerificationState.choices)
    continuous = serializers.BooleanField(help_text="A pass of the verifier itself; else somebody asked for it.")
    start = serializers.IntegerField()
    stop = serializers.IntegerField(allow_null=True)
    position = serializers.IntegerField(help_text="The leaves before this one were looked at.")
    first_bad = serializers.IntegerField(allow_null=True, help_text="The lowest leaf index that something is wrong at.")
    found = serializers.IntegerField()
    findings = LogFindingSerializer(many=True)
    found_at = serializers.DateTimeField(allow_null=True, help_text="When something new was found, the last time.")
    closed_by = serializers.CharField(
        allow_null=True, help_text="The later verification of the whole log that found nothing of it."
    )
    begun_at = serializers.DateTimeField()
    checked_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class EvidenceAlarmSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    log = serializers.CharField(help_text="`ten_…`; of what all tenants share `checkpoints` or `hub`.")
    verification = serializers.CharField(allow_null=True, help_text="The one that found it.")
    said = serializers.CharField()
    since = serializers.DateTimeField()


class IntegritySerializer(serializers.Serializer[Any]):
    origin = serializers.CharField(allow_null=True)
    size = serializers.IntegerField(help_text="How many facts the log holds.")
    checkpoint = serializers.CharField(allow_null=True, help_text="The newest one, a signed note. Keep it.")
    keys = serializers.ListField(child=serializers.CharField(), help_text="Public keys (vkeys), old ones too.")
    signed_at = serializers.DateTimeField(allow_null=True)
    pending = serializers.IntegerField(help_text="Facts that are in no log yet.")
    pending_since = serializers.DateTimeField(allow_null=True)
    open_calls = serializers.IntegerField(help_text="Calls that began and have not ended.")
    alarms = EvidenceAlarmSerializer(many=True)
    verification = VerificationSerializer(allow_null=True, help_text="The continuous one.")
    verified = VerificationSerializer(allow_null=True, help_text="The last continuous one that came to its end.")


INTEGRITY = build_envelope_serializer("IntegrityEnvelope", IntegritySerializer())
ONE = build_envelope_serializer("VerificationEnvelope", VerificationSerializer())
PAGE = build_page_serializer("VerificationPage", "verifications", VerificationSerializer)


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def verification_json(row: Verification) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "state": row.state,
        "continuous": not row.asked_by,
        "start": row.start,
        "stop": row.stop,
        "position": row.position,
        "first_bad": row.first_bad,
        "found": row.found,
        "findings": [{name: each[name] for name in ("code", "index", "detail")} for each in row.findings],
        "found_at": _time(row.found_at),
        "closed_by": encode("ver", row.closed_by_id) if row.closed_by_id else None,
        "begun_at": _time(row.begun_at),
        "checked_at": _time(row.checked_at),
        "finished_at": _time(row.finished_at),
    }


def _alarm_json(alarm: Alarm) -> dict[str, Any]:
    return {
        "kind": alarm.kind,
        "log": log_name(alarm.log),
        "verification": alarm.verification.wire_id if alarm.verification else None,
        "said": alarm.said,
        "since": _time(alarm.since),
    }


def _answer(data: Any, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=data).to_json(), status=status)


class IntegrityView(Endpoint):
    """Whether the tenant's log is whole: its newest checkpoint, what waits for it, what the verifier found, and alarms."""

    required_scope = READ

    @extend_schema(operation_id="read_integrity", responses={200: INTEGRITY})
    def get(self, request: Request) -> Response:
        tenant_id = get_caller(request).tenant_id
        state = load_integrity_state(tenant_id)
        return _answer(
            {
                "origin": state.log.origin if state.log else None,
                "size": state.log.size if state.log else 0,
                "checkpoint": state.newest.note if state.newest else None,
                "keys": state.keys,
                "signed_at": _time(state.sealing.signed_at),
                "pending": state.sealing.pending,
                "pending_since": _time(state.sealing.oldest),
                "open_calls": state.open_count,
                "alarms": [_alarm_json(each) for each in list_alarms(tenant_id)],
                "verification": verification_json(state.passing) if state.passing else None,
                "verified": verification_json(state.passed) if state.passed else None,
            }
        )


class VerificationListView(Endpoint):
    """Verifications of the tenant's log, the newest first; asking for one of a range, which the keeper makes in the background."""

    required_scope = {"GET": READ, "POST": EXPORT}
    query = PageSerializer
    cursor = "ver"

    @extend_schema(operation_id="list_verifications", responses={200: PAGE})
    def get(self, request: Request) -> Response:
        rows = Verification.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        return _answer({"verifications": [verification_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(operation_id="ask_verification", request=RangeSerializer, responses={202: ONE})
    def post(self, request: Request) -> Response:
        row = ask_verification(by=get_caller(request), **read_body(request, RangeSerializer))
        return _answer(verification_json(row), status=202)


class VerificationView(Endpoint):
    required_scope = READ

    @extend_schema(operation_id="read_verification", responses={200: ONE})
    def get(self, request: Request, verification_id: UUID) -> Response:
        """One verification, with what it found: of the tenant's log, or of a log that all tenants share."""
        return _answer(verification_json(verification_for(get_caller(request), verification_id)))
