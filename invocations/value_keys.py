"""Value keys: the key that the values of a call are sealed with, and whether anybody is left whom they may be kept of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from django.db import IntegrityError

from evidence.keys.subject_keys import choose_key_subject, get_subject_key, is_in_use
from evidence.models import SubjectKey

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from invocations.calls import IncomingCall
    from invocations.models import Invocation
    from kernel.principal import Principal

Written = TypeVar("Written")


def get_callers_key(user_fingerprint: str, *, at: datetime, by: Principal) -> SubjectKey:
    """For what an agent asks for at this moment: the key of the person it is made for, or the agent's own."""
    subject = choose_key_subject(user_fingerprint, agent_id=by.agent(), at=at)
    return get_subject_key(tenant_id=by.tenant_id, subject=subject)


def write_under_key(incoming: IncomingCall, write: Callable[[IncomingCall], Written]) -> Written:
    """Write a call down under the key that was read before; under the one that is in use now, where that one was destroyed since."""
    try:
        return write(incoming)
    except IntegrityError:
        if incoming.key is None or is_in_use(incoming.key):
            raise
        return write(replace(incoming, key=None))


def find_values_key(invocation: Invocation) -> SubjectKey:
    """The call's own. One that was accepted by an older version of the hub has none; its person's is taken."""
    if invocation.values_key is not None:
        return invocation.values_key
    subject = choose_key_subject(invocation.user_fingerprint, agent_id=invocation.agent_id, at=invocation.created_at)
    return get_subject_key(tenant_id=invocation.tenant_id, subject=subject)


def known_key_of(invocation: Invocation) -> SubjectKey | None:
    """The same for whoever only reads: no key is made, and none is held on to. None where there is none in use."""
    if invocation.values_key is not None:
        return invocation.values_key
    subject = choose_key_subject(invocation.user_fingerprint, agent_id=invocation.agent_id, at=invocation.created_at)
    rows = SubjectKey.objects.select_related("tenant_key")
    return rows.filter(tenant_id=invocation.tenant_id, subject=subject, destroyed_at=None).first()


def is_forgotten(invocation: Invocation) -> bool:
    """Whether the call's person was erased: of what it returns nothing is kept."""
    return invocation.values_key is not None and invocation.values_key.destroyed_at is not None


def recheck_forgotten(invocation: Invocation) -> bool:
    """Look again, after the database has refused a value: whether its key was destroyed since the row was read."""
    if invocation.values_key_id is None or is_forgotten(invocation):
        return False
    invocation.values_key = SubjectKey.objects.select_related("tenant_key").get(pk=invocation.values_key_id)
    return is_forgotten(invocation)
