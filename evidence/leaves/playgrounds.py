"""Leaves of playgrounds: the agent that a tenant's people talk through, and who has sent what."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, leaf_data


@leaf_data(Kind.PLAYGROUND_CREATED)
class CreatedPlayground(LeafData):
    """Through which agent people talk from now on."""

    agent: Annotated[str, "id of the agent, whose grants and budgets are facts of their own"]


@leaf_data(Kind.PLAYGROUND_MESSAGE_SENT)
class SentMessage(LeafData):
    """What a person's message became. Its words are sealed with the runs."""

    conversation: Annotated[str, "id of the conversation that it belongs to"]
    agent: Annotated[str, "id of the agent that the runs are of"]
    models: Annotated[list[str], "ids of the models that it was sent to"]
    runs: Annotated[list[str], "id of the run of each; empty where it was refused"]
