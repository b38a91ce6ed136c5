"""Policy cache: the compiled policy that belongs to a version id.

What was published never changes, so it is compiled once a process and kept by its id: there is nothing to invalidate. Who
decides reads the id of the version in force on every call, and a publication counts with the next one everywhere.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from access.models import PolicyState, PolicyVersion
from access.policies.compiler import CompiledPolicy, PolicyUnreadable, compile_policy
from kernel.canonical import compute_digest

if TYPE_CHECKING:
    from uuid import UUID

MAX_COMPILED = 2048
_compiled: dict[UUID, CompiledPolicy] = {}
_lock = Lock()


def compiled_policy(version_id: UUID) -> CompiledPolicy:
    """Of a version that is or was in force; ``PolicyVersion.DoesNotExist`` for any other.

    A document that cannot be read, or is not the one that was published, gives a policy that allows nothing and says why.
    """
    found = _compiled.get(version_id)
    if found is None:
        found = _load(version_id)
        with _lock:
            while len(_compiled) >= MAX_COMPILED:
                del _compiled[next(iter(_compiled))]  # the one that was loaded first
            _compiled[version_id] = found
    return found


def _load(version_id: UUID) -> CompiledPolicy:
    published = [PolicyState.IN_FORCE, PolicyState.SUPERSEDED]
    version = PolicyVersion.objects.get(pk=version_id, state__in=published)
    if compute_digest(version.document) != version.digest:
        return CompiledPolicy(version.label, version.digest, broken="its document is not the one that was published.")
    try:
        return compile_policy(version.document, version.label, version.digest)
    except PolicyUnreadable as error:
        return CompiledPolicy(version.label, version.digest, broken=str(error))


def forget_compiled() -> None:
    """Start as a new process does."""
    with _lock:
        _compiled.clear()
