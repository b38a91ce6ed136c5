"""Members: who belongs to a tenant, in which roles, and how somebody comes to belong.

A role is a group that holds permissions on the tenant (django-guardian); one person may also hold a single permission, in the
whole tenant or on one thing alone.
Whoever gives a role never gives it to themselves, and a tenant is never left without an owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, transaction
from guardian.ctypes import get_content_type
from guardian.models import GroupObjectPermission
from guardian.shortcuts import assign_perm, get_perms, get_user_perms, remove_perm

from access.connections.services import end_connections_of
from access.models import Membership, Tenant
from access.object_permissions.rules import build_permission_data, list_object_permissions, user_object_permissions
from access.problems import LastOwner, SelfApproval
from access.roles import HUB_OWNERS, ROLE_PERMISSIONS, Role
from access.server_accounts.services import end_accounts_of
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.people import ChangedRole, CreatedTenant, PersonPermission
from kernel.database.tenancy import hub_wide
from kernel.ids import encode_user
from kernel.principal import ActorKind, Principal
from kernel.problems import Conflict, Forbidden, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet


RESET = f"{UNUSABLE_PASSWORD_PREFIX}reset-"  # begins the password, which nothing matches, of somebody whose sign-in was reset


def group_name(tenant: Tenant, role: Role) -> str:
    return f"{tenant.wire_id}:{role}"


@transaction.atomic
def create_tenant(*, slug: str, name: str, by: Principal | None = None, owner: Any = None) -> Tenant:
    """A tenant with the groups of its roles. ``by`` is the hub's owner; at setup nobody is there yet to do it.

    ``owner`` is the first person of it, without whom nobody could invite anybody.
    """
    if by is not None:
        by.check("hub.manage")
    try:
        with transaction.atomic():
            tenant = Tenant.objects.create(slug=slug, name=name)
    except IntegrityError as error:
        raise Conflict(f"There is a tenant with the short name {slug} already.") from error
    _make_groups(tenant)
    evidence.record(
        kind=Kind.TENANT_CREATED,
        subject=tenant.wire_id,
        actor=Principal.system("setup", tenant_id=tenant.pk),
        data=CreatedTenant(slug=slug, by=by.id if by else None),
    )
    if owner is not None:
        setup = Principal.system("setup", tenant_id=tenant.pk)
        give_membership(tenant=tenant, user=owner, role=Role.OWNER, by=setup)
    return tenant


def _make_groups(tenant: Tenant) -> None:
    """The groups of a new tenant's roles. All at once: guardian asks the database seven times for each of their permissions."""
    of_tenant = get_content_type(Tenant)
    permissions = dict(Permission.objects.filter(content_type=of_tenant).values_list("codename", "pk"))
    roles = list(ROLE_PERMISSIONS.items())
    groups = Group.objects.bulk_create(Group(name=group_name(tenant, Role(role))) for role, _ in roles)
    GroupObjectPermission.objects.bulk_create(
        GroupObjectPermission(
            group_id=group.pk,
            permission_id=permissions[permission],
            content_type_id=of_tenant.pk,
            object_pk=str(tenant.pk),
        )
        for group, (_, allowed) in zip(groups, roles, strict=True)
        for permission in sorted(allowed)
    )


@transaction.atomic
def sync_roles() -> int:
    """Give the groups of every tenant what their role allows in this version, and take what it no longer does.

    Runs after each migration; returns in how many tenants something changed.
    """
    changed = 0
    for tenant in Tenant.objects.order_by("pk"):
        difference: dict[str, dict[str, list[str]]] = {}
        for role, wanted in ROLE_PERMISSIONS.items():
            group, _ = Group.objects.get_or_create(name=group_name(tenant, Role(role)))
            held = set(get_perms(group, tenant))
            given, taken = sorted(wanted - held), sorted(held - wanted)
            for permission in given:
                assign_perm(f"access.{permission}", group, tenant)
            for permission in taken:
                remove_perm(f"access.{permission}", group, tenant)
            if given or taken:
                difference[str(role)] = {"given": given, "taken": taken}
        if difference:
            changed += 1
            evidence.record(
                kind=Kind.PERMISSION_GIVEN,
                subject=tenant.wire_id,
                actor=Principal.system("upgrade", tenant_id=tenant.pk),
                data=PersonPermission(roles=difference),
            )
    return changed


def find_members(tenant_id: UUID, *, role: str = "") -> Any:
    """Everybody who belongs to a tenant, once each; with a ``role`` those who hold it."""
    held = Membership.objects.filter(tenant_id=tenant_id)
    if role:
        held = held.filter(role=role)
    return get_user_model().objects.filter(pk__in=held.values("user_id"))


