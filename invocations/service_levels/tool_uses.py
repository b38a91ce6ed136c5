"""Tool uses: how often each of some tools was called in the last days, and how many of its calls failed, with the lists of them."""

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
    from collections.abc import Collection

    from kernel.principal import Principal

DAYS = 7


@dataclass(frozen=True, slots=True)
class ToolUse:
    """``url`` and ``faults_url``: the lists of these calls."""

    calls: int
    url: str
    faults: int
    faults_url: str


def load_tool_uses(names: Collection[str], *, by: Principal) -> dict[str, ToolUse]:
    """Of those that were called at all, by name; none for who may not see calls."""
    if not names or not by.may("invocations.view"):
        return {}
    now = database_time()
    since = floor_to_hour(now - timedelta(days=DAYS))
    counted = load_call_counts(tenant_id=by.tenant_id, since=since, now=now).tools
    return {
        name: ToolUse(
            calls=counted[name].total(),
            url=link_calls(since, tool=name),
            faults=counted[name][CallOutcome.FAILED],
            faults_url=link_calls(since, tool=name, outcome=str(CallOutcome.FAILED)),
        )
        for name in names
        if name in counted
    }
