"""Sign-in facts: how it is recorded that somebody changed how they sign in.

django-allauth changes passwords, second factors and linked accounts; this module hears of it. The pages that lead there run in one
transaction (:mod:`access.sign_in.urls`), so the fact stands or falls with the change. It goes to each tenant that the person
belongs to: whoever answers for one of them asks there who could act in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account import signals as account
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.db import transaction
from django.db.models.signals import post_delete, post_save

from access.members.services import find_tenant_ids
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.people import LinkedAccount, SecondFactor, SetPassword
from kernel.database.tenancy import NO_TENANT, acting_for
from kernel.ids import encode_user
from kernel.principal import ActorKind, Principal

if TYPE_CHECKING:
    from django.dispatch import Signal

    from evidence.leaves import LeafData

HOW = {account.password_set: "first", account.password_changed: "changed", account.password_reset: "by a link"}


@transaction.atomic
def record_sign_in_change(kind: Kind, *, user: Any, data: LeafData, by_oneself: bool) -> None:
    for tenant_id in sorted(find_tenant_ids(user)) or [NO_TENANT]:
        person, by = encode_user(user.pk), Principal.system("sign_in", tenant_id=tenant_id)
        if by_oneself:
            by = Principal(kind=ActorKind.USER, id=person, name="", tenant_id=tenant_id)
        with acting_for(tenant_id):
            evidence.record(kind=kind, subject=person, actor=by, data=data)


def _password_set(*, signal: Signal, user: Any, **_: Any) -> None:
    record_sign_in_change(Kind.PERSON_PASSWORD_SET, user=user, data=SetPassword(how=HOW[signal]), by_oneself=True)


# Of rows, since allauth tells of what was added only after the commit. An owner may take factors away as well, and has a fact of
# their own for it.


def _row_made(*, instance: Any, created: bool, **_: Any) -> None:
    if created:
        _tell(instance, Kind.PERSON_FACTOR_ADDED, Kind.PERSON_ACCOUNT_LINKED)


def _row_gone(*, instance: Any, **_: Any) -> None:
    _tell(instance, Kind.PERSON_FACTOR_REMOVED, Kind.PERSON_ACCOUNT_UNLINKED)


def _tell(row: Any, factor: Kind, linked: Kind) -> None:
    """Types and numbers; never the name that somebody gave a passkey, nor an address."""
    if isinstance(row, Authenticator):
        record_sign_in_change(
            factor, user=row.user, data=SecondFactor(factor=str(row.type), id=row.pk), by_oneself=False
        )
    else:
        record_sign_in_change(linked, user=row.user, data=LinkedAccount(provider=row.provider), by_oneself=False)


for each in HOW:
    each.connect(_password_set, dispatch_uid="sign_in_facts")
for model in (Authenticator, SocialAccount):
    post_save.connect(_row_made, sender=model, dispatch_uid="sign_in_facts")
    post_delete.connect(_row_gone, sender=model, dispatch_uid="sign_in_facts")
