"""Checkout: what a cart comes to, and what the draft of its order looks like."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from commerce import cart, money, shipping, tables
from unitools import runtime

if TYPE_CHECKING:
    from commerce.cart import Cart

DRAFT_LIFETIME = timedelta(hours=24)
TOTAL_TTL_SECONDS = 60


def compute_total(
    lines: list[dict[str, Any]],
    destination: dict[str, Any],
    shipping_option_id: str | None = None,
    currency: str | None = None,
    coupon_code: str | None = None,
    incoterm: str = "DDP",
    verified_age: int | None = None,
) -> dict[str, Any]:
    """The itemised total of a cart. Nothing is reserved or stored."""
    call = runtime.current_call()
    cart.cite_sources()
    filled = cart.fill_cart(
        lines=lines, destination=destination, shipping_option_id=shipping_option_id,
        currency=money.check_currency(currency), coupon_code=coupon_code, incoterm=incoterm,
        verified_age=verified_age, complete_address=False, at=call.started_at,
    )  # fmt: skip
    cart.warn_of_conditions(filled)
    ttl = min(TOTAL_TTL_SECONDS, shipping.freshness_seconds([filled.option], call.started_at))
    runtime.set_ttl(ttl)
    return {
        **cart.cart_to_json(filled),
        "computed_at": tables.timestamp(call.started_at),
        "valid_until": tables.timestamp(call.started_at + timedelta(seconds=ttl)),
    }


def _check_expected_total(filled: Cart, expected_total: str) -> None:
    expected = money.parse(expected_total, filled.currency, pointer="/expected_total")
    if expected != filled.total:
        raise runtime.PriceChanged(
            f"The order comes to {money.show(filled.total, filled.currency)} {filled.currency} now.",
            pointer="/expected_total", currency=filled.currency,
            expected=money.show(expected, filled.currency), current=money.show(filled.total, filled.currency),
        )  # fmt: skip


def _check_age_is_verified(filled: Cart) -> None:
    if filled.missing_age is not None:
        raise runtime.NeedsConfirmation(
            f"The order holds goods that are sold from the age of {filled.missing_age}; verify the buyer's age first.",
            pointer="/verified_age", required_age=filled.missing_age,
        )  # fmt: skip


def _canonical(value: Any) -> bytes:
    """Sorted and without spaces; all values are strings, integers and null, for which this equals RFC 8785."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _draft_order_id(call: runtime.Call, order: dict[str, Any]) -> str:
    """The same for a repeated call with the same key and content; other content never meets an existing id."""
    key = call.idempotency_key or call.call_id
    digest = hashlib.sha256(_canonical(["commerce.draft_order.1", key, order])).digest()
    return "dro_" + base64.b32encode(digest[:15]).decode().lower()


def create_draft_order(
    lines: list[dict[str, Any]],
    destination: dict[str, Any],
    shipping_option_id: str,
    expected_total: str,
    currency: str | None = None,
    coupon_code: str | None = None,
    incoterm: str = "DDP",
    verified_age: int | None = None,
) -> dict[str, Any]:
    """The draft of an order as a document; a dry run checks the same things and makes none."""
    call = runtime.current_call()
    cart.cite_sources()
    filled = cart.fill_cart(
        lines=lines, destination=destination, shipping_option_id=shipping_option_id,
        currency=money.check_currency(currency), coupon_code=coupon_code, incoterm=incoterm,
        verified_age=verified_age, complete_address=True, at=call.started_at,
    )  # fmt: skip
    _check_age_is_verified(filled)
    _check_expected_total(filled, expected_total)
    cart.warn_of_conditions(filled)
    runtime.set_ttl(int(DRAFT_LIFETIME.total_seconds()))

    to = filled.address
    address = {**to.area(), "recipient": to.recipient, "line1": to.line1, "line2": to.line2 or None}
    content = {
        "address": address, "currency": filled.currency, "incoterm": incoterm, "coupon": filled.reduction.code,
        "option": filled.option.id, "total": money.show(filled.total, filled.currency),
        "lines": [[line.product.sku, line.quantity, str(line.unit_price)] for line in filled.lines],
    }  # fmt: skip
    order_id = None if call.dry_run else _draft_order_id(call, content)
    # The order's id salts the digest: whoever holds the address can check it, and two orders cannot be linked by it.
    address_digest = None if order_id is None else hashlib.sha256(_canonical([order_id, address])).hexdigest()
    return {
        "status": "validated" if call.dry_run else "draft",
        "draft_order_id": order_id,
        **cart.cart_to_json(filled),
        "address_digest": address_digest and f"sha256:{address_digest}",
        "created_at": tables.timestamp(call.started_at),
        "expires_at": tables.timestamp(call.started_at + DRAFT_LIFETIME),
        "next_step": "Let the user confirm the total before payment. Nothing has been charged or reserved.",
    }
