"""Proposals over REST: how what a model proposes becomes a call.

As any other call does: the proposal is read, and goes the same way. What a model got wrong is refused by the same steps, with a
pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample, extend_schema

from invocations.accept.api import CallView
from invocations.answer.answer_serializers import CallEnvelopeSerializer
from invocations.api import make_call
from invocations.serializers import ProposalSerializer, read_proposal

if TYPE_CHECKING:
    from django.http import HttpResponse
    from rest_framework.request import Request

EXAMPLE = OpenApiExample(
    "As a model has written it",
    value={
        "request_id": "2f6f1c9e-quote-1",
        "actor": {"type": "agent", "id": "shopping-assistant"},
        "client": {"app": "shop", "model": "provider:model"},
        "name": "commerce.pricing.get_realtime_quote",
        "call_id": "call_7Qx1",
        "arguments": '{"sku": "LAPTOP-14", "quantity": 2}',
    },
    request_only=True,
)


class ProposalView(CallView):
    """Make the call that a model proposes: its name for the tool, its id for the call, and its arguments, which may be JSON text."""

    @extend_schema(
        request=ProposalSerializer,
        responses={200: CallEnvelopeSerializer, 202: CallEnvelopeSerializer},
        examples=[EXAMPLE],
        operation_id="propose",
    )
    def post(self, request: Request) -> HttpResponse:
        return make_call(request, read_proposal(request))
