"""Model prices: how a tenant sets them.

A version is whole and never changes. Calls that are accepted from now on are priced by it, in every process; one that runs keeps the
prices that it was accepted with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.models import SetModelPrices
from kernel.canonical import compute_digest
from kernel.problems import Conflict, NotFound
from llm.documents import read_document
from llm.prices import PriceDocument
from registry.installations.services import checked_reason
from registry.model_prices.price_tables import get_price_table
from registry.models import ModelPrices

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal


def find_prices_in_force(tenant_id: UUID) -> ModelPrices | None:
    """The newest version; None where the tenant has never set any."""
    return ModelPrices.objects.filter(tenant_id=tenant_id).order_by("-number").first()


def find_prices_version(number: int, *, tenant_id: UUID) -> ModelPrices:
    row = ModelPrices.objects.filter(tenant_id=tenant_id, number=number).first()
    if row is None:
        raise NotFound(
            f"There is no version {number} of the prices.", remedy="Ask without a version for those in force."
        )
    return row


@transaction.atomic
def set_model_prices(*, document: object, reason: str, by: Principal) -> ModelPrices:
    """Say what models cost. What the document leaves out is no longer set. Setting what is in force changes nothing."""
    said, reason = read_document(PriceDocument, document).to_json(), checked_reason(reason)
    before = find_prices_in_force(by.tenant_id)
    if before is not None and before.document == said:
        return before
    row = ModelPrices(
        tenant_id=by.tenant_id,
        number=before.number + 1 if before else 1,
        document=said,
        reason=reason,
        set_by=by.id,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict("Somebody else has just set the prices.", remedy="Read them again, and set yours.") from error
    evidence.record(
        kind=Kind.MODEL_PRICES_SET,
        subject=row.urn,
        actor=by,
        data=SetModelPrices(
            number=row.number,
            version=get_price_table(row).version,
            document=compute_digest(said),
            prices=len(said["prices"]),
            currency=said["currency"],
            reason=reason,
        ),
    )
    return row


@transaction.atomic
def set_one_price(*, price: dict[str, Any], reason: str, by: Principal) -> ModelPrices:
    """Say what one model costs from a day on; what else is set stays as it is. A price of the same day is replaced."""
    before = find_prices_in_force(by.tenant_id)
    said = before.document if before is not None else PriceDocument().to_json()
    place = ("provider", "model", "effective_from")
    others = [each for each in said["prices"] if any(each[name] != price.get(name) for name in place)]
    # The new one is the first, so that what is wrong with it is found at a place that is known.
    return set_model_prices(document=said | {"prices": [price, *others]}, reason=reason, by=by)
