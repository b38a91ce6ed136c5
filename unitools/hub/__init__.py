"""Hub client: a hub's tools in a program, with :class:`HubClient` or :class:`AsyncHubClient` (the extra ``hub`` brings httpx2)."""

from __future__ import annotations

from unitools.hub.clients import AsyncHubClient, HubClient, new_key
from unitools.hub.errors import HubError, NotUnderstood, Refused, StillRunning, Unreachable
from unitools.hub.model_clients import AsyncChatStream, ChatStream
from unitools.hub.model_results import (
    ChatAnswer,
    ChatDelta,
    EmbedAnswer,
    ModelUsage,
    OfferedModel,
    ProposalDelta,
    RerankAnswer,
)
from unitools.hub.results import Answer, Dispatched, DispatchedCall, Event, PendingCall, Preflight, Source, Tools
from unitools.hub.run_results import RunAnswer, RunStep

__all__ = [
    "Answer",
    "AsyncChatStream",
    "AsyncHubClient",
    "ChatAnswer",
    "ChatDelta",
    "ChatStream",
    "Dispatched",
    "DispatchedCall",
    "EmbedAnswer",
    "Event",
    "HubClient",
    "HubError",
    "ModelUsage",
    "NotUnderstood",
    "OfferedModel",
    "PendingCall",
    "Preflight",
    "ProposalDelta",
    "Refused",
    "RerankAnswer",
    "RunAnswer",
    "RunStep",
    "Source",
    "StillRunning",
    "Tools",
    "Unreachable",
    "new_key",
]
