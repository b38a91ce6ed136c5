"""Leaves of agent runs."""

from __future__ import annotations

from typing import Annotated, Any

from evidence.kinds import Kind
from evidence.leaves.base import Commitment, LeafData, leaf_data


@leaf_data(Kind.AGENT_RUN_BEGAN)
class AgentRunBegin(LeafData):
    """That an agent run was accepted."""

    request_id: Annotated[str, "the caller's own name of the run, hashed"]
    on_behalf_of: Annotated[str, "`type` of the envelope's actor"]
    model: Annotated[str, "id of the model that is asked"]
    question: Annotated[Commitment, "commitment to what was asked for, and the envelope"]
    limits: Annotated[dict[str, Any], "`steps`, `cost_micros`, `seconds` and `equal_calls`"]


@leaf_data(Kind.AGENT_RUN_ENDED)
class AgentRunEnd(LeafData):
    """How an agent run ended."""

    state: Annotated[str, "the final state"]
    stop_reason: Annotated[str, "why it went no further"]
    steps: Annotated[list[dict[str, Any]], "turn, role, tool, state, tries, reason and last call of each"]
    cost_micros: Annotated[int, "what its calls have cost, in millionths of the currency, as far as they have a price"]
    unpriced: Annotated[int | None, "how many of its calls have none"] = None


@leaf_data(Kind.AGENT_RUN_REFUSED)
class RefusedAgentRun(LeafData):
    """That an agent run was not accepted."""

    request_id: Annotated[str, "the caller's own name of the run, hashed"]
    model: Annotated[str, "id of the model that was to be asked"]


@leaf_data(Kind.AGENT_RUN_CANCEL_ASKED)
class CancelledAgentRun(LeafData):
    """That somebody wants no further step of an agent run."""

    steps: Annotated[int, "how many it had at that time"]
