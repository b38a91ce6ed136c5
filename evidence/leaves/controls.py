"""Leaves of what limits calls: halts, policies and budgets."""

from __future__ import annotations

from typing import Annotated, Any

from evidence.kinds import Kind
from evidence.leaves.base import ABSENT, LeafData, MaybeWritten, SearchTerm, Written, leaf_data, leaf_part


@leaf_data(Kind.HALT_THROWN, Kind.HALT_LIFTED)
class HaltOrder(LeafData):
    """What is stopped, or goes on."""

    reach: Annotated[str, "`version`, `tool`, `agent`, `tenant` or `hub`"]
    target: Annotated[str, "what is meant: name of a tool, id of an agent or a version"]
    reason: Written


@leaf_part
class PolicyRules(LeafData):
    """Which version of a policy."""

    label: Annotated[str, "owner and number", SearchTerm("policy")]
    digest: Annotated[str, "of its document"]
    rules: Annotated[int, "how many"]


@leaf_data(Kind.POLICY_DRAFTED)
class DraftedPolicy(PolicyRules):
    """That somebody wrote a draft, or changed one."""

    note: Written
    changed: Annotated[bool | None, "true: the draft was there before"] = None


@leaf_data(Kind.POLICY_DISCARDED)
class DiscardedPolicy(PolicyRules):
    """That a draft was thrown away."""

    reason: Written


@leaf_data(Kind.POLICY_SIMULATED)
class SimulatedPolicy(PolicyRules):
    """What a draft would have decided about past calls."""

    calls: Annotated[int, "how many were tried"]
    unusable: Annotated[int, "how many of them have no recorded decision input"]
    counts: Annotated[dict[str, int], "calls by what would change"]
    analysis: Annotated[dict[str, Any], "what a comparison of the rules with those in force has found"]


@leaf_data(Kind.POLICY_PUBLISHED)
class PublishedPolicy(PolicyRules):
    """That a policy came into force."""

    instead_of: Annotated[str | None, "label of the version before"] = None
    instead_of_digest: Annotated[str | None, "digest of the version before"] = None
    drafted_by: Annotated[str | None, "who wrote it"] = None
    counts: Annotated[dict[str, int] | None, "calls by what would have changed, as the simulation found"] = None
    analysis: Annotated[dict[str, Any] | None, "what the comparison with the version before has found"] = None
    rolled_back: Annotated[bool | None, "true: it was in force before"] = None
    reason: MaybeWritten = None


@leaf_data(Kind.BUDGET_SET, Kind.BUDGET_ENDED)
class BudgetLimit(LeafData):
    """How much of what is allowed, and for whom."""

    scope: Annotated[str, "`tenant`, `agent`, `tool`, `grant` or `manifest`"]
    of: Annotated[str, "which agent, tool or grant"]
    dimension: Annotated[str, "what is counted"]
    window_s: Annotated[int, "length of the window; 0: at any moment"]
    amount: Annotated[int, "allowed in each window"]
    was: Annotated[int | None, "amount before; null: the budget is new"] = ABSENT
    raised_by: Annotated[int | None, "added for one window only"] = None
    window: Annotated[int | None, "number of that window"] = None
    reason: Written
