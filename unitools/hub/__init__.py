"""Hub client: a hub's tools in a program, with :class:`HubClient` or :class:`AsyncHubClient` (the extra ``hub`` brings httpx2)."""

from __future__ import annotations

from unitools.hub.clients import AsyncHubClient, HubClient, new_key
from unitools.hub.errors import HubError, NotUnderstood, Refused, StillRunning, Unreachable
from unitools.hub.results import Answer, Dispatched, DispatchedCall, Event, Pending, Preflight, Source, Tools

__all__ = [
    "Answer",
    "AsyncHubClient",
    "Dispatched",
    "DispatchedCall",
    "Event",
    "HubClient",
    "HubError",
    "NotUnderstood",
    "Pending",
    "Preflight",
    "Refused",
    "Source",
    "StillRunning",
    "Tools",
    "Unreachable",
    "new_key",
]
