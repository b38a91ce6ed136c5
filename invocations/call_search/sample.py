"""Sample of what a search finds: the newest calls, counted by what they have in common.

All that a search finds may be a million calls, and to count them takes longer than anybody waits. The newest thousand say which
values there are and which are frequent; where there are more, the page says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from invocations.call_outcomes import CallOutcome, classify_call

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from invocations.models import InvocationQuerySet

MOST = 1_000


class CallKind(NamedTuple):
    """What equal calls have in common: a row for each of a thousand of them says no more than one that counts them."""

    tool: str
    state: str
    reason: str

    @property
    def outcome(self) -> CallOutcome:
        return classify_call(self.state, self.reason)


@dataclass(slots=True)
class CallGroup:
    """``newest``: the id of the newest of them, and when it was made; ``since``: when the oldest was."""

    kind: CallKind
    newest: UUID
    newest_at: datetime
    since: datetime
    count: int = 0
    agents: set[UUID] = field(default_factory=set)


@dataclass(slots=True)
class CallSample:
    """``is_cut``: more calls were found than were looked at."""

    times: list[tuple[datetime, CallOutcome]] = field(default_factory=list)
    groups: dict[CallKind, CallGroup] = field(default_factory=dict)
    tools: Counter[str] = field(default_factory=Counter)
    agents: Counter[UUID] = field(default_factory=Counter)
    outcomes: Counter[CallOutcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    versions: Counter[UUID] = field(default_factory=Counter)
    is_cut: bool = False

    @property
    def count(self) -> int:
        return len(self.times)

    def list_groups(self) -> list[CallGroup]:
        """The most frequent first."""
        return sorted(self.groups.values(), key=lambda group: (-group.count, group.kind))


def take_sample(rows: InvocationQuerySet) -> CallSample:
    columns = ("pk", "created_at", "tool", "state", "reason", "agent_id", "version_id")
    taken, outcomes = CallSample(), dict[tuple[str, str], CallOutcome]()
    for pk, made_at, tool, state, reason, agent, version in rows.order_by("-pk").values_list(*columns)[: MOST + 1]:
        if taken.count == MOST:
            taken.is_cut = True
            break
        outcome = outcomes.get((state, reason)) or outcomes.setdefault((state, reason), classify_call(state, reason))
        taken.times.append((made_at, outcome))
        taken.tools[tool] += 1
        taken.agents[agent] += 1
        taken.outcomes[outcome] += 1
        taken.reasons[reason] += 1
        if version is not None:
            taken.versions[version] += 1
        kind = CallKind(tool, state, reason)
        group = taken.groups.get(kind) or taken.groups.setdefault(kind, CallGroup(kind, pk, made_at, made_at))
        group.count, group.since = group.count + 1, made_at
        group.agents.add(agent)
    del taken.reasons[""]
    return taken
