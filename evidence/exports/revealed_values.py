"""Revealed values: the sealed values that an export holds, and who is told.

Only a person who may reveal values gets them, with a reason; each value is a fact of its own before it is in the export, as when a
person reveals it in the console. What was forgotten or has gone with time is not there, and its commitment stays.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from evidence import services as evidence
from evidence.models import Snapshot
from evidence.problems import KeyUnavailable, ValuesErased
from evidence.verify.bundle import opened_value
from evidence.verify.facts import iter_commitments
from kernel.ids import decode
from kernel.principal import ActorKind, Principal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evidence.models import ExportJob


def export_maker(job: ExportJob) -> Principal:
    """Who asked for the export. What they may do was asked when they did."""
    return Principal(kind=ActorKind(job.actor_kind), id=job.actor_id, name=job.actor_id, tenant_id=job.tenant_id)


def iter_revealed_values(job: ExportJob, leaf: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The values that a leaf commits to, opened."""
    for _, commitment in iter_commitments(leaf):
        id = decode("snp", commitment["snapshot"])
        row = Snapshot.objects.filter(pk=id, tenant_id=job.tenant_id).first()
        if row is None:
            continue
        try:
            salt, document = evidence.reveal_committed(snapshot=row, reason=job.reason, by=export_maker(job))
        except (KeyUnavailable, ValuesErased):
            continue
        yield opened_value(snapshot=row.wire_id, salt=base64.b64encode(salt).decode(), value=document)
