"""Calls over REST: how agents make and read them."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import check_still_connected
from access.budgets.remaining_calls import list_remaining_calls
from evidence.kinds import PAIR
from evidence.models import Fact, Snapshot
from evidence.services import reveal_values
from invocations import services
from invocations.accept.api import CallView
from invocations.answer.answer_serializers import CallEnvelopeSerializer
from invocations.answer.envelope import build_answer_envelope, build_answered_envelope, build_call_object
from invocations.answer.prefer_header import parse_prefer_header
from invocations.calls import AnsweredCall, BegunCall, CallRefused
from invocations.models import Invocation, State
from invocations.problems import AnswerErased, IdempotencyInProgress
from invocations.proposals.proposal_links import list_proposed_calls
from invocations.serializers import EXAMPLE, KEY_HEADER, InvokeSerializer, read_call
from kernel.database.tenancy import acting_for
from kernel.fault_injection import inject_fault
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import build_envelope_serializer
from kernel.http.deferred_responses import WaitingResponse, can_wait
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.exception_handlers import build_problem_response
from kernel.http.rate_limit_fields import write_rate_limit_fields
from registry.tools.deprecation import deprecation_headers, find_retirement

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from rest_framework.request import Request

    from invocations.accept.call_basis import BasisAhead
    from invocations.calls import CallRequest
    from kernel.principal import Principal


class CallFactSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.CharField()
    leaf = serializers.CharField(help_text="The exact text that is hashed.")
    leaf_hash = serializers.CharField(help_text="SHA-256 over a zero byte and the leaf.")


class CallEvidenceSerializer(serializers.Serializer[Any]):
    invocation = serializers.CharField()
    facts = CallFactSerializer(many=True)


CALL_EVIDENCE = build_envelope_serializer("CallEvidenceEnvelope", CallEvidenceSerializer())
PREFER = "`respond-async` answers 202 at once, `wait=10` within ten seconds, with the answer if it is there; both together go as well."
READ_OWN_ANSWER = "The agent reads the answer of its own call."


def write_answer(
    request: Request, invocation: Invocation, envelope: ResponseEnvelope, *, replayed: bool = False
) -> HttpResponse:
    """200 with a value, 202 while it runs, the problem's status when there is one. ``replayed``: an earlier call answers again, so
    what it says of budgets is over.
    """
    location = f"/api/v1/invocations/{invocation.wire_id}"
    response: HttpResponse
    if envelope.error is not None:
        response = build_problem_response(request._request, envelope.error, envelope=envelope)
        if isinstance(envelope.error, IdempotencyInProgress):
            location = f"/api/v1/invocations/{envelope.error.details['first_call']}"
    else:
        response = JsonResponse(envelope.to_json(), status=200 if invocation.is_final else 202)
        if not invocation.is_final:
            response.headers["Retry-After"] = compute_retry_after(invocation)
            if parse_prefer_header(request.headers.get("Prefer", "")).respond_async:
                response.headers["Preference-Applied"] = "respond-async"
    if invocation.version is not None:
        for name, text in deprecation_headers(find_retirement(invocation.version.tool)).items():
            response.headers[name] = text
    if not replayed:
        left = list_remaining_calls(invocation.budget, took=invocation.state != State.DENIED)
        for name, text in write_rate_limit_fields(left).items():
            response.headers.setdefault(name, text)
    response.headers["Location"] = location
    response.headers["Cache-Control"] = build_cache_control(invocation, envelope)
    return response


def build_cache_control(invocation: Invocation, envelope: ResponseEnvelope) -> str:
    """For as long as the answer is fresh: less its age, when it is read again."""
    if envelope.ttl_seconds is None or invocation.finished_at is None:
        return "no-store"
    age = (datetime.now(UTC) - invocation.finished_at).total_seconds()
    return f"private, max-age={max(0, envelope.ttl_seconds - int(age))}"


def compute_retry_after(invocation: Invocation) -> str:
    """Seconds: people are slower than workers."""
    return "10" if invocation.state == State.HELD else "1"


class ToolInvokeView(CallView):
    """Make a call and wait for its answer; with `Prefer: respond-async`, get its address at once."""

    @extend_schema(
        request=InvokeSerializer,
        responses={200: CallEnvelopeSerializer, 202: CallEnvelopeSerializer},
        examples=[EXAMPLE],
        operation_id="invoke",
        parameters=[
            KEY_HEADER,
            OpenApiParameter("Prefer", str, OpenApiParameter.HEADER, description=PREFER),
        ],
    )
    def post(self, request: Request, tool_id: str) -> HttpResponse:
        return make_call(request, read_call(request, tool_id))


def make_call(request: Request, call: CallRequest, *, ahead: BasisAhead | None = None) -> HttpResponse:
    """Make it, and answer with what becomes of it. ``ahead``: as :func:`invocations.services.begin_call` takes it."""
    by = get_caller(request)
    try:
        begun = services.begin_call(call, by=by, ahead=ahead)
    except CallRefused as refused:
        envelope = build_answer_envelope(refused.invocation, problem=refused.problem, preflight=refused.preflight)
        return write_answer(request, refused.invocation, envelope)
    if begun.waiter is not None and can_wait(request._request):
        return answer_later(request, begun, by=by)
    with closing(begun):
        if begun.waiter is not None:
            services.wait_for_end(begun.invocation.pk, begun.waiter, at_most_s=begun.at_most_s)
        return write_answered(request, services.get_answer(begun))


def write_answered(request: Request, answered: AnsweredCall) -> HttpResponse:
    response = write_answer(request, answered.invocation, build_answered_envelope(answered), replayed=answered.replayed)
    inject_fault("answer.before")
    if answered.replayed and answered.invocation.is_final:
        response.headers["Idempotency-Replayed"] = "true"
    return response


def answer_later(
    request: Request,
    begun: BegunCall,
    *,
    by: Principal,
    write: Callable[[Request, AnsweredCall], HttpResponse] = write_answered,
) -> WaitingResponse:
    """The same answer, for which no thread waits."""
    assert begun.waiter is not None

    def look(last: bool) -> HttpResponse | None:
        with acting_for(by.tenant_id):
            answered = services.find_answer(begun, last=last)
            if answered is None:
                return None
            check_still_connected(by)
            return write(request, answered)

    return WaitingResponse(begun.waiter, at_most_s=begun.at_most_s, look=look, end=begun.close)


class InvocationView(Endpoint):
    """The state and the answer of one of the agent's own calls; cancelling one that has not ended."""

    required_scope = {"GET": "invocations:read", "DELETE": "invocations:create"}

    @extend_schema(responses={200: CallEnvelopeSerializer, 202: CallEnvelopeSerializer}, operation_id="read_invocation")
    def get(self, request: Request, invocation_id: UUID) -> HttpResponse:
        rows = Invocation.objects.visible_to(get_caller(request)).select_related("version__tool")
        invocation = rows.get(pk=invocation_id)
        for snapshot in Snapshot.objects.filter(invocation_id=invocation.pk, kind="output"):
            reveal_values(snapshot=snapshot, reason=READ_OWN_ANSWER, by=get_caller(request))
        envelope = build_answer_envelope(invocation)
        if envelope.call is not None and (made := list_proposed_calls(invocation)):
            envelope.call["proposed_calls"] = [each.wire_id for each in made]
        if isinstance(envelope.error, AnswerErased):
            return build_problem_response(request._request, envelope.error, envelope=envelope)
        response = JsonResponse(envelope.to_json(instance=request.path), status=200 if invocation.is_final else 202)
        response.headers["Cache-Control"] = build_cache_control(invocation, envelope)
        if not invocation.is_final:
            response.headers["Retry-After"] = compute_retry_after(invocation)
        return response

    @extend_schema(
        responses={200: CallEnvelopeSerializer, 202: CallEnvelopeSerializer}, operation_id="cancel_invocation"
    )
    def delete(self, request: Request, invocation_id: UUID) -> HttpResponse:
        """Cancel a call that has not ended. 202: it ran, and its end has been asked for but not seen yet."""
        cancelled = services.cancel_and_wait(invocation_id=invocation_id, by=get_caller(request))
        response = JsonResponse(
            ResponseEnvelope(data=None, call=build_call_object(cancelled)).to_json(),
            status=200 if cancelled.is_final else 202,
        )
        if not cancelled.is_final:
            response.headers["Retry-After"] = compute_retry_after(cancelled)
        return response


class InvocationEvidenceView(Endpoint):
    """Begin and End of one of the agent's own calls: leaves and their hashes, without values.

    What people did with the call afterwards (who revealed it, and why) is for the console only.
    """

    required_scope = "invocations:read"

    @extend_schema(responses={200: CALL_EVIDENCE}, operation_id="read_invocation_evidence")
    def get(self, request: Request, invocation_id: UUID) -> Response:
        invocation = Invocation.objects.visible_to(get_caller(request)).get(pk=invocation_id)
        facts = (
            Fact.objects.of_calls(invocation.pk).filter(tenant_id=invocation.tenant_id, kind__in=PAIR).order_by("id")
        )
        data = [
            {
                "id": fact.wire_id,
                "kind": fact.kind,
                "leaf": fact.text,
                "leaf_hash": bytes(fact.leaf_hash).hex(),
            }
            for fact in facts
        ]
        return Response(ResponseEnvelope(data={"invocation": invocation.wire_id, "facts": data}).to_json())
