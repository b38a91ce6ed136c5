"""Stream places: how many answers of models one agent may have on their way at once, in one process."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING

from django.conf import settings

from invocations.problems import TooManyStreams

if TYPE_CHECKING:
    from uuid import UUID


class StreamPlaces:
    """Taken in threads, and given back on the event loop."""

    def __init__(self) -> None:
        self._taken: Counter[UUID] = Counter()
        self._lock = Lock()

    def take(self, agent_id: UUID) -> None:
        most = settings.TOOLHUB_MODEL_STREAMS_PER_AGENT
        with self._lock:
            if self._taken[agent_id] >= most:
                raise TooManyStreams(
                    f"This agent has {most} answers of models on their way here already.",
                    remedy="Close a stream that is not needed, or ask for whole answers.",
                    details={"max_streams": most},
                )
            self._taken[agent_id] += 1

    def give_back(self, agent_id: UUID) -> None:
        with self._lock:
            self._taken[agent_id] -= 1
            self._taken += Counter()  # forgets who has none


places = StreamPlaces()
