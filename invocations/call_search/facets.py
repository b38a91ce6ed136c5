"""Facets of a search of calls: the values that what was found has, how often, and the search with one of them more or less."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from django.utils.translation import gettext

from access.models import Agent
from evidence.search.language import Query, Term
from registry.models import ToolVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from invocations.call_search.sample import CallSample
    from kernel.principal import Principal

MOST = 6  # values of one facet
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FacetValue:
    """``url``: the search with it, or without it where it ``is_chosen``."""

    label: str
    count: int
    url: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Facet:
    name: str
    label: str
    values: list[FacetValue]
    more: int  # values that are not shown


def list_facets(query: Query, sample: CallSample, *, by: Principal, link: Callable[[Query], str]) -> list[Facet]:
    """Those that tell the calls apart, or of which one value is chosen."""
    agents = dict(Agent.objects.filter(tenant_id=by.tenant_id, pk__in=list(sample.agents)).values_list("pk", "name"))
    most_used = [pk for pk, _ in sample.versions.most_common(MOST)]
    versions = dict(ToolVersion.objects.filter(pk__in=most_used).values_list("pk", "version"))
    outcomes = {outcome: str(outcome.label) for outcome in sample.outcomes}
    found = [
        _build(query, "outcome", gettext("Outcome"), sample.outcomes, link, labels=outcomes),
        _build(query, "code", gettext("Problem"), sample.reasons, link),
        _build(query, "tool", gettext("Tool"), sample.tools, link),
        _build(query, "agent", gettext("Agent"), sample.agents, link, values=agents),
        _build(query, "version", gettext("Version"), _merge(sample.versions, versions), link),
    ]
    return [facet for facet in found if len(facet.values) > 1 or any(value.is_chosen for value in facet.values)]


def _merge(counted: Counter[UUID], names: Mapping[UUID, str]) -> Counter[str]:
    """Of several tools the same number of a version."""
    merged: Counter[str] = Counter()
    for pk, count in counted.items():
        if pk in names:
            merged[names[pk]] += count
    return merged


def _build(
    query: Query,
    name: str,
    label: str,
    counted: Counter[T],
    link: Callable[[Query], str],
    *,
    labels: Mapping[T, str] | None = None,
    values: Mapping[T, str] | None = None,
) -> Facet:
    """``labels``: how values are shown; ``values``: what is searched for and shown in place of ids."""
    known = [(each, count) for each, count in counted.most_common() if values is None or each in values]
    found = []
    for each, count in known[:MOST]:
        term = Term(name, str(values[each] if values else each))
        chosen = term in query.terms
        to = query.without(term) if chosen else Query((*query.terms, term))
        found.append(FacetValue(labels[each] if labels else term.value, count, link(to), chosen))
    return Facet(name, label, found, max(len(known) - MOST, 0))
