"""Widest consents: how far a consent may go that somebody asks for before a call is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.consents.services import WIDTH
from access.models import ConsentMode
from access.policies.clauses import RuleEffect
from access.problems import ConsentNotNeeded

if TYPE_CHECKING:
    from registry.decision_context import DecisionContext
    from registry.versions.compiler import CompiledVersion


def widest_consent(version: CompiledVersion, decision_context: DecisionContext) -> tuple[str, int]:
    """The widest consent that a call of this tool may rest on, and how long it may hold.

    Which rules of a policy ask for a consent depends on the call; what any of them could ask for is enough to let somebody
    ask in advance. Each call then looks again.
    """
    demands = [
        rule.consent for layer in decision_context.layers for rule in layer.rules if rule.effect == RuleEffect.CONSENT
    ]
    modes = [version.manifest.consent_scope] if version.needs_consent else [demand["mode"] for demand in demands]
    if not modes:
        raise ConsentNotNeeded(f"{version.manifest.id} needs no consent; a grant is enough.")
    return max(modes, key=lambda mode: WIDTH[ConsentMode(mode)]), version.manifest.consent_validity_s
