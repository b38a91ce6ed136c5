"""Held permissions: what a person may do in a tenant, by the roles that they have there and by what was given to them alone.

As django-guardian keeps and names it. Every page asks, so one statement reads all of it; guardian itself would ask twice and have
each question written anew.
"""

from __future__ import annotations

from typing import Any

from django.contrib.contenttypes.models import ContentType
from guardian.shortcuts import get_perms

from access.models import Tenant
from access.roles import HUB_OWNERS, HUB_PERMISSIONS
from kernel.database.prepared_statements import fetch_prepared

OWNS_HUB = ""  # in place of a permission: the person is one of those who manage the whole hub
_HELD = b"""
SELECT p.codename FROM auth_permission p
  JOIN guardian_userobjectpermission o ON o.permission_id = p.id
 WHERE o.user_id = %(user)s AND o.object_pk = %(tenant)s AND o.content_type_id = %(kind)s
UNION
SELECT p.codename FROM auth_permission p
  JOIN guardian_groupobjectpermission o ON o.permission_id = p.id
  JOIN auth_user_groups m ON m.group_id = o.group_id
 WHERE m.user_id = %(user)s AND o.object_pk = %(tenant)s AND o.content_type_id = %(kind)s
UNION
SELECT '' FROM auth_user_groups m JOIN auth_group g ON g.id = m.group_id
 WHERE m.user_id = %(user)s AND g.name = %(owners)s
"""


def read_held_permissions(user: Any, tenant: Tenant) -> frozenset[str]:
    """Nobody holds any who may not sign in. Whoever Django lets do everything is asked of guardian."""
    kind = ContentType.objects.get_for_model(Tenant).pk
    asked = {"user": user.pk, "tenant": str(tenant.pk), "kind": kind, "owners": HUB_OWNERS}
    held = {codename for (codename,) in fetch_prepared(_HELD, asked)}
    of_hub = frozenset(HUB_PERMISSIONS) if OWNS_HUB in held else frozenset()
    if user.is_superuser or not user.is_active:
        return frozenset(get_perms(user, tenant)) | of_hub
    return frozenset(held - {OWNS_HUB}) | of_hub
