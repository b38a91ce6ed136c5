"""Cast rows: are the tenants and people of the tests what the services of members make?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import transaction
from guardian.shortcuts import get_group_perms

from access.members import services as members
from access.members.services import group_name
from access.models import Membership, Tenant
from access.roles import Role
from evidence.models import Fact, Pending
from kernel.ids import encode_user
from kernel.principal import Principal
from tests.support.cast_rows import PASSWORD, write_person, write_tenant

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db
ROLES = (Role.OPERATOR, Role.AUDITOR)


def make_by_services() -> tuple[Tenant, Any]:
    tenant = members.create_tenant(slug="acme", name="Acme")
    user = get_user_model().objects.create_user(username="olivia", password=PASSWORD, first_name="Olivia")
    for role in ROLES:
        members.give_membership(tenant=tenant, user=user, role=role, by=Principal.system("test", tenant_id=tenant.pk))
    return tenant, user


def make_by_rows() -> tuple[Tenant, Any]:
    tenant = write_tenant(slug="acme", name="Acme")
    return tenant, write_person(tenant, "olivia", ROLES)


def describe(make: Callable[[], tuple[Tenant, Any]]) -> dict[str, Any]:
    """All that is there of a tenant and a person, without the ids and times that differ each time."""
    tenant, user = make()
    tenant.refresh_from_db()
    user.refresh_from_db()
    prefix = group_name(tenant, Role.OWNER).removesuffix(Role.OWNER)
    groups = {group.name.removeprefix(prefix): group for group in Group.objects.filter(name__startswith=prefix)}
    names = {tenant.wire_id: "tenant", encode_user(user.pk): "person"}
    facts = Fact.objects.filter(tenant_id=tenant.pk).order_by("id")
    leaves = [json.loads(bytes(fact.leaf)) | {"id": "", "at": ""} for fact in facts]
    text = json.dumps(leaves)
    for id, name in names.items():
        text = text.replace(id, name)
    return {
        "tenant": (tenant.slug, tenant.name),
        "allowed": {role: sorted(get_group_perms(group, tenant)) for role, group in groups.items()},
        "person": (user.username, user.first_name, user.check_password(PASSWORD), user.is_active, user.last_login),
        "memberships": sorted(Membership.objects.filter(tenant=tenant, user=user).values_list("role", flat=True)),
        "groups": sorted(role for role, group in groups.items() if group.user_set.filter(pk=user.pk).exists()),
        "leaves": json.loads(text),
        "pending": Pending.objects.filter(tenant_id=tenant.pk).count(),
    }


def test_the_cast_is_what_the_services_of_members_make() -> None:
    with transaction.atomic():
        by_rows = describe(make_by_rows)
        transaction.set_rollback(True)

    assert by_rows["allowed"]
    assert by_rows == describe(make_by_services)
