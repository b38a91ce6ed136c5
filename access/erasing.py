"""What becomes of a person's consents when the person is erased?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from access.consents import end_consents_of
from access.models import Consent
from evidence.holders import HOLDERS

if TYPE_CHECKING:
    from evidence.holders import Who
    from toolhub.kernel.principal import Principal


class Consents:
    """The holder of consents that are for one person (:mod:`evidence.holders`)."""

    def count(self, who: Who) -> Counter[str]:
        rows = Consent.objects.filter(tenant_id=who.tenant_id, user_fingerprint=who.subject)
        return +Counter(consents=rows.count())

    def end_open(self, who: Who, *, by: Principal) -> bool:
        """They end with the rest: nothing goes on by itself because of one."""
        del who, by
        return False

    def remove(self, who: Who, *, limit: int) -> Counter[str]:
        gone = end_consents_of(tenant_id=who.tenant_id, user_fingerprint=who.subject, limit=limit)
        return +Counter(consents=gone)


HOLDERS.append(Consents())