def has_never_come(user: Any) -> bool:
    """Somebody who could never sign in, or whose sign-in was reset: a link lets them choose a password."""
    return bool(user.is_active and not user.has_usable_password() and user.last_login is None)


def find_tenant_ids(user: Any) -> set[UUID]:
    with hub_wide():
        return set(Membership.objects.filter(user=user).values_list("tenant_id", flat=True))


def check_is_known(user: Any, *, tenant_id: UUID, invited: bool = False) -> None:
    """Who comes first with the link that one tenant made is whoever holds it: another tenant gives them nothing before.

    ``invited``: every link from before has just ended. Without, nobody has invited whoever belongs to no tenant.
    """
    if not has_never_come(user):
        return
    fresh = get_user_model().objects.select_for_update().get(pk=user.pk)  # two tenants at the same time
    if not has_never_come(fresh) or fresh.password.startswith(RESET):
        return
    tenants = find_tenant_ids(fresh)
    if tenants - {tenant_id}:
        raise Conflict(
            f"Another tenant has invited {fresh.get_username()}, who has not come yet.",
            remedy="Ask them to accept that invitation first, or invite them under another user name.",
        )
    if not (tenants or invited):
        raise Conflict(
            f"{fresh.get_username()} has never come, and nobody invites them now.", remedy="Invite them first."
        )


def is_owner(by: Principal) -> bool:
    """Of this tenant or of the whole hub; or the hub itself."""
    if by.kind is ActorKind.SYSTEM or by.may("hub.manage"):
        return True
    return Membership.objects.filter(
        tenant_id=by.tenant_id, role=Role.OWNER, user_id=by.id.removeprefix("usr_")
    ).exists()


def check_can_change(user: Any, *, role: str = "", by: Principal) -> None:
    """Nobody changes what they themselves may do; only owners make owners, end them, or give single permissions; no agent does any."""
    if by.kind is ActorKind.AGENT:
        raise Forbidden("Only people change what people may do.", remedy="Ask an owner of the tenant.")
    if by.id == encode_user(user.pk):
        raise SelfApproval("Nobody changes their own roles.", remedy="Ask another owner of the tenant.")
    if role in ("", Role.OWNER) and not is_owner(by):
        raise Forbidden("Only an owner of the tenant does that.", remedy="Ask an owner of the tenant.")


@transaction.atomic
def give_membership(
    *, tenant: Tenant, user: Any, role: Role, by: Principal, reason: str = "", invited: bool = False
) -> Membership:
    """Let a person act in a role. Giving the same role twice changes nothing. ``invited``: as in :func:`check_is_known`."""
    if tenant.pk != by.tenant_id:
        raise Tenant.DoesNotExist
    check_can_change(user, role=role, by=by)
    check_is_known(user, tenant_id=tenant.pk, invited=invited)
    membership, created = Membership.objects.get_or_create(tenant=tenant, user=user, role=role)
    if created:
        user.groups.add(Group.objects.get(name=group_name(tenant, role)))
        if role == Role.OWNER and not invited:  # what only owners give is not for whoever holds a link from before
            _end_links(user)
        said = ChangedRole(role=str(role), reason=reason.strip() or None)
        evidence.record(kind=Kind.MEMBERSHIP_GIVEN, subject=encode_user(user.pk), actor=by, data=said)
    return membership


@transaction.atomic
def end_membership(*, user_id: int, role: Role, by: Principal, reason: str = "") -> None:
    """Take a role back; it stops counting with the next request. With the last one the person leaves the tenant."""
    # One at a time: two owners must not end each other. Always the tenant before the person.
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)
    membership = Membership.objects.select_related("user").get(tenant=tenant, user_id=user_id, role=role)
    user = membership.user
    check_can_change(user, role=role, by=by)
    if role == Role.OWNER and Membership.objects.filter(tenant=tenant, role=Role.OWNER).count() == 1:
        raise LastOwner(remedy="Make somebody else an owner first.")
    user.groups.remove(Group.objects.get(name=group_name(tenant, role)))
    membership.delete()
    said = ChangedRole(role=str(role), reason=reason.strip() or None)
    evidence.record(kind=Kind.MEMBERSHIP_ENDED, subject=encode_user(user.pk), actor=by, data=said)
    if not Membership.objects.filter(tenant=tenant, user=user).exists():
        beside = [(permission, tenant) for permission in sorted(get_user_perms(user, tenant))]
        for permission, thing in [*beside, *user_object_permissions(user, tenant_id=tenant.pk)]:
            _take(user, permission, thing, by=by)
        end_connections_of(user, tenant_id=tenant.pk, by=by)
        end_accounts_of(user, tenant_id=tenant.pk, by=by)
        _end_links(user)


