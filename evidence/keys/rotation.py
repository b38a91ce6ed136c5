"""Rotation: how stored values come under a new master key.

Only the small wrapped keys are written anew, never the values. Batches are transactions of their own: a rotation that was
interrupted goes on where it stopped, and old keys stay in the file until nothing is wrapped with them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from evidence import services as evidence
from evidence.keys.keystore import get_keystore
from evidence.keys.wrapped_keys import SEALED, SealedColumn
from evidence.kinds import Kind
from evidence.leaves.hub import RotatedMasterKey
from evidence.problems import KeyUnavailable
from kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

BATCH = 200


@dataclass(slots=True)
class RotationResult:
    """How many keys of what were wrapped anew, in all and by tenant; and what no key of the file opens."""

    to: str
    counts: Counter[str] = field(default_factory=Counter)
    by_tenant: dict[UUID, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    unreadable: Counter[str] = field(default_factory=Counter)


def rewrap_everything(
    *, to: str, tenants: Iterable[UUID], said: Callable[[str, int], object] | None = None, batch: int = BATCH
) -> RotationResult:
    """Wrap with the current key ``to`` what older keys wrap, and leave a fact with each tenant."""
    done = RotationResult(to)
    for sealed in SEALED:
        after = None
        while (after := _rewrap_batch(sealed, done, after=after, size=batch)) is not None:
            if said:
                said(sealed.name, done.counts[sealed.name])
    for tenant_id in tenants:
        with transaction.atomic():
            evidence.record(
                kind=Kind.MASTER_KEYS_ROTATED,
                subject=f"hub:key:{to}",
                actor=Principal.system("keys", tenant_id=tenant_id),
                data=RotatedMasterKey(key=to, rewrapped=dict(done.by_tenant[tenant_id])),
            )
    return done


@transaction.atomic
def _rewrap_batch(sealed: SealedColumn, done: RotationResult, *, after: Any, size: int) -> Any:
    """The next rows after the primary key ``after``; returns the last one, None when there is no more."""
    rows = sealed.rows().exclude(**{sealed.key_id: done.to}).order_by("pk")
    if connection.features.has_select_for_update:
        rows = rows.select_for_update()
    if after is not None:
        rows = rows.filter(pk__gt=after)
    batch, changed = list(rows[:size]), []
    for row in batch:
        context = row.tenant_id.bytes
        try:
            plain = get_keystore().unwrap(
                getattr(row, sealed.key_id), bytes(getattr(row, sealed.wrapped)), context=context
            )
        except KeyUnavailable:
            done.unreadable[sealed.name] += 1
            continue
        key_id, wrapped = get_keystore().wrap(plain, context=context)
        setattr(row, sealed.key_id, key_id)
        setattr(row, sealed.wrapped, wrapped)
        changed.append(row)
        done.counts[sealed.name] += 1
        done.by_tenant[row.tenant_id][sealed.name] += 1
    if changed:
        sealed.rows().bulk_update(changed, [sealed.key_id, sealed.wrapped])
    return batch[-1].pk if batch else None
