"""Callable tools: those that an agent may call now.

Those that pass every rule that holds in lists (:mod:`invocations.decide.rules`): nothing stops them, and a grant of the agent names
them, with the scopes that they ask for. What only a call can tell is left to it: conditions on arguments, policies, budgets. A tool
that needs the consent of a person is offered, since an agent can ask for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from invocations.decide.looks import ListingLook
from invocations.decide.rules import check_again
from kernel.problems import Problem
from registry.decision_context import load_decision_contexts
from registry.discovery.search import search_installed
from registry.discovery.selectors import find_installed, load_manifests
from registry.models import ToolKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.principal import Principal
    from registry.decision_context import DecisionContext
    from unitools.manifest import Manifest

MAX_REASONS = 5


@dataclass(frozen=True, slots=True)
class Offer:
    """``manifests``: of what may be called, the best match first, or by name where nothing was searched for.

    ``kept_back``: by the id of each other tool that was asked for, what is in its way. ``installed``: the ids of all that there are.
    """

    manifests: list[Manifest]
    kept_back: dict[str, Problem]
    installed: list[str]

    def warnings(self, *, shown: int) -> list[str]:
        """Why there is nothing, or not everything; an empty list without a word has cost people days."""
        if 0 < shown < len(self.manifests):
            return [
                f"{shown} of {len(self.manifests)} tools are shown. Narrow them with q or a filter, or raise the limit."
            ]
        if self.manifests:
            return []
        if not self.installed:
            return ["No tool is installed in this tenant. Ask an operator to install or to enable one."]
        if not self.kept_back:
            return [f"None of the {len(self.installed)} installed tools matches the search and the filters."]
        by_reason: dict[str, list[str]] = {}
        for tool, problem in self.kept_back.items():
            by_reason.setdefault(problem.reason, []).append(tool)
        commonest = sorted(by_reason.items(), key=lambda each: (-len(each[1]), each[0]))[:MAX_REASONS]
        return [_describe_withheld(reason, len(tools), self.kept_back[tools[0]]) for reason, tools in commonest]


def _describe_withheld(reason: str, count: int, problem: Problem) -> str:
    tools = "1 tool is" if count == 1 else f"{count} tools are"
    example = "" if count == 1 else "For one of them: "
    return f"{tools} kept back ({reason}). {example}{problem.detail} {problem.remedy}".rstrip()


def offer_tools(
    *, by: Principal, q: str = "", model: str = "", kind: ToolKind = ToolKind.TOOL, **filters: str
) -> Offer:
    """What the agent may call now, of what the tenant has installed. ``filters``: those of :func:`find_installed` but for ``q``.
    ``model``: which is to call them; empty: any. ``kind``: of what; models are offered by themselves.

    Raises Forbidden for whoever is no agent.
    """
    agent_id = by.agent()
    everything = load_decision_contexts(
        tenant_id=by.tenant_id,
        agent_id=agent_id,
        key_id=by.key_id,
        connection_id=by.connection.id if by.connection else None,
    )
    decision_contexts = [each for each in everything if is_of_kind(each, kind)]
    asked = decision_contexts
    if any(filters.values()):
        names = set(find_installed(by=by, kind=kind, **filters).values_list("name", flat=True))
        asked = [each for each in asked if each.tool in names]
    if q.strip():
        place = {name: place for place, name in enumerate(search_installed(q, by=by))}
        asked = sorted((each for each in asked if each.tool in place), key=lambda each: place[each.tool])
    offered, kept_back = choose_callable(asked, model=model, any_state=bool(filters.get("state")))
    return Offer(offered, kept_back, [each.tool for each in decision_contexts])


def is_of_kind(context: DecisionContext, kind: ToolKind) -> bool:
    return context.installed is not None and context.installed.tool_kind == kind


def choose_callable(
    contexts: Iterable[DecisionContext], *, model: str = "", any_state: bool = False
) -> tuple[list[Manifest], dict[str, Problem]]:
    """Those that may be called now, and what keeps each of the others back."""
    asked = list(contexts)
    manifests = load_manifests(
        each.installed.version_id for each in asked if each.installed and each.installed.version_id
    )
    offered: list[Manifest] = []
    kept_back: dict[str, Problem] = {}
    for decision_context in asked:
        look = ListingLook(decision_context, manifests, model=model, any_state=any_state)
        try:
            check_again(look)
        except Problem as problem:
            kept_back[decision_context.tool] = problem
        else:
            offered.append(look.manifest)
    return offered, kept_back
