"""Chains over REST: how agents have a plan of calls carried out."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema

from evidence.kinds import Kind
from invocations.accept.api import AskingView
from invocations.answer.prefer_header import parse_prefer_header
from invocations.answer.wake_ups import get_waker
from invocations.chains import orchestration, services
from invocations.chains.answer_serializers import ChainEnvelopeSerializer, PlanExaminationSerializer
from invocations.chains.answers import build_chain_answer, examination_json
from invocations.chains.models import Chain
from invocations.chains.preflight import examine_plan
from invocations.chains.serializers import EXAMPLE, ChainSerializer, read_chain
from invocations.request_tallies import tally_request
from invocations.serializers import KEY_HEADER, SCOPE
from kernel.database.tenancy import acting_for
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import build_envelope_serializer
from kernel.http.deferred_responses import WaitingResponse, can_wait
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.exception_handlers import build_problem_response

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from invocations.answer.wake_ups import Waiter

LOOK_AGAIN_S = "1"
EXAMINATION = build_envelope_serializer("PlanExaminationEnvelope", PlanExaminationSerializer())
PREFER = OpenApiParameter(
    "Prefer", str, OpenApiParameter.HEADER, description="`wait=10` waits so many seconds for the end of the chain."
)


def write_answer(chain: Chain, *, replayed: bool = False) -> HttpResponse:
    """202 while it goes on, 200 when it has ended; whether it came to its end is in the envelope."""
    envelope = build_chain_answer(chain)
    location = f"/api/v1/chains/{chain.wire_id}"
    response = JsonResponse(envelope.to_json(instance=location), status=200 if chain.is_final else 202)
    response.headers["Location"] = location
    response.headers["Cache-Control"] = "no-store"
    if not chain.is_final:
        response.headers["Retry-After"] = LOOK_AGAIN_S
    if replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


class ChainListView(AskingView):
    """Have a plan of calls carried out, one after the other, each with what those before it have delivered."""

    @extend_schema(
        request=ChainSerializer,
        responses={200: ChainEnvelopeSerializer, 202: ChainEnvelopeSerializer},
        examples=[EXAMPLE],
        operation_id="submit_chain",
        parameters=[KEY_HEADER, PREFER],
    )
    def post(self, request: Request) -> HttpResponse:
        by, (plan, envelope) = get_caller(request), read_chain(request)
        patience = parse_prefer_header(request.headers.get("Prefer", "")).wait_s or 0
        try:
            submitted = services.submit_chain(plan, envelope, by=by)
        except services.ChainRefused as refused:
            return build_problem_response(request._request, refused.problem)
        chain = submitted.chain
        with ExitStack() as listening:
            waiter = listening.enter_context(get_waker().listen(chain.pk)) if patience else None
            orchestration.continue_chain(chain.pk)
            if waiter is not None:
                at_most_s = min(float(patience), settings.TOOLHUB_SYNC_WAIT_S)
                if can_wait(request._request):
                    return _answer_later(chain, waiter, at_most_s, listening.pop_all(), replayed=submitted.replayed)
                orchestration.wait_for_end(chain.pk, waiter, at_most_s=at_most_s)
        chain.refresh_from_db()
        return write_answer(chain, replayed=submitted.replayed)


def _answer_later(
    chain: Chain, waiter: Waiter, at_most_s: float, listening: ExitStack, *, replayed: bool
) -> WaitingResponse:
    """The same answer, for which no thread waits."""

    def look(last: bool) -> HttpResponse | None:
        with acting_for(chain.tenant_id):
            chain.refresh_from_db()
            return write_answer(chain, replayed=replayed) if chain.is_final or last else None

    return WaitingResponse(waiter, at_most_s=at_most_s, look=look, end=listening.close)


class ChainPreflightView(AskingView):
    """Would this plan be accepted? Nothing runs, and no budget is held."""

    @extend_schema(
        request=ChainSerializer, responses={200: EXAMINATION}, examples=[EXAMPLE], operation_id="preflight_chain"
    )
    def post(self, request: Request) -> HttpResponse:
        plan, envelope = read_chain(request)
        by = get_caller(request)
        examination = examine_plan(plan, envelope, by=by)
        tally_request(Kind.INVOCATION_PREFLIGHTED, tenant_id=by.tenant_id, agent=by.id, times=len(plan.calls))
        return JsonResponse(ResponseEnvelope(data=examination_json(examination)).to_json())


class ChainView(Endpoint):
    """The state of one of the agent's own chains, its steps and the addresses of their answers; cancelling one."""

    required_scope = {"GET": "invocations:read", "DELETE": SCOPE}

    @extend_schema(responses={200: ChainEnvelopeSerializer, 202: ChainEnvelopeSerializer}, operation_id="read_chain")
    def get(self, request: Request, chain_id: UUID) -> HttpResponse:
        return write_answer(Chain.objects.visible_to(get_caller(request)).get(pk=chain_id))

    @extend_schema(responses={200: ChainEnvelopeSerializer, 202: ChainEnvelopeSerializer}, operation_id="cancel_chain")
    def delete(self, request: Request, chain_id: UUID) -> HttpResponse:
        """Make no more of its calls and end the one that runs. What was done is undone where the plan says how."""
        chain = services.cancel_chain(chain_id=chain_id, by=get_caller(request))
        orchestration.continue_chain(chain.pk)
        chain.refresh_from_db()
        return write_answer(chain)
