"""Fallback models: which other models may answer a call, each decided about as if it had been asked itself.

A grant, policies, consents, budgets and what its provider may be sent: all must let it through, or it is left out. What the call
reserves is enough for the dearest of those that remain. A policy may name one model that alone answers, in place of the asked one.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from access.budgets.lines import Demand
from access.models import ConsentMode
from access.problems import PolicyDenied

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.decide.preflight import Preflight

ANSWERED_BY_ANOTHER = "policy lets only {model} answer in its place"
ONE_CONSENT, OBLIGED = "it rests on a consent for one call", "its answers are obliged to other things"


def add_fallbacks(preflight: Preflight, decide: Callable[[str], Preflight]) -> None:
    """Look at each model that the asked one names. ``decide``: the preflight of the same call for the model of a name."""
    part = preflight.version.manifest.model if preflight.version is not None else None
    if part is None or preflight.model_demand is None or preflight.problem is not None:
        return
    for name in part.fallbacks:
        found = decide(name)
        if reason := find_obstacle(found, preflight):
            preflight.left_out[name] = reason
        else:
            preflight.fallbacks.append(found)
            preflight.demand = cover_demands(preflight.demand, found.demand)


def choose_degraded(preflight: Preflight, decide: Callable[[str], Preflight]) -> bool:
    """Let the model that a policy names answer alone, or refuse the call. False: no policy names one."""
    less, other = preflight.degradation, preflight.other_model
    if preflight.problem is not None or less is None or not other:
        return False
    found = decide(other)
    if reason := find_obstacle(found, preflight):
        preflight.problem, preflight.refused_at = (
            PolicyDenied(
                f"Policy lets only {other} answer this call, and that may not be asked: {reason}.",
                details={"rules": list(less.rules), "because": found.problem.to_error() if found.problem else None},
                remedy=found.problem.remedy if found.problem else "Ask for the other model by its own id.",
            ),
            "profile",
        )
        preflight.problems["profile"] = preflight.problem
    else:
        preflight.fallbacks, preflight.is_degraded, preflight.demand = [found], True, found.demand
    return True


def find_obstacle(found: Preflight, asked: Preflight) -> str:
    """Why a model may not stand in for the one that is asked; empty: it may."""
    if found.problem is not None:
        return found.problem.reason
    if found.other_model:
        return ANSWERED_BY_ANOTHER.format(model=found.other_model)
    if found.consent is not None and found.consent.mode == ConsentMode.ONCE:
        return ONE_CONSENT  # nobody knows before the end whether it is spent
    return "" if found.obligations == asked.obligations else OBLIGED


def cover_demands(one: Demand, other: Demand) -> Demand:
    """Enough for either."""
    names = [field.name for field in fields(Demand)]
    return Demand(**{name: max(getattr(one, name), getattr(other, name)) for name in names})
