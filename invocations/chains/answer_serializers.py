"""Chain answer serializers: what the OpenAPI document says of a chain, and of a plan that is only asked about."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from access.models import BudgetScope, Dimension
from invocations.answer.answer_serializers import EnvelopeSerializer, ErrorField
from invocations.chains.models import ChainState, StepRole, StepState
from invocations.models import State


class ChainCallSerializer(serializers.Serializer[Any]):
    """The last call that was made for a step."""

    call_id = serializers.CharField()
    state = serializers.ChoiceField(State.choices)
    url = serializers.CharField(help_text="Where its answer is.")


class ChainCompensationSerializer(serializers.Serializer[Any]):
    """The call that undoes what a step did."""

    id = serializers.CharField()
    tool = serializers.CharField()
    state = serializers.ChoiceField(StepState.choices)
    tries = serializers.IntegerField()
    reason = serializers.CharField(allow_null=True)
    call = ChainCallSerializer(allow_null=True)


class ChainStepSerializer(ChainCompensationSerializer):
    """One call of the plan."""

    compensation = ChainCompensationSerializer(required=False)


class ChainAnswerSerializer(serializers.Serializer[Any]):
    """A chain: names, states and addresses. What a step has delivered is in the answer of its call."""

    chain_id = serializers.CharField()
    state = serializers.ChoiceField(ChainState.choices)
    waits_for_a_person = serializers.BooleanField()
    cancel_asked = serializers.BooleanField()
    dry_run = serializers.BooleanField()
    request_id = serializers.CharField()
    steps = ChainStepSerializer(many=True)
    trace_id = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ChainEnvelopeSerializer(EnvelopeSerializer):
    """What a chain answers; ``error`` says why it has not come to its end."""

    data = ChainAnswerSerializer()  # type: ignore[assignment]


class PlanCheckSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    status = serializers.CharField()
    ms = serializers.FloatField()


class ExaminedStepSerializer(serializers.Serializer[Any]):
    """A call of the plan, judged alone."""

    id = serializers.CharField()
    role = serializers.ChoiceField(StepRole.values)
    tool = serializers.CharField()
    version = serializers.CharField(allow_null=True)
    allow = serializers.BooleanField()
    problems = serializers.ListField(child=ErrorField())
    warnings = serializers.ListField(child=serializers.CharField())
    arguments_known = serializers.BooleanField(help_text="False: they come from an earlier step.")
    checks = PlanCheckSerializer(many=True)


class PlanBudgetSerializer(serializers.Serializer[Any]):
    budget = serializers.CharField()
    scope = serializers.ChoiceField(BudgetScope.choices)
    of = serializers.CharField(allow_null=True)
    dimension = serializers.ChoiceField(Dimension.choices)
    remaining = serializers.IntegerField()
    takes = serializers.IntegerField(help_text="By all steps together.")


class PlanExaminationSerializer(serializers.Serializer[Any]):
    """Whether a plan would be accepted."""

    allow = serializers.BooleanField()
    problem = ErrorField(allow_null=True, help_text="What is in the way; of several the first.")
    at = serializers.CharField(allow_null=True, help_text="The step that it is about.")
    steps = ExaminedStepSerializer(many=True)
    budgets = PlanBudgetSerializer(many=True)
