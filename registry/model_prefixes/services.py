"""Model prefixes: what a tenant says to its models before anybody else does.

Every chat begins with it, also one that has system messages of its own. Callers neither see nor remove it: it stands in no request,
answer, fact and log, only its version, its digest and its tokens do. A change counts with the next call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import IntegrityError, transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.models import ModelPrefixSet
from kernel.canonical import compute_digest
from kernel.database.rows import PreparedQuery
from kernel.problems import Conflict, SchemaInvalid
from registry.installations.services import checked_reason
from registry.model_prefixes.models import ModelPrefix

if TYPE_CHECKING:
    from kernel.principal import Principal

MAX_CHARACTERS = 16_000
SUBJECT = "soul:model-prefix"
PREFIX_IN_FORCE = PreparedQuery(
    lambda tenant_id: ModelPrefix.objects.filter(tenant_id=tenant_id).order_by("-number")[:1], tenant_id=UUID
)


def find_prefix(tenant_id: UUID) -> ModelPrefix | None:
    """The version in force; None where there has never been one. Its text may be empty."""
    return PREFIX_IN_FORCE.first(tenant_id=tenant_id)


@transaction.atomic
def set_prefix(*, text: str, reason: str, by: Principal) -> ModelPrefix:
    """Put this text before every conversation from the next call on; an empty one ends it. The same again is no new version."""
    reason = checked_reason(reason)
    if len(text) > MAX_CHARACTERS:
        raise SchemaInvalid.at("/text", f"A model prefix has at most {MAX_CHARACTERS:,} characters.")
    before = find_prefix(by.tenant_id)
    if text == (before.text if before is not None else ""):
        raise Conflict("This is the model prefix already.", remedy="There is nothing to do.")
    row = ModelPrefix(
        tenant_id=by.tenant_id,
        number=before.number + 1 if before is not None else 1,
        text=text,
        digest=compute_digest(text),
        reason=reason,
        set_by=by.id,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            "Somebody has set the model prefix at this moment.", remedy="Look at it, and set it again."
        ) from error
    evidence.record(
        kind=Kind.MODEL_PREFIX_SET,
        subject=SUBJECT,
        actor=by,
        data=ModelPrefixSet(version=row.number, digest=row.digest, characters=len(text), reason=reason),
    )
    return row
