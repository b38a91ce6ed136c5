"""Services of access: those that others call. Each lives in a module of its own; this is the list.

People: :mod:`access.members.services`. Agents and keys: :mod:`access.agents.services`. What agents are given:
:mod:`access.grants.services`,
:mod:`access.consents.services`.
"""

from __future__ import annotations

from access.agents.services import (
    KEY_LIFETIME,
    create_agent,
    create_key,
    disable_agent,
    enable_agent,
    revoke_key,
    rotate_key,
)
from access.grants.services import give_grant, revoke_grant
from access.members.services import create_tenant, end_membership, give_membership, group_name, sync_roles

__all__ = [
    "KEY_LIFETIME",
    "create_agent",
    "create_key",
    "create_tenant",
    "disable_agent",
    "enable_agent",
    "end_membership",
    "give_grant",
    "give_membership",
    "group_name",
    "revoke_grant",
    "revoke_key",
    "rotate_key",
    "sync_roles",
]
