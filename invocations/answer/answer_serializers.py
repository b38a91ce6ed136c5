"""Answer serializers: what the OpenAPI document says of an answered call, so that programs made from it know its fields.

Answers themselves are written by :mod:`invocations.answer.envelope` and ``ResponseEnvelope``; the tests hold both together.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from access.models import BudgetScope, Dimension
from invocations.models import Resolution, State
from kernel.http.base_serializers import ObjectField

CALL_STATUS = ("ok", "denied", "error", "pending")


@extend_schema_field({"allOf": [{"$ref": "#/components/schemas/Error"}], "nullable": True})
class ErrorField(serializers.JSONField):
    """The problem, as in ``Problem``; null where there is none."""


class SourceSerializer(serializers.Serializer[Any]):
    type = serializers.CharField()
    name = serializers.CharField()
    hash = serializers.CharField()
    ts = serializers.DateTimeField()
    version = serializers.CharField(required=False)


class EvidenceSerializer(serializers.Serializer[Any]):
    snapshot_id = serializers.CharField(allow_null=True)
    sources = SourceSerializer(many=True)


class BudgetLineSerializer(serializers.Serializer[Any]):
    """A budget that a call counts against, as it was before the call. A rate has neither use nor end."""

    budget = serializers.CharField()
    scope = serializers.ChoiceField(BudgetScope.choices)
    of = serializers.CharField(allow_null=True, help_text="Whose it is: a tool, an agent.")
    dimension = serializers.ChoiceField(Dimension.choices)
    limit = serializers.IntegerField()
    window_s = serializers.IntegerField(allow_null=True)
    used = serializers.IntegerField(required=False)
    reserved = serializers.IntegerField(required=False)
    remaining = serializers.IntegerField(required=False)
    takes = serializers.IntegerField(required=False)
    resets_at = serializers.DateTimeField(required=False, allow_null=True)


class CallArtifactSerializer(serializers.Serializer[Any]):
    """Something that the call has left, and the link to it, which is good for a day."""

    id = serializers.CharField()
    name = serializers.CharField()
    media_type = serializers.CharField()
    bytes = serializers.IntegerField()
    digest = serializers.CharField()
    summary = serializers.CharField(allow_blank=True)
    url = serializers.CharField()


class ProgressSerializer(serializers.Serializer[Any]):
    fraction = serializers.FloatField(allow_null=True)
    message = serializers.CharField(required=False, allow_blank=True)
    at = serializers.DateTimeField(required=False)


class LiveLineSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    text = serializers.CharField(allow_blank=True)


class LiveSerializer(serializers.Serializer[Any]):
    """What a tool says while it runs."""

    progress = ProgressSerializer(allow_null=True)
    log = LiveLineSerializer(many=True)


class HeldSerializer(serializers.Serializer[Any]):
    """For which consent or whose account a call waits, and where a person sees to it: ``url`` is the account's page while that is
    missing, and the consent's is ``consent_url`` then."""

    consent = serializers.CharField(required=False)
    account = serializers.CharField(required=False)
    url = serializers.CharField()
    consent_url = serializers.CharField(required=False)
    until = serializers.DateTimeField(allow_null=True)


class CallSerializer(serializers.Serializer[Any]):
    """The call that an answer is about."""

    call_id = serializers.CharField()
    status = serializers.ChoiceField(CALL_STATUS)
    state = serializers.ChoiceField(State.choices)
    tool = serializers.CharField()
    version = serializers.CharField(allow_null=True)
    dry_run = serializers.BooleanField()
    request_id = serializers.CharField()
    profile_hash = serializers.CharField(allow_null=True)
    policy_version = serializers.CharField(allow_null=True)
    budget = BudgetLineSerializer(many=True, allow_null=True)
    obligations = serializers.ListField(child=ObjectField(), help_text="What was done to the output.")
    artifacts = CallArtifactSerializer(many=True)
    post_execution_plan = serializers.JSONField(allow_null=True, help_text="What the tool proposes to do next.")
    trace_id = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    proposed_by = serializers.CharField(required=False, help_text="The answer of a model that proposed it.")
    proposed_calls = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="The calls that it has proposed, once it is read again.",
    )
    resolution = serializers.ChoiceField(Resolution.values, required=False)
    live = LiveSerializer(required=False)
    refused_at = serializers.CharField(required=False, help_text="The step that refused it.")
    held = HeldSerializer(required=False)


class EnvelopeSerializer(serializers.Serializer[Any]):
    """SPEC-4: what stands around every answer."""

    ok = serializers.BooleanField()
    data = serializers.JSONField(allow_null=True)  # type: ignore[assignment]
    warnings = serializers.ListField(child=serializers.CharField())
    error = ErrorField(allow_null=True)
    ttl_seconds = serializers.IntegerField(allow_null=True)
    evidence = EvidenceSerializer()


class CallEnvelopeSerializer(EnvelopeSerializer):
    """What a call answers: the tool's value in ``data``, by the tool's output schema, and the call itself."""

    call = CallSerializer()
