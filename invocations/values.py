"""Which key are the values of a call sealed with, and is there anybody left whom they may be kept of?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.keys import key_of, subject_of
from evidence.models import SubjectKey

if TYPE_CHECKING:
    from invocations.models import Invocation


def values_key_of(invocation: Invocation) -> SubjectKey:
    """The call's own. One that was accepted by an older version of the hub has none; its person's is taken."""
    if invocation.values_key is not None:
        return invocation.values_key
    subject = subject_of(invocation.user_fingerprint, agent_id=invocation.agent_id, at=invocation.created_at)
    return key_of(tenant_id=invocation.tenant_id, subject=subject)


def is_forgotten(invocation: Invocation) -> bool:
    """Whether the call's person was erased: of what it returns nothing is kept."""
    return invocation.values_key is not None and invocation.values_key.destroyed_at is not None


def was_forgotten_meanwhile(invocation: Invocation) -> bool:
    """Look again, after the database has refused a value: whether its key was destroyed since the row was read."""
    if invocation.values_key_id is None or is_forgotten(invocation):
        return False
    invocation.values_key = SubjectKey.objects.select_related("tenant_key").get(pk=invocation.values_key_id)
    return is_forgotten(invocation)
