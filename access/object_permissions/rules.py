"""Object permissions: what a person may do with one thing, beyond what they may do in the whole tenant.

An exception is a permission that a person holds on a single tool or agent (django-guardian). It is looked up when it is asked
for, so that one that was taken back counts no more with the next request. Keys carry none: their scopes are bounded by what
their giver may do in the whole tenant.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.models import ContentType
from guardian.models import UserObjectPermission

from access.models import Tenant
from kernel.principal import ActorKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from kernel.principal import Principal


def list_object_permissions(thing: Any) -> dict[str, str]:
    """The permissions that can be held on it alone, with their labels."""
    return dict(thing._meta.permissions)


def build_permission_data(permission: str, thing: Any) -> dict[str, Any]:
    """As facts say it: ``{"permission": "tools.operate", "tool": "commerce.cart.add"}``; of the whole tenant without a thing."""
    named = {} if isinstance(thing, Tenant) else {thing._meta.model_name: getattr(thing, "wire_id", str(thing))}
    return {"permission": permission} | named


def allowed_on(by: Principal, thing: Any) -> frozenset[str]:
    """Everything that somebody may do in the tenant, and what they may do with this thing alone."""
    if (
        by.kind is not ActorKind.USER
        or thing.tenant_id != by.tenant_id
        or by.allowed >= list_object_permissions(thing).keys()
    ):
        return by.allowed
    rows = UserObjectPermission.objects.filter(
        user_id=by.id.removeprefix("usr_"),
        permission__content_type=ContentType.objects.get_for_model(thing),
        object_pk=str(thing.pk),
    )
    return by.allowed | frozenset(rows.values_list("permission__codename", flat=True))


def held_on(find: Callable[..., Any], *also: str) -> Callable[..., bool]:
    """For ``@needs(…, held=on(find))``: the permission of the view, or one of ``also``, on what its address names.

    ``find(by, **kwargs)`` gives the thing, or None when this tenant has no such thing.
    """

    def held(by: Principal, permission: str, **kwargs: Any) -> bool:
        thing = find(by, **kwargs)
        return thing is not None and not allowed_on(by, thing).isdisjoint({permission, *also})

    held.find = find  # type: ignore[attr-defined]
    return held


def user_object_permissions(user: Any, *, tenant_id: UUID) -> list[tuple[str, Any]]:
    """The permissions that a person holds on single things of this tenant, each with the thing."""
    return load_object_permissions(tenant_id, users=[user.pk]).get(user.pk, [])


def load_object_permissions(tenant_id: UUID, *, users: Any) -> dict[int, list[tuple[str, Any]]]:
    """The same for many people, by their ids."""
    rows = UserObjectPermission.objects.filter(user__in=users).select_related("permission__content_type")
    held: dict[Any, list[UserObjectPermission]] = defaultdict(list)
    for row in rows.exclude(permission__content_type=ContentType.objects.get_for_model(Tenant)):
        held[row.permission.content_type.model_class()].append(row)
    found: dict[int, list[tuple[str, Any]]] = defaultdict(list)
    for model, of_model in held.items():
        things = model.objects.filter(tenant_id=tenant_id, pk__in={row.object_pk for row in of_model})
        by_pk = {str(thing.pk): thing for thing in things}
        for row in of_model:
            if row.object_pk in by_pk:
                found[row.user_id].append((row.permission.codename, by_pk[row.object_pk]))
    for each in found.values():
        each.sort(key=lambda one: (one[1]._meta.model_name, str(one[1]), one[0]))
    return found


def object_permission_holders(thing: Any, *, by: Principal) -> list[dict[str, Any]]:
    """Who holds what on this thing alone, for who may see people: a list of {user, name, label}."""
    if not by.may("members.view"):
        return []
    rows = UserObjectPermission.objects.filter(
        permission__content_type=ContentType.objects.get_for_model(thing), object_pk=str(thing.pk)
    )
    rows = rows.select_related("user", "permission").order_by("user__username", "permission__codename")
    labels = list_object_permissions(thing)
    return [
        {"user": row.user, "name": row.permission.codename, "label": labels.get(row.permission.codename, "")}
        for row in rows
    ]
