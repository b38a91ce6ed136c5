"""Redecision: whether the recorded policy would decide the recorded call the same way.

Each Begin fact keeps what was decided on and how. The policy versions that it names decide again: the same verdict, consent and rules
must come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from access.models import PolicyState, PolicyVersion
from access.policies.cache import compiled_policy
from access.policies.compiler import BUILTIN
from access.policies.verdict import evaluate_policies, policy_hash
from invocations.decide.preflight import STEPS
from kernel.canonical import compute_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from access.policies.compiler import CompiledPolicy
    from evidence.leaves.call_begins import Begin

SAME, DIFFERS, NOT_KEPT = "same", "differs", "not_kept"
BEFORE_CONSENT = STEPS[: STEPS.index("consent") + 1]  # a call that was refused at one of these asked nobody


@dataclass(frozen=True, slots=True)
class Redecision:
    verdict: str
    why: str = ""  # the field that differs, or what is not kept


class Redecider:
    """Decides calls of any number of tenants; each combination of versions is looked up once."""

    def __init__(self) -> None:
        self._layers: dict[tuple[UUID, str], tuple[Sequence[CompiledPolicy], str] | None] = {}

    def look(self, begin: Begin, tenant_id: UUID) -> Redecision:
        asked, decision, policy = begin.decision_input, begin.decision, begin.policy
        if not isinstance(asked, dict) or decision is None:
            return Redecision(NOT_KEPT, "decision_input")
        key = (tenant_id, str(policy.version) if policy else "")
        if key not in self._layers:
            self._layers[key] = _layers_of(*key)
        found = self._layers[key]
        if found is None:
            return Redecision(NOT_KEPT, "policy")
        layers, hash_now = found
        if policy is None or hash_now != policy.hash:
            return Redecision(DIFFERS, "policy_hash")
        verdict = evaluate_policies(layers, asked)
        if verdict.allowed != decision.allowed:
            return Redecision(DIFFERS, "allowed")
        if verdict.rules != decision.rules:
            return Redecision(DIFFERS, "rules")
        demanded = verdict.consent is not None or bool(decision.by_manifest)
        unasked = begin.refused_at in BEFORE_CONSENT or bool(asked.get("dry_run"))
        if demanded != bool(decision.consent) and not unasked:
            return Redecision(DIFFERS, "consent")
        if begin.obligations and compute_digest(verdict.obligations) != begin.obligations:
            return Redecision(DIFFERS, "obligations")
        return Redecision(SAME)


def _layers_of(tenant_id: UUID, label: str) -> tuple[Sequence[CompiledPolicy], str] | None:
    """``hub@3 tenant@7``; None when one of them is not there any more."""
    layers: list[CompiledPolicy] = []
    for each in label.split():
        owner, _, number = each.partition("@")
        if each == BUILTIN.label:
            layers.append(BUILTIN)
            continue
        rows = PolicyVersion.objects.of_owner(tenant_id if owner == "tenant" else None)
        published = [PolicyState.IN_FORCE, PolicyState.SUPERSEDED]
        row = rows.filter(number=number, state__in=published).only("id").first() if number.isdigit() else None
        if owner not in ("tenant", "hub") or row is None:
            return None
        layers.append(compiled_policy(row.pk))
    return (tuple(layers), policy_hash(layers)) if layers else None
