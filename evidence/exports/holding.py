"""What do exports keep of persons, and how does it go?

An export that holds opened values goes as a whole when anybody of its tenant is forgotten: whose values they are nobody looks into.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evidence.exports.running import forget_opened_exports, with_opened_values
from evidence.holders import HOLDERS

if TYPE_CHECKING:
    from evidence.holders import Who
    from toolhub.kernel.principal import Principal

NAME = "opened exports"


class OpenedExports:
    def count(self, who: Who) -> Counter[str]:
        return +Counter({NAME: with_opened_values(who.tenant_id).count()})

    def end_open(self, who: Who, *, by: Principal) -> bool:
        del who, by
        return False  # one that is being made is taken away like one that is made

    def remove(self, who: Who, *, limit: int) -> Counter[str]:
        del limit  # a tenant has a hundred at most
        return +Counter({NAME: forget_opened_exports(who.tenant_id)})


HOLDERS.append(OpenedExports())
