"""Value reader: sealed values of calls as one person looks at them, the first look at each being a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidence.kinds import Kind
from evidence.models import Fact, Snapshot, SnapshotKind
from evidence.problems import ValuesErased
from evidence.services import open_values, reveal_values

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kernel.principal import Principal


class ValueReader:
    """What one person may see of values: each is a fact the first time."""

    def __init__(self, ids: Iterable[UUID], *, reason: str, by: Principal) -> None:
        self.by, self.reason = by, reason
        rows = Snapshot.objects.filter(tenant_id=by.tenant_id, invocation_id__in=list(ids))
        self._rows = {(row.invocation_id, str(row.kind)): row for row in rows}
        looked = Fact.objects.filter(
            tenant_id=by.tenant_id,
            kind=Kind.SNAPSHOT_READ,
            actor_id=by.id,
            subject__in=[row.wire_id for row in self._rows.values()],
        )
        self._seen = set(looked.values_list("subject", flat=True))

    def read(self, id: UUID, kind: SnapshotKind) -> Any:
        """None when it is gone: erased, or kept no longer."""
        row = self._rows.get((id, str(kind)))
        if row is None:
            return None
        try:
            if row.wire_id in self._seen:
                return open_values(row)
            return reveal_values(snapshot=row, reason=self.reason, by=self.by)
        except ValuesErased:
            return None
