"""Replays over REST: how they are requested and read. By people only: a replay opens values that were stored of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Q
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.members.api import PeopleView
from invocations.models import Invocation
from invocations.replays import services
from invocations.replays.models import OF_PERIODS, Replay, Rerun, What
from invocations.replays.reconstruction import choose_verdict, reconstruct_call
from kernel.database.connections import one_snapshot
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import decode, encode
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from kernel.http.endpoints import Endpoint

REPLAY = "invocations.replay"


class ReplayAskSerializer(StrictSerializer):
    reason = serializers.CharField(max_length=500, help_text="At least 10 characters; kept as evidence.")
    version = serializers.CharField(
        max_length=64,
        required=False,
        default="",
        help_text="Run this version, not the recorded one: approved, or under your review.",
    )
    todays_image = serializers.BooleanField(
        required=False, default=False, help_text="Run in the sandbox image of today instead of the recorded one."
    )


class PeriodAskSerializer(ReplayAskSerializer):
    what = serializers.ChoiceField([str(each) for each in OF_PERIODS])
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="Not included.")
    tool = serializers.CharField(max_length=128, required=False, default="")
    most = serializers.IntegerField(min_value=1, required=False, default=100, help_text="Calls.")
    policy = serializers.CharField(
        max_length=40, required=False, default="", help_text="Decide with this policy (pol_…), a draft too."
    )


class ReplaySerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    what = serializers.ChoiceField(What.values)
    state = serializers.CharField()
    verdict = serializers.CharField(allow_null=True, help_text="Of one call.")
    invocation = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True)
    tool = serializers.CharField(allow_blank=True)
    version = serializers.CharField(allow_null=True)
    policy = serializers.CharField(allow_null=True)
    reason = serializers.CharField()
    asked_by = serializers.CharField()
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    result = serializers.JSONField()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class RerunSerializer(serializers.Serializer[Any]):
    invocation = serializers.CharField()
    number = serializers.IntegerField(help_text="Of the reruns of this call, from 1.")
    verdict = serializers.CharField()
    why = serializers.CharField(allow_null=True, help_text="Why it cannot be run again.")
    notes = serializers.ListField(child=serializers.CharField())
    version = serializers.CharField()
    image = serializers.CharField(allow_null=True)
    runs = serializers.IntegerField()
    state = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_null=True)
    differences = serializers.IntegerField(help_text="Places of the output; the console shows which, to auditors.")


class ReplayFindingSerializer(serializers.Serializer[Any]):
    field = serializers.CharField()
    verdict = serializers.ChoiceField(["equal", "differs", "not_kept"])
    facts = serializers.CharField(allow_blank=True)
    row = serializers.CharField(allow_blank=True)


class ReconstructionSerializer(serializers.Serializer[Any]):
    invocation = serializers.CharField()
    verdict = serializers.ChoiceField(["equal", "differs"])
    findings = ReplayFindingSerializer(many=True)


ONE = build_envelope_serializer("ReplayEnvelope", ReplaySerializer())
MANY = build_page_serializer("ReplayPage", "replays", ReplaySerializer)
CALLS = build_page_serializer("Reruns", "calls", RerunSerializer)
A_DAY = OpenApiExample(
    "A day under another policy",
    value={
        "what": "decisions",
        "since": "2026-11-21T00:00:00Z",
        "until": "2026-11-22T00:00:00Z",
        "most": 10_000,
        "policy": "pol_01kaz4j3e8f1xr5v9s0h7dqm2c",
        "reason": "before the stricter policy is published",
    },
    request_only=True,
)


def replay_json(row: Replay) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "what": row.what,
        "state": row.state,
        "verdict": row.verdict or None,
        "invocation": encode("inv", row.invocation_id) if row.invocation_id else None,
        "since": row.since,
        "until": row.until,
        "tool": row.tool,
        "version": row.version.version if row.version else None,
        "policy": row.policy.wire_id if row.policy else None,
        "reason": row.reason,
        "asked_by": row.asked_by,
        "done": row.done,
        "total": row.total,
        "result": row.result,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
    }


def rerun_json(row: Rerun) -> dict[str, Any]:
    return {
        "invocation": encode("inv", row.invocation_id),
        "number": row.number,
        "verdict": row.verdict,
        "why": row.why or None,
        "notes": row.notes,
        "version": row.version,
        "image": row.image or None,
        "runs": row.runs,
        "state": row.state or None,
        "reason": row.problem or None,
        "differences": row.differences,
    }


def _page(of: Endpoint, request: Request, only: Q) -> Response:
    rows = Replay.objects.visible_to(get_caller(request)).filter(only).select_related("version", "policy")
    page = of.page_of(rows)
    data = {"replays": [replay_json(row) for row in page.rows], "next": page.next or None}
    return Response(ResponseEnvelope(data=data).to_json())


def _answer(row: Replay, status: int = 200) -> Response:
    response = Response(ResponseEnvelope(data=replay_json(row)).to_json(), status=status)
    if status == 202:
        response["Location"] = f"/api/v1/replays/{row.wire_id}"
        response["Retry-After"] = "2"
    return response


class _ReplayView(PeopleView):
    required_scope: dict[str, str | None] = {"GET": None, "POST": None, "DELETE": None}
    required_permission = REPLAY


class InvocationReplaysView(_ReplayView):
    """One call, gone through again: rebuilt from its facts, decided again, run again in a box that reaches nothing."""

    required_scope = {"GET": None, "POST": None}
    query = PageSerializer
    cursor = "rpl"

    @extend_schema(operation_id="list_replays_of_invocation", responses={200: MANY})
    def get(self, request: Request, invocation_id: UUID) -> Response:
        invocation = Invocation.objects.visible_to(get_caller(request)).get(pk=invocation_id)
        return _page(self, request, Q(invocation=invocation))

    @extend_schema(operation_id="replay_invocation", request=ReplayAskSerializer, responses={202: ONE})
    def post(self, request: Request, invocation_id: UUID) -> Response:
        said = read_body(request, ReplayAskSerializer)
        return _answer(services.replay_call(invocation_id=invocation_id, by=get_caller(request), **said), 202)


class InvocationReconstructionView(_ReplayView):
    """What the facts of a call say, field by field beside what is stored of it. No value is opened, nothing is written."""

    required_scope = {"GET": None}
    required_permission = "evidence.view"

    @extend_schema(
        operation_id="reconstruct_invocation",
        responses={200: build_envelope_serializer("ReconstructionEnvelope", ReconstructionSerializer())},
    )
    def get(self, request: Request, invocation_id: UUID) -> Response:
        rows = Invocation.objects.visible_to(get_caller(request)).select_related("version", "values_key__tenant_key")
        with one_snapshot():
            invocation = rows.get(pk=invocation_id)
            findings = reconstruct_call(invocation, opened=False)
        data = {
            "invocation": invocation.wire_id,
            "verdict": choose_verdict(findings),
            "findings": [each.to_json() for each in findings],
        }
        return Response(ResponseEnvelope(data=data).to_json())


class ReplaysView(_ReplayView):
    """Replays of the tenant, newest first; and a new one of the calls of a period."""

    required_scope = {"GET": None, "POST": None}
    query = PageSerializer
    cursor = "rpl"

    @extend_schema(operation_id="list_replays", responses={200: MANY})
    def get(self, request: Request) -> Response:
        return _page(self, request, Q())

    @extend_schema(operation_id="replay_period", request=PeriodAskSerializer, responses={202: ONE}, examples=[A_DAY])
    def post(self, request: Request) -> Response:
        said = read_body(request, PeriodAskSerializer)
        policy = said.pop("policy")
        try:
            policy_id = decode("pol", policy) if policy else None
        except ValueError as error:
            raise SchemaInvalid.at("/policy", "This is not the id of a policy (pol_…).") from error
        return _answer(services.replay_period(policy_id=policy_id, by=get_caller(request), **said), 202)


class ReplayView(_ReplayView):
    """How far a replay is, and what it has found; ending one. Ask again until its state is ``ended``."""

    required_scope = {"GET": None, "DELETE": None}

    @extend_schema(operation_id="read_replay", responses={200: ONE})
    def get(self, request: Request, replay_id: UUID) -> Response:
        rows = Replay.objects.visible_to(get_caller(request)).select_related("version", "policy")
        return _answer(rows.get(pk=replay_id))

    @extend_schema(operation_id="cancel_replay", responses={200: ONE})
    def delete(self, request: Request, replay_id: UUID) -> Response:
        return _answer(services.cancel_replay(replay_id=replay_id, by=get_caller(request)))


class ReplayCallsView(_ReplayView):
    """The calls of a replay that were run again, with the verdict of each."""

    required_scope = {"GET": None}
    query = PageSerializer
    cursor = "rrn"

    @extend_schema(operation_id="list_reruns", responses={200: CALLS})
    def get(self, request: Request, replay_id: UUID) -> Response:
        replay = Replay.objects.visible_to(get_caller(request)).get(pk=replay_id)
        page = self.page_of(replay.reruns.all())
        data = {"calls": [rerun_json(row) for row in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())
