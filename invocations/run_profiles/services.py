"""Run profile services: a profile is kept with the first call that has it, and read for those that run under it."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connection

from invocations.run_profiles.models import RunProfile
from invocations.sandbox.base import Profile
from kernel.canonical import compute_digest
from kernel.database.prepared_statements import execute_prepared_later
from kernel.database.rows import get_row_values

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.decide.preflight import Preflight
    from invocations.models import Invocation

# As a rule it is there, as it should be: then nothing is written or locked, which DO UPDATE alone would do. One that somebody has
# changed is put right, or each call under it would be accepted and not run.
_KEEP = (
    b"INSERT INTO invocations_runprofile (tenant_id, digest, document) "
    b"SELECT %(tenant_id)s, CAST(%(digest)s AS varchar), %(document)s WHERE NOT EXISTS (SELECT 1 FROM invocations_runprofile "
    b"WHERE tenant_id = %(tenant_id)s AND digest = CAST(%(digest)s AS varchar) AND document = %(document)s) "
    b"ON CONFLICT (tenant_id, digest) DO UPDATE SET document = excluded.document"
)


class UnreadableProfile(ValueError):
    """What a call may reach is not there, or is not what its digest says."""


class MissingProfile(UnreadableProfile):
    """It is not there."""


def keep_profile(preflight: Preflight | None, *, tenant_id: UUID) -> None:
    """With the next statement of this transaction: what the call that was decided about may reach, if it came to that."""
    if preflight is None or preflight.profile is None:
        return
    row = RunProfile(tenant_id=tenant_id, digest=preflight.profile_hash, document=preflight.profile.to_json())
    execute_prepared_later(_KEEP, get_row_values(row))


def find_profile_document(invocation: Invocation) -> Any:
    """As it is stored; None: there is none."""
    found = _find_kept(invocation.tenant_id, invocation.profile_hash)
    return _find_in_row(invocation) if found is None else found


def _find_kept(tenant_id: UUID, digest: str) -> Any:
    return RunProfile.objects.filter(tenant_id=tenant_id, digest=digest).values_list("document", flat=True).first()


def _find_in_row(invocation: Invocation) -> Any:
    """Where the web of the release before writes it, which serves until an upgrade has ended. PostgreSQL keeps the column for it."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT profile FROM invocations_invocation WHERE id = %s", [invocation.pk])
        row = cursor.fetchone()
    return json.loads(row[0]) if row and row[0] else None


def load_profile(invocation: Invocation) -> Profile:
    """What the call may reach. Raises :class:`UnreadableProfile`, and what reading a profile of another shape raises."""
    try:
        return _load(invocation.tenant_id, invocation.profile_hash)
    except MissingProfile:
        return _read(_find_in_row(invocation), invocation.profile_hash)


@lru_cache(maxsize=4096)
def _load(tenant_id: UUID, digest: str) -> Profile:
    """Kept by each process: what has a digest stays what it is."""
    return _read(_find_kept(tenant_id, digest), digest)


def _read(document: Any, digest: str) -> Profile:
    if document is None:
        raise MissingProfile(f"The profile {digest} is not there.")
    if compute_digest(document) != digest:
        raise UnreadableProfile(f"The profile {digest} is another.")
    return Profile.from_json(document)
