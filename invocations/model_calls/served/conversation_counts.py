"""Conversation counts: how many tokens a conversation in a served format has, by the hub's own estimate, which is a high one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.decide.preflight_requests import request_preflight
from invocations.model_calls.served.api import build_envelope
from invocations.model_calls.served.served_calls import build_served_call
from kernel.http.api_requests import get_caller
from kernel.problems import Internal

if TYPE_CHECKING:
    from rest_framework.request import Request

    from llm.served.formats import ServedChat

# What is too much may be counted all the same.
ABOUT_ROOM = ("LLM.CONTEXT_OVERFLOW", "QUOTA.BUDGET_EXCEEDED", "QUOTA.RATE_LIMITED")
BESIDE = {"counted_by": "estimate"}  # what the hub says of it


def count_tokens(request: Request, asked: ServedChat, *, dialect: str) -> int:
    """As the preflight of the call counts them. No provider is asked. Raises what would refuse the call, but for want of room."""
    by = get_caller(request)
    call, _ = build_served_call(asked, build_envelope(request, asked.envelope), dialect=dialect, by=by)
    found = request_preflight(call, by=by)
    if found.problem is not None and found.problem.reason not in ABOUT_ROOM:
        raise found.problem
    demand = found.preflight.model_demand if found.preflight is not None else None
    if demand is None:
        raise found.problem or Internal()
    return demand.input_tokens
