"""Agent run answer serializers: what the OpenAPI document says of a run."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from invocations.agent_runs.models import AgentRunState, AgentRunStepRole, AgentRunStepState, StopReason
from invocations.answer.answer_serializers import EnvelopeSerializer


class RunCallSerializer(serializers.Serializer[Any]):
    call_id = serializers.CharField()
    url = serializers.CharField(help_text="Where its answer is.")


class RunStepSerializer(serializers.Serializer[Any]):
    """One call of the model, or of a tool that it proposed."""

    turn = serializers.IntegerField()
    role = serializers.ChoiceField(AgentRunStepRole.values)
    tool = serializers.CharField()
    state = serializers.ChoiceField([*AgentRunStepState.values, "held"])
    tries = serializers.IntegerField()
    reason = serializers.CharField(allow_null=True)
    cost_micros = serializers.IntegerField(allow_null=True, help_text="Null: no price is known.")
    call = RunCallSerializer(allow_null=True)


class RunLimitsSerializer(serializers.Serializer[Any]):
    steps = serializers.IntegerField()
    cost_micros = serializers.IntegerField(allow_null=True)
    seconds = serializers.IntegerField()
    equal_calls = serializers.IntegerField()


class RunFinalAnswerSerializer(serializers.Serializer[Any]):
    """What the model has answered last."""

    text = serializers.CharField(required=False, allow_blank=True)
    output = serializers.JSONField(required=False, help_text="By the schema that was asked for.")
    finish_reason = serializers.CharField(required=False)
    model = serializers.CharField(required=False)


class RunAnswerSerializer(serializers.Serializer[Any]):
    """A run: its state, its steps, and at the end the model's answer."""

    run_id = serializers.CharField()
    state = serializers.ChoiceField(AgentRunState.values)
    stop_reason = serializers.ChoiceField(StopReason.values, allow_null=True)
    waits_for_a_person = serializers.BooleanField()
    cancel_asked = serializers.BooleanField()
    model = serializers.CharField()
    limits = RunLimitsSerializer()
    cost_micros = serializers.IntegerField()
    unpriced_calls = serializers.IntegerField()
    request_id = serializers.CharField()
    steps = RunStepSerializer(many=True)
    answer = RunFinalAnswerSerializer(allow_null=True)
    trace_id = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class RunEnvelopeSerializer(EnvelopeSerializer):
    """What a run answers; ``error`` says why it has come to no answer."""

    data = RunAnswerSerializer()  # type: ignore[assignment]
