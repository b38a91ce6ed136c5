"""Call uses: how often a tool or an agent was called in a time, and how many of these calls failed, with the lists of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from invocations.call_hours.counts import load_call_counts
from invocations.call_hours.rollup import floor_to_hour
from invocations.call_links import link_calls
from invocations.call_outcomes import CallOutcome
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection
    from datetime import datetime

    from kernel.principal import Principal

DAYS = 7


@dataclass(frozen=True, slots=True)
class CallUse:
    """``url`` and ``faults_url``: the lists of these calls."""

    name: str
    calls: int
    url: str
    faults: int
    faults_url: str


def build_call_use(name: str, counted: Counter[CallOutcome], since: datetime, **target: str) -> CallUse:
    """Of the calls since then that ``target`` names: of a tool, or of an agent."""
    return CallUse(
        name=name,
        calls=counted.total(),
        url=link_calls(since, None, **target),
        faults=counted[CallOutcome.FAILED],
        faults_url=link_calls(since, None, **target, outcome=str(CallOutcome.FAILED)),
    )


def load_tool_uses(names: Collection[str], *, by: Principal) -> dict[str, CallUse]:
    """Of the last days and of those that were called at all, by name; none for who may not see calls."""
    if not names or not by.may("invocations.view"):
        return {}
    now = database_time()
    since = floor_to_hour(now - timedelta(days=DAYS))
    counted = load_call_counts(tenant_id=by.tenant_id, since=since, now=now).tools
    return {name: build_call_use(name, counted[name], since, tool=name) for name in names if name in counted}
