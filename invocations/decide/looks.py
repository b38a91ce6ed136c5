"""Looks: what a rule sees of a call at one moment: when it is made, claimed, answered again, or listed as one that could be made.

What several rules need, and what one finds for those behind it, is here; each is read or computed once, as soon as a rule needs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from access.consents.matcher import find_matching_consent
from access.policies.clauses import MODES
from access.policies.verdict import Verdict, evaluate_policies
from invocations.decide.decision_input import build_attributes, redact_attributes
from invocations.decide.profiles import ResolvedProfile, resolve_profile
from invocations.model_calls.asked_providers import AskedProvider, load_provider
from invocations.model_calls.sent_data import wants_sensitive
from registry.model_providers.data_classes import list_unsendable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from access.consents.matcher import ConsentValue
    from access.grants.matcher import GrantValue
    from invocations.calls import CallRequest
    from invocations.decide.preflight import Preflight
    from invocations.models import Invocation
    from registry.decision_context import DecisionContext
    from registry.versions.compiler import CompiledVersion
    from unitools.manifest import Manifest


class RuleMoment(StrEnum):
    """When rules are looked at."""

    # It is made: preflight.
    CALL = "call"
    # A worker is about to run it.
    CLAIM = "claim"
    # Its stored answer is about to be given again.
    ANSWER = "answer"
    # An agent, or its model, is shown what it may call.
    LISTING = "listing"


@dataclass(slots=True)
class Look:
    """What a rule is asked about at one moment. ``decision_context``: as everything stands at that moment."""

    moment: ClassVar[RuleMoment]
    decision_context: DecisionContext

    @property
    def now(self) -> datetime:
        return self.decision_context.at


@dataclass(slots=True)
class CallLook(Look):
    """At a call that is made. What the rules find on their way goes into ``result``."""

    moment = RuleMoment.CALL
    result: Preflight
    call: CallRequest
    fingerprints: dict[str, str]
    size: int = 0
    grants: list[GrantValue] = field(default_factory=list)

    @property
    def dry_run(self) -> bool:
        return self.call.envelope.dry_run

    @property
    def version(self) -> CompiledVersion:
        assert self.result.version is not None
        return self.result.version

    @property
    def provider(self) -> AskedProvider:
        """Of a model; read once, as soon as a rule needs it."""
        if self.result.provider is None:
            part = self.version.manifest.model
            assert part is not None
            self.result.provider = load_provider(part, tenant_id=self.decision_context.tenant_id)
        return self.result.provider

    @property
    def verdict(self) -> Verdict:
        """What policy says; asked once, as soon as a rule needs to know."""
        if self.result.verdict is None:
            consent = self.find_consent_within(self.version.manifest.consent_scope) is not None
            data = self.result.request_data
            asked = build_attributes(
                self.call,
                self.version,
                self.decision_context,
                size=self.size,
                consent=consent,
                data_classes=data.classes if data is not None else (),
                allow_sensitive=wants_sensitive(self.result.model_request),
            )
            if self.result.proposal is not None:
                asked["model_verified"] = self.result.proposal.model
            self.result.verdict = evaluate_policies(self.decision_context.layers, asked)
            self.result.decision_input = redact_attributes(
                asked, self.decision_context.layers, self.version.manifest.models
            )
        return self.result.verdict

    @property
    def consent_binding(self) -> dict[str, Any]:
        """What a consent may be bound to."""
        assert self.decision_context.installed is not None
        return {
            "version": self.decision_context.installed.version,
            "user_fingerprint": self.fingerprints["user_fingerprint"],
            "arguments_fingerprint": self.fingerprints["arguments_fingerprint"],
            "policy_hash": self.result.policy_hash,
            "now": self.now,
            "data_classes": self.classes_to_allow,
        }

    @property
    def classes_to_allow(self) -> frozenset[str]:
        """Classes of data that a model's provider may be sent only if a person's consent names them."""
        data = self.result.request_data
        if data is None or not wants_sensitive(self.result.model_request):
            return frozenset()
        return frozenset(list_unsendable(data.classes, self.version.manifest))

    def find_consent_within(self, widest: str, *, validity_s: int | None = None) -> ConsentValue | None:
        """The consent that the call goes ahead with, if it is no wider than may be, nor older than a policy lets it become."""
        if not self.decision_context.consents:
            return None
        narrow = [
            each
            for each in self.decision_context.consents
            if MODES.index(each.mode) >= MODES.index(widest) and each.is_younger_than(validity_s, self.now)
        ]
        return find_matching_consent(narrow, **self.consent_binding)

    def resolve_profile_under(self, grant: GrantValue | None) -> ResolvedProfile:
        installed = self.decision_context.installed
        assert installed is not None
        return resolve_profile(
            self.version.asks,
            self.verdict,
            grant=grant.capabilities if grant else None,
            hosts=installed.hosts,
            paths=installed.paths,
            dry_run=self.dry_run,
            isolation=self.version.isolation,
            idle_ms=self.version.idle_ms,
            keeps=self.version.manifest.keeps,
        )


@dataclass(slots=True)
class ClaimLook(Look):
    """At an accepted call that a worker is about to run."""

    moment = RuleMoment.CLAIM
    invocation: Invocation


@dataclass(slots=True)
class AnswerLook(Look):
    """At an earlier call (``invocation``) whose answer is asked for again by ``call``."""

    moment = RuleMoment.ANSWER
    invocation: Invocation
    call: CallRequest


@dataclass(slots=True)
class ListingLook(Look):
    """At a tool that may go into a list. ``manifests``: by the id of the version. ``model``: which is to call it; empty: any.

    ``any_state``: a state was asked for, so that what is deprecated is no reason to leave it out.
    """

    moment = RuleMoment.LISTING
    manifests: Mapping[UUID, Manifest]
    model: str = ""
    any_state: bool = False
    found: Manifest | None = None  # of the version that a call would get

    @property
    def manifest(self) -> Manifest:
        assert self.found is not None
        return self.found


LOOKS: tuple[type[Look], ...] = (CallLook, ClaimLook, AnswerLook, ListingLook)
