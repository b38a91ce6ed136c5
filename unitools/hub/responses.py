"""Responses: what a model answered, as a hub is sent it to make the calls in it."""

from __future__ import annotations

from typing import Any

from unitools.calls import ToolCall
from unitools.hub.model_results import ChatAnswer, write_proposals


def build_dispatch(response: Any) -> dict[str, Any]:
    """What a hub is sent to dispatch. Proposals of its own models go in one dialect, whatever their provider's is, and name the answer
    that they came from. Raises ValueError for a proposal that cannot be used.
    """
    calls = response.proposals if isinstance(response, ChatAnswer) else response
    if isinstance(response, ChatAnswer) or (
        isinstance(calls, list | tuple) and calls and all(isinstance(each, ToolCall) for each in calls)
    ):
        said = {"response": write_proposals(calls), "dialect": "openai"}
        answers = {each.proposed_by for each in calls}
        # Those of several answers are made as any other calls are: one dispatch names one answer.
        return said if len(answers) != 1 or "" in answers else said | {"proposed_by": {"invocation": answers.pop()}}
    return {"response": convert_response(response)}


def convert_response(response: Any) -> Any:
    """JSON of what a provider answered: text and dicts as they are, an object of an SDK by its own ``model_dump``."""
    dump = getattr(response, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_none=True)
    if isinstance(response, list | tuple):
        return [convert_response(each) for each in response]
    return response
