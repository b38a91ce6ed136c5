"""Leaves of chains."""

from __future__ import annotations

from typing import Annotated, Any

from evidence.kinds import Kind
from evidence.leaves.base import Commitment, LeafData, leaf_data


@leaf_data(Kind.CHAIN_BEGAN)
class ChainBegin(LeafData):
    """That a chain was accepted."""

    request_id: Annotated[str, "the caller's own name of the chain, hashed"]
    on_behalf_of: Annotated[str, "`type` of the envelope's actor"]
    dry_run: Annotated[bool, "whether nothing was to be changed"]
    plan: Annotated[Commitment, "commitment to the plan and the envelope"]
    steps: Annotated[list[dict[str, str]], "name and tool of each"]
    compensations: Annotated[list[dict[str, str]], "name and tool of each"]


@leaf_data(Kind.CHAIN_ENDED)
class ChainEnd(LeafData):
    """How a chain ended."""

    state: Annotated[str, "the final state"]
    steps: Annotated[list[dict[str, Any]], "name, state, tries, reason and last call of each"]
    compensations: Annotated[list[dict[str, Any]], "name, state, tries, reason and last call of each"]


@leaf_data(Kind.CHAIN_REFUSED)
class RefusedChain(LeafData):
    """That a chain was not accepted."""

    request_id: Annotated[str, "the caller's own name of the chain, hashed"]
    at: Annotated[str, "pointer to what it was refused for"]
    tools: Annotated[list[str], "of its steps"]


@leaf_data(Kind.CHAIN_CANCEL_ASKED)
class CancelledChain(LeafData):
    """That somebody wants no further step."""

    state: Annotated[str, "of the chain at that time"]
