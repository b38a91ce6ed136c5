"""Actor: as whom somebody with a shell acts in a tenant.

As a person whom they name, with what this person may do, or as the hub itself. Whoever has a shell has the database as well:
the name decides whose rules hold, and the evidence says beside it that a command did it, not the person's own sign-in.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model

from access.middleware import principal_of_user
from access.models import Tenant
from kernel.database.tenancy import acting_for
from kernel.principal import Principal
from kernel.problems import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

PART = "command"
MAX_NAMED = 20


def find_tenant(slug: str) -> Tenant:
    """By its short name; whoever has a shell may be told which there are."""
    found = Tenant.objects.filter(slug=slug).first()
    if found is None:
        slugs = list(Tenant.objects.order_by("slug").values_list("slug", flat=True)[: MAX_NAMED + 1])
        names = ", ".join(slugs[:MAX_NAMED]) + (" and more" if len(slugs) > MAX_NAMED else "")
        raise NotFound(
            f"There is no tenant with the short name {slug[:40]}.",
            remedy=f"The tenants here: {names}." if names else "There is no tenant here yet.",
        )
    return found


@contextmanager
def acting_in(tenant: Tenant, *, permission: str, username: str = "") -> Iterator[Principal]:
    """Within one tenant, as the database's walls see it too. A person who is named must hold ``permission``; the hub may do all."""
    if username:
        user = get_user_model().objects.filter(username=username, is_active=True).first()
        if user is None:
            raise NotFound(f"There is no person with the user name {username[:150]}.")
        by = replace(principal_of_user(user, tenant), via=PART)
        by.check(permission)
    else:
        by = Principal.system(PART, tenant_id=tenant.pk)
    with acting_for(tenant.pk):
        yield by
