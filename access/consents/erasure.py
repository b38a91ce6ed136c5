"""Erasure of consents: what becomes of a person's consents when the person is erased."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from access.consents.services import end_subject_consents
from access.models import Consent
from evidence.erasures.holders import HOLDERS

if TYPE_CHECKING:
    from evidence.erasures.holders import ErasureSubject
    from kernel.principal import Principal


class ConsentHolder:
    """The holder of consents that are for one person (:mod:`evidence.erasures.holders`)."""

    def count(self, who: ErasureSubject) -> Counter[str]:
        rows = Consent.objects.filter(tenant_id=who.tenant_id, user_fingerprint=who.subject)
        return +Counter(consents=rows.count())

    def end_open(self, who: ErasureSubject, *, by: Principal) -> bool:
        """They end with the rest: nothing goes on by itself because of one."""
        del who, by
        return False

    def remove(self, who: ErasureSubject, *, limit: int) -> Counter[str]:
        gone = end_subject_consents(
            tenant_id=who.tenant_id, user_fingerprint=who.subject, erasure=who.erasure, limit=limit
        )
        return +Counter(consents=gone)


HOLDERS.append(ConsentHolder())
