"""Name resolution: the words of a query that are names which only the database, or only the key, can tell.

Agents belong to an app above this one. It adds how they are found to ``AGENTS`` when it is loaded.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from evidence.keys.subject_keys import fingerprint_under
from evidence.models import SubjectKey
from evidence.search.tags import NameLookups
from evidence.services import compute_fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

AGENTS: list[Callable[[UUID, str, bool], list[str]]] = []
HASHED = "hmac-sha256:"


def names_in(tenant_id: UUID) -> NameLookups:
    return NameLookups(agents=partial(_agents, tenant_id), user=partial(keyed_hash, tenant_id))


def _agents(tenant_id: UUID, name: str, starts: bool) -> list[str]:
    return [id for find in AGENTS for id in find(tenant_id, name, starts)]


def keyed_hash(tenant_id: UUID, user: str) -> str:
    """What stands in facts for a person's id, which is never itself in them. Of somebody who was forgotten nobody can say it."""
    if user.startswith(HASHED):
        return user
    subject = compute_fingerprint(user.encode(), tenant_id=tenant_id)
    key = SubjectKey.objects.filter(tenant_id=tenant_id, subject=subject, destroyed_at=None).first()
    return fingerprint_under(key, subject.encode()) if key else subject
