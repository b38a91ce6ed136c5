"""Erasure of exports: what exports keep of persons, and how it goes.

An export that holds opened values goes as a whole when anybody of its tenant is forgotten: whose values they are nobody looks into.
What was written about why values were opened goes as well, also of exports that have ended.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evidence.erasures.holders import ERASED, HOLDERS
from evidence.exports.jobs import forget_opened_exports, with_opened_values
from evidence.models import ExportJob, Fact
from evidence.services import erase_free_text

if TYPE_CHECKING:
    from evidence.erasures.holders import ErasureSubject
    from kernel.principal import Principal

NAME = "opened exports"


class OpenedExports:
    def count(self, who: ErasureSubject) -> Counter[str]:
        return +Counter({NAME: with_opened_values(who.tenant_id).count()})

    def end_open(self, who: ErasureSubject, *, by: Principal) -> bool:
        del who, by
        return False  # one that is being made is taken away like one that is made

    def remove(self, who: ErasureSubject, *, limit: int) -> Counter[str]:
        del limit  # a tenant has a hundred at most
        gone = forget_opened_exports(who.tenant_id)
        asked = ExportJob.objects.filter(tenant_id=who.tenant_id, opens=True).exclude(reason=ERASED)
        facts = Fact.objects.filter(subject__in=[job.wire_id for job in asked])
        erase_free_text(facts, tenant_id=who.tenant_id, erasure=who.erasure)
        asked.update(reason=ERASED)
        return +Counter({NAME: gone})


HOLDERS.append(OpenedExports())
