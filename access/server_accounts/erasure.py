"""Erasure of server accounts: what becomes of a person's accounts when the person is erased.

Their tokens are under the person's key, which is destroyed before anything else; here the rows say that they are gone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from access.models import ServerAccount
from access.server_accounts.services import OPEN, end_erased_accounts
from evidence import services as evidence
from evidence.erasures.holders import HOLDERS
from kernel.ids import encode_user

if TYPE_CHECKING:
    from uuid import UUID

    from evidence.erasures.holders import ErasureSubject
    from kernel.principal import Principal


def _find_open(who: ErasureSubject) -> list[UUID]:
    """Of a person by keyed hash: those of the tenant's members who have accounts are few."""
    rows = ServerAccount.objects.filter(tenant_id=who.tenant_id, state__in=OPEN).order_by("pk")
    members = {
        member
        for member in rows.values_list("member_id", flat=True)
        if evidence.compute_user_fingerprint(encode_user(member), tenant_id=who.tenant_id) == who.subject
    }
    return list(rows.filter(member_id__in=members).values_list("pk", flat=True)) if members else []


class ServerAccountHolder:
    """The holder of accounts at servers elsewhere (:mod:`evidence.erasures.holders`)."""

    def count(self, who: ErasureSubject) -> Counter[str]:
        return +Counter(server_accounts=len(_find_open(who)))

    def end_open(self, who: ErasureSubject, *, by: Principal) -> bool:
        """They end with the rest: a call that goes on with one is ended by itself."""
        del who, by
        return False

    def remove(self, who: ErasureSubject, *, limit: int) -> Counter[str]:
        return +Counter(server_accounts=end_erased_accounts(_find_open(who)[:limit], tenant_id=who.tenant_id))


HOLDERS.append(ServerAccountHolder())
