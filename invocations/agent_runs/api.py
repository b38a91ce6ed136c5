"""Agent runs over REST: how agents have a question taken to its answer, follow it, and end it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiParameter, extend_schema

from invocations.accept.api import AskingView
from invocations.accept.recorded_refusals import RecordedRefusal
from invocations.agent_runs import orchestration, services
from invocations.agent_runs.answer_serializers import RunEnvelopeSerializer
from invocations.agent_runs.answers import build_run_answer
from invocations.agent_runs.event_stream import RunFollower, RunStreamCursor
from invocations.agent_runs.models import AgentRun
from invocations.agent_runs.serializers import EXAMPLE, AgentRunSerializer, read_run
from invocations.answer.pending_answers import answer_in_time, read_patience, write_pending
from invocations.event_streams.api import LAST_EVENT_ID, STREAM_RESPONSES, EventStreamView
from invocations.model_calls.asked_models import SCOPE as MODELS_SCOPE
from invocations.serializers import KEY_HEADER, SCOPE
from kernel.http.api_requests import get_caller
from kernel.http.endpoints import Endpoint
from kernel.http.exception_handlers import build_problem_response

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from kernel.principal import Principal

PREFER = OpenApiParameter(
    "Prefer", str, OpenApiParameter.HEADER, description="`wait=10` waits so many seconds for the end of the run."
)


def write_answer(run: AgentRun, *, by: Principal, replayed: bool = False) -> HttpResponse:
    """Whether the model came to an answer is in the envelope."""
    location = f"/api/v1/runs/{run.wire_id}"
    return write_pending(
        run, build_run_answer(run, by=by).to_json(instance=location), location=location, replayed=replayed
    )


class AgentRunListView(AskingView):
    """Have a model asked, the calls that it proposes made, and the model told what came of them, until it has an answer."""

    @extend_schema(
        request=AgentRunSerializer,
        responses={200: RunEnvelopeSerializer, 202: RunEnvelopeSerializer},
        examples=[EXAMPLE],
        operation_id="submit_run",
        parameters=[KEY_HEADER, PREFER],
    )
    def post(self, request: Request) -> HttpResponse:
        by, (question, envelope) = get_caller(request), read_run(request)
        by.check(MODELS_SCOPE)
        patience_s = read_patience(request)
        try:
            run, replayed = services.submit_run(question, envelope, by=by)
        except RecordedRefusal as refused:
            return build_problem_response(request._request, refused.problem)
        return answer_in_time(
            request,
            run,
            patience_s=patience_s,
            begin=orchestration.continue_run,
            write=lambda: write_answer(run, by=by, replayed=replayed),
        )


class AgentRunView(Endpoint):
    """The state of one of the agent's own runs, its steps, and at the end the model's answer; cancelling one."""

    required_scope = {"GET": "invocations:read", "DELETE": SCOPE}

    @extend_schema(responses={200: RunEnvelopeSerializer, 202: RunEnvelopeSerializer}, operation_id="read_run")
    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        by = get_caller(request)
        return write_answer(AgentRun.objects.visible_to(by).get(pk=run_id), by=by)

    @extend_schema(responses={200: RunEnvelopeSerializer, 202: RunEnvelopeSerializer}, operation_id="cancel_run")
    def delete(self, request: Request, run_id: UUID) -> HttpResponse:
        """Make no more of its calls and end those that are open."""
        by = get_caller(request)
        run = services.cancel_run(run_id=run_id, by=by)
        orchestration.continue_run(run.pk)
        run.refresh_from_db()
        return write_answer(run, by=by)


class AgentRunEventsView(EventStreamView):
    """Follow one of the agent's own runs: server-sent events for each call of its model and of tools, `model.delta` (without an id)
    with the words of the model while they come, and at last `end` with what a GET of the run answers, or `error` when it may not be
    followed any longer.
    """

    @extend_schema(operation_id="follow_run", responses=STREAM_RESPONSES, parameters=[LAST_EVENT_ID])
    def get(self, request: Request, run_id: UUID) -> HttpResponseBase:
        AgentRun.objects.visible_to(get_caller(request)).only("pk").get(pk=run_id)
        return self.follow(request, RunStreamCursor.read, partial(RunFollower, run_id))
