"""Member principals: as whom a person acts in a tenant at this moment, for what goes on without a request of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.middleware import principal_of_user
from access.models import Membership

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal


def find_member_principal(wire_id: str, *, tenant_id: UUID) -> Principal | None:
    """None: the person has left the tenant, or may not sign in."""
    rows = Membership.objects.filter(
        tenant_id=tenant_id, user_id=wire_id.removeprefix("usr_"), user__is_active=True
    ).select_related("user", "tenant")
    member = rows.first()
    return principal_of_user(member.user, member.tenant) if member is not None else None
