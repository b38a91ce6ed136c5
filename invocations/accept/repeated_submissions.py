"""Repeated submissions: who submits the same again with the same Idempotency-Key gets the first one, and nobody else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.db.models import Model

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from kernel.http.envelopes import RequestEnvelope
    from kernel.principal import Principal
    from kernel.problems import Problem

Work = TypeVar("Work", bound=Model)


def find_first_submission(
    rows: QuerySet[Work],
    visible: QuerySet[Work],
    envelope: RequestEnvelope,
    fingerprints: dict[str, str],
    *,
    build_reused: Callable[[Work], Problem],
    hidden: Problem,
    by: Principal,
) -> Work | None:
    """What was accepted with the key of the envelope. Raises what ``build_reused`` makes of it where something else was submitted
    then, and ``hidden`` where it is not among what is ``visible`` to who asks.
    """
    if not envelope.idempotency_key:
        return None
    first = rows.filter(
        tenant_id=by.tenant_id,
        agent_id=by.agent(),
        idempotency_key=envelope.idempotency_key,
        user_fingerprint=fingerprints["user_fingerprint"],
    ).first()
    if first is None:
        return None
    if any(getattr(first, name) != fingerprint for name, fingerprint in fingerprints.items()):
        raise build_reused(first)
    if not visible.filter(pk=first.pk).exists():
        raise hidden
    return first
