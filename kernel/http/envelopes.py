"""Envelopes: what every request and every answer looks like.

:class:`RequestEnvelope` is SPEC-1, :class:`ResponseEnvelope` is SPEC-4 with the ``call`` object of requirements §8. An
answer that is a problem is an RFC 9457 document and an envelope at once: clients of either kind read what they know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from kernel.problems import Problem


@dataclass(frozen=True, slots=True)
class RequestEnvelope:
    """SPEC-1. ``user_id`` is whom the actor acts for; ``trace`` holds W3C ids.

    ``on_consent`` says what to do when a person must agree first, and ``purpose`` what for. ``callback`` names the endpoint that
    is told of the end, ``proposed_by`` the answer of a model that proposed the call, and which of its proposals it is.
    """

    request_id: str
    actor: dict[str, str]
    user_id: str = ""
    session_id: str = ""
    locale: str = "en-US"
    currency: str = "USD"
    timezone: str = "UTC"
    client: dict[str, str] = field(default_factory=dict)
    dry_run: bool = False
    idempotency_key: str = ""
    trace: dict[str, str] = field(default_factory=dict)
    on_consent: str = "refuse"
    purpose: str = ""
    callback: str = ""
    proposed_by: dict[str, str] = field(default_factory=dict)

    def context(self) -> dict[str, Any]:
        """What is kept of it with the invocation, and what the tool may know."""
        context = {
            "request_id": self.request_id,
            "actor": self.actor,
            "user_id": self.user_id,
            "session_id": self.session_id,
            "locale": self.locale,
            "currency": self.currency,
            "timezone": self.timezone,
            "client": self.client,
            "trace": self.trace,
        }
        return context | ({"proposed_by": self.proposed_by} if self.proposed_by else {})


@dataclass(frozen=True, slots=True)
class EvidenceSource:
    """One line of ``evidence.sources``: what the answer rests on, its hash over canonical JSON, and when it was read."""

    type: str
    name: str
    hash: str
    ts: str
    version: str = ""

    def to_json(self) -> dict[str, str]:
        data = {"type": self.type, "name": self.name, "hash": self.hash, "ts": self.ts}
        return data | {"version": self.version} if self.version else data


@dataclass(frozen=True, slots=True)
class Evidence:
    snapshot_id: str | None = None
    sources: tuple[EvidenceSource, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {"snapshot_id": self.snapshot_id, "sources": [source.to_json() for source in self.sources]}


@dataclass(frozen=True, slots=True)
class ResponseEnvelope:
    """SPEC-4. ``ok`` is false exactly when ``error`` is set."""

    data: Any = None
    warnings: tuple[str, ...] = ()
    error: Problem | None = None
    ttl_seconds: int | None = None
    evidence: Evidence = field(default_factory=Evidence)
    call: dict[str, Any] | None = None

    def to_json(self, *, instance: str = "") -> dict[str, Any]:
        body: dict[str, Any] = {
            "ok": self.error is None,
            "data": self.data,
            "warnings": list(self.warnings),
            "error": self.error.to_error() if self.error else None,
            "ttl_seconds": self.ttl_seconds,
            "evidence": self.evidence.to_json(),
        }
        if self.call is not None:
            body["call"] = self.call
        if self.error is not None:
            body |= {
                "type": f"{settings.TOOLHUB_PUBLIC_URL}/api/v1/errors/{self.error.reason}",
                "title": self.error.title(),
                "status": self.error.status,
                "detail": self.error.detail,
            }
            if instance:
                body["instance"] = instance
        return body
