"""Cast rows: tenants and people as the services of members make them, facts and all, written without asking the database in between.

Two thirds of what a usual test took before it began was to make a tenant and three people. How these come about has tests of its own,
and one of them holds these rows against the services' (tests/integration/access/members/test_cast_rows.py).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection, transaction
from guardian.ctypes import get_content_type

from access.members.services import group_name
from access.models import Membership, Tenant
from access.roles import ROLE_PERMISSIONS, Role
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.people import ChangedRole, CreatedTenant
from kernel.database.prepared_statements import execute_prepared_later
from kernel.database.rows import insert_row
from kernel.ids import encode_user
from kernel.principal import Principal
from tests.support.savepoints import without_savepoints

if TYPE_CHECKING:
    from collections.abc import Iterable

PASSWORD = "correct horse battery staple"
JOIN_GROUP = "INSERT INTO auth_user_groups (user_id, group_id) SELECT %s, id FROM auth_group WHERE name = %s"


@without_savepoints()
@transaction.atomic
def write_tenant(*, slug: str, name: str) -> Tenant:
    """As ``create_tenant`` at the set-up of a hub."""
    tenant = insert_row(Tenant(slug=slug, name=name))
    for statement, parameters in _make_groups(tenant):
        _write(statement, parameters)
    evidence.record(
        kind=Kind.TENANT_CREATED,
        subject=tenant.wire_id,
        actor=Principal.system("setup", tenant_id=tenant.pk),
        data=CreatedTenant(slug=slug, by=None),
    )
    return tenant


@without_savepoints()
@transaction.atomic
def write_person(tenant: Tenant, username: str, roles: Iterable[Role]) -> Any:
    """A user who has just been given these roles by the system."""
    by = Principal.system("test", tenant_id=tenant.pk)
    user = get_user_model().objects.create_user(username=username, password=PASSWORD, first_name=username.title())
    for role in dict.fromkeys(roles):
        insert_row(Membership(tenant=tenant, user=user, role=role))
        _write(JOIN_GROUP, [user.pk, group_name(tenant, role)])
        said = ChangedRole(role=str(role), reason=None)
        evidence.record(kind=Kind.MEMBERSHIP_GIVEN, subject=encode_user(user.pk), actor=by, data=said)
    return user


def _make_groups(tenant: Tenant) -> list[tuple[str, list[Any]]]:
    prefix = group_name(tenant, Role.OWNER).removesuffix(Role.OWNER)
    groups, permissions = _build_statements()
    return [(groups, [prefix]), (permissions, [str(tenant.pk), prefix])]


@cache
def _build_statements() -> tuple[str, str]:
    """Of the groups, and of what they may do. Content types and permissions stay as they are while tests run."""
    of_tenant = get_content_type(Tenant)
    ids = dict(Permission.objects.filter(content_type=of_tenant).values_list("codename", "pk"))
    roles = ", ".join(f"('{role}')" for role in ROLE_PERMISSIONS)
    allowed = ", ".join(f"('{role}', {ids[each]})" for role, some in ROLE_PERMISSIONS.items() for each in sorted(some))
    return (
        f"WITH roles (role) AS (VALUES {roles}) INSERT INTO auth_group (name) SELECT %s || role FROM roles",
        f"WITH allowed (role, permission) AS (VALUES {allowed}) INSERT INTO guardian_groupobjectpermission"
        f" (content_type_id, object_pk, permission_id, group_id) SELECT {of_tenant.pk}, %s, permission, id"
        " FROM allowed JOIN auth_group ON name = %s || role",
    )


def _write(statement: str, parameters: list[Any]) -> None:
    if connection.vendor == "postgresql":
        execute_prepared_later(statement.encode(), parameters)
        return
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
