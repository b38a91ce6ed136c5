"""Chains over REST: how agents have a plan of calls carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema

from evidence.kinds import Kind
from invocations.accept.api import AskingView
from invocations.accept.recorded_refusals import RecordedRefusal
from invocations.answer.pending_answers import answer_in_time, read_patience, write_pending
from invocations.chains import orchestration, services
from invocations.chains.answer_serializers import ChainEnvelopeSerializer, PlanExaminationSerializer
from invocations.chains.answers import build_chain_answer, examination_json
from invocations.chains.models import Chain
from invocations.chains.preflight import examine_plan
from invocations.chains.serializers import EXAMPLE, ChainSerializer, read_chain
from invocations.request_tallies import tally_request
from invocations.serializers import KEY_HEADER, SCOPE
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import build_envelope_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.exception_handlers import build_problem_response

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

EXAMINATION = build_envelope_serializer("PlanExaminationEnvelope", PlanExaminationSerializer())
PREFER = OpenApiParameter(
    "Prefer", str, OpenApiParameter.HEADER, description="`wait=10` waits so many seconds for the end of the chain."
)


def write_answer(chain: Chain, *, replayed: bool = False) -> HttpResponse:
    """Whether it came to its end is in the envelope."""
    location = f"/api/v1/chains/{chain.wire_id}"
    return write_pending(
        chain, build_chain_answer(chain).to_json(instance=location), location=location, replayed=replayed
    )


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
        patience_s = read_patience(request)
        try:
            chain, replayed = services.submit_chain(plan, envelope, by=by)
        except RecordedRefusal as refused:
            return build_problem_response(request._request, refused.problem)
        return answer_in_time(
            request,
            chain,
            patience_s=patience_s,
            begin=orchestration.continue_chain,
            write=lambda: write_answer(chain, replayed=replayed),
        )


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
