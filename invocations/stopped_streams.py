"""Stopped streams: which answers that are still being given a kill switch ends.

A switch that is thrown ends what was opened before: streams of the agents in its reach, and of calls of its tool. What is opened
afterwards stays, so that whoever listens hears when the switch is lifted. The calls themselves go on, as everywhere.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING

from access.halts.services import halt_problem, list_halts_in_force, select_in_reach
from access.models import Reach
from kernel.database.connections import database_time
from kernel.database.tenancy import hub_wide
from registry.models import ToolVersion

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from access.models import Halt
    from access.problems import Halted
    from invocations.models import Invocation
    from kernel.principal import Principal

OF_TOOLS = frozenset({Reach.TOOL, Reach.VERSION})


@dataclass(slots=True, eq=False)
class StreamTopic:
    """Whose stream it is; and which tool is called, where it is the answer to a call, as soon as that is known. ``is_ended``: by the
    hub, and not by who reads it.
    """

    tenant_id: UUID
    agent_id: UUID | None
    tool: str = ""
    version_id: UUID | None = None
    opened_at: float = field(default_factory=time.monotonic)
    is_ended: bool = False

    @classmethod
    def of(cls, by: Principal) -> StreamTopic:
        return cls(by.tenant_id, by.agent_id)

    def name_call(self, invocation: Invocation) -> None:
        self.tool, self.version_id = invocation.tool, invocation.version_id


class HaltWatch:
    """When each kill switch that is in force was seen first. For one thread at a time.

    ``before``: at the first look, those are new that were thrown so long ago at most.
    """

    def __init__(self, before: timedelta = timedelta(0)) -> None:
        self._seen_at: dict[UUID, float] | None = None  # monotonic
        self._before = before

    def find_stopped(self, topics: Iterable[StreamTopic]) -> dict[StreamTopic, Halted]:
        """Those that end now, and why."""
        rows, asked, found = self._read_halts(), list(topics), {}
        publishers = _find_publishers(asked) if any(row.reach in OF_TOOLS for row in rows) else {}
        for topic in asked if rows else ():
            reached = select_in_reach(
                [row for row in rows if self._is_after(row, topic)],
                tenant_id=topic.tenant_id,
                publisher_id=publishers.get(topic.version_id),
                agent_id=topic.agent_id,
                tool=topic.tool,
                version_id=topic.version_id,
            )
            if problem := halt_problem(reached):
                found[topic] = problem
        return found

    def _is_after(self, row: Halt, topic: StreamTopic) -> bool:
        assert self._seen_at is not None
        return self._seen_at[row.pk] >= topic.opened_at

    def _read_halts(self) -> list[Halt]:
        rows = list_halts_in_force()
        now = time.monotonic()
        if self._seen_at is None:
            since = database_time() - self._before
            self._seen_at = {row.pk: -inf for row in rows if row.thrown_at < since}
        self._seen_at = {row.pk: self._seen_at.get(row.pk, now) for row in rows}
        return [row for row in rows if self._seen_at[row.pk] > -inf]


def _find_publishers(topics: Iterable[StreamTopic]) -> dict[UUID | None, UUID]:
    ids = {topic.version_id for topic in topics if topic.version_id is not None}
    with hub_wide():  # a publisher stops its tool for every tenant
        return dict(ToolVersion.objects.filter(pk__in=ids).values_list("pk", "tool__tenant_id"))
