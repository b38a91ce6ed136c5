"""Leaves of tenants and of people: roles, permissions, invitations and sign-in."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, MaybeWritten, SearchTerm, leaf_data


@leaf_data(Kind.TENANT_CREATED)
class CreatedTenant(LeafData):
    """That a tenant was created."""

    slug: Annotated[str, "its short name"]
    by: Annotated[str | None, "the owner of the hub who did it"] = None


@leaf_data(Kind.MEMBERSHIP_GIVEN, Kind.MEMBERSHIP_ENDED)
class ChangedRole(LeafData):
    """Which role a person got or lost."""

    role: Annotated[str, "in the tenant"]
    reason: MaybeWritten = None


@leaf_data(Kind.PERMISSION_GIVEN, Kind.PERMISSION_TAKEN)
class PersonPermission(LeafData):
    """Which permission a person got or lost beside their roles, or a role with a new version of the hub."""

    permission: Annotated[str | None, "its name"] = None
    tool: Annotated[str | None, "on this tool only"] = None
    agent: Annotated[str | None, "on this agent only", SearchTerm("agent")] = None
    roles: Annotated[dict[str, dict[str, list[str]]] | None, "by role: permissions given and taken"] = None


@leaf_data(Kind.PERSON_INVITED)
class Invitation(LeafData):
    """What became of an invitation."""

    roles: Annotated[list[str] | None, "that the person is to have"] = None
    again: Annotated[bool | None, "true: the link was sent again"] = None
    accepted: Annotated[bool | None, "true: the person has come"] = None
    withdrawn: Annotated[bool | None, "true: the link works no more"] = None
    reset: Annotated[bool | None, "true: every way in was taken, and a link for a new one given"] = None
    reason: MaybeWritten = None


@leaf_data(Kind.PERSON_PASSWORD_SET)
class SetPassword(LeafData):
    """How a person got a password."""

    how: Annotated[str, "`first`, `changed` or `by a link`"]


@leaf_data(Kind.PERSON_FACTOR_ADDED, Kind.PERSON_FACTOR_REMOVED)
class SecondFactor(LeafData):
    """Which second factor; never the name that somebody gave it."""

    factor: Annotated[str, "`totp`, `webauthn` or `recovery_codes`"]
    id: Annotated[int, "of the row"]


@leaf_data(Kind.PERSON_ACCOUNT_LINKED, Kind.PERSON_ACCOUNT_UNLINKED)
class LinkedAccount(LeafData):
    """With which identity provider a person signs in."""

    provider: Annotated[str, "of the account"]