def _end_links(user: Any) -> None:
    """The invitations of somebody who has not come yet work no more. One whose sign-in was reset comes back all the same."""
    fresh = get_user_model().objects.select_for_update().get(pk=user.pk)
    if has_never_come(fresh) and not fresh.password.startswith(RESET):
        fresh.set_unusable_password()  # another that nothing matches: links are bound to it
        fresh.save(update_fields=["password"])


def set_roles(
    *, tenant: Tenant, user: Any, roles: set[str], by: Principal, reason: str = "", invited: bool = False
) -> None:
    """The roles that a person has from now on; nothing is half-done when one of the changes is refused."""
    with transaction.atomic():
        held = set(Membership.objects.filter(tenant=tenant, user=user).values_list("role", flat=True))
        for role in sorted(roles - held):
            give_membership(tenant=tenant, user=user, role=Role(role), reason=reason, by=by, invited=invited)
        for role in sorted(held - roles):
            end_membership(user_id=user.pk, role=Role(role), reason=reason, by=by)


def _member(user_id: int, on: Any, by: Principal) -> tuple[Any, Any]:
    """Somebody of this tenant whose permissions ``by`` may change, and what they are held on; nobody leaves meanwhile."""
    tenant = Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)
    user = Membership.objects.filter(tenant=tenant, user_id=user_id).select_related("user")[:1].get().user
    check_can_change(user, by=by)
    if on is not None and on.tenant_id != by.tenant_id:
        raise type(on).DoesNotExist
    return user, on or tenant


@transaction.atomic
def give_permission(*, user_id: int, permission: str, by: Principal, on: Any = None) -> None:
    """One permission for one person, beside their roles: in the whole tenant, or ``on`` a single tool or agent of it."""
    user, thing = _member(user_id, on, by)
    if permission not in list_object_permissions(thing):
        message = f"There is no permission {permission[:60]} on a {thing._meta.model_name}."
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/permission", "message": message}]})
    if permission in get_user_perms(user, thing):
        raise Conflict("This person holds the permission already.")
    assign_perm(f"{thing._meta.app_label}.{permission}", user, thing)
    _end_links(user)
    _witness(Kind.PERMISSION_GIVEN, user, PersonPermission(**build_permission_data(permission, thing)), by=by)


@transaction.atomic
def take_permission(*, user_id: int, permission: str, by: Principal, on: Any = None) -> None:
    user, thing = _member(user_id, on, by)
    if permission not in get_user_perms(user, thing):
        raise Conflict("This person does not hold the permission beside their roles.")
    _take(user, permission, thing, by=by)


def _take(user: Any, permission: str, thing: Any, *, by: Principal) -> None:
    remove_perm(f"{thing._meta.app_label}.{permission}", user, thing)
    _witness(Kind.PERMISSION_TAKEN, user, PersonPermission(**build_permission_data(permission, thing)), by=by)


def _witness(kind: Kind, user: Any, said: PersonPermission, *, by: Principal) -> None:
    evidence.record(kind=kind, subject=encode_user(user.pk), actor=by, tool=said.tool or "", data=said)


def hub_owners() -> QuerySet[Any]:
    return get_user_model().objects.filter(groups__name=HUB_OWNERS, is_active=True).order_by("username")


def _check_hub_owner_by(user: Any, by: Principal) -> None:
    if by.kind is ActorKind.SYSTEM:
        return
    by.check("hub.manage")
    if by.id == encode_user(user.pk):
        raise SelfApproval("Nobody decides on their own ownership of the hub.", remedy="Ask another owner of the hub.")


@transaction.atomic
def make_hub_owner(*, user: Any, by: Principal) -> None:
    """Let a person manage the whole hub."""
    _check_hub_owner_by(user, by)
    group, _ = Group.objects.get_or_create(name=HUB_OWNERS)
    if user.groups.filter(pk=group.pk).exists():
        raise Conflict(f"{user.get_username()} owns the hub already.")
    user.groups.add(group)
    evidence.record(
        kind=Kind.PERMISSION_GIVEN,
        subject=encode_user(user.pk),
        actor=by,
        data=PersonPermission(permission="hub.manage"),
    )


@transaction.atomic
def end_hub_ownership(*, user: Any, by: Principal) -> None:
    """Whoever does so owns the hub and stays, so it is never without an owner."""
    group = Group.objects.select_for_update().get(name=HUB_OWNERS)
    if not user.groups.filter(pk=group.pk).exists():
        raise Conflict(f"{user.get_username()} does not own the hub.")
    _check_hub_owner_by(user, by)
    if not hub_owners().exclude(pk=user.pk).exists():
        raise LastOwner("The hub needs an owner.", remedy="Make somebody else an owner first.")
    user.groups.remove(group)
    evidence.record(
        kind=Kind.PERMISSION_TAKEN,
        subject=encode_user(user.pk),
        actor=by,
        data=PersonPermission(permission="hub.manage"),
    )
