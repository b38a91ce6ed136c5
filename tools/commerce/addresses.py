"""Addresses: whether a parcel can be addressed like this, and which field says otherwise.

A refusal names the field and the form that is expected, never the value: addresses are personal data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commerce import tables
from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Address:
    """A checked destination: codes in upper case, postal code in the country's form."""

    country: str
    region: str
    state: str
    city: str
    postal_code: str
    line1: str
    line2: str
    recipient: str

    def area(self) -> dict[str, str | None]:
        """What of the address an answer repeats: enough to see the route, not enough to find the person's door."""
        return {"country": self.country, "state": self.state or None, "city": self.city or None,
                "postal_code": self.postal_code or None}  # fmt: skip


def _countries() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = tables.read(tables.ADDRESSES)["countries"]
    return found


def countries_in(region: str) -> frozenset[str]:
    return frozenset(code for code, entry in _countries().items() if entry["region"] == region)


def _refuse(message: str, field: str, **details: Any) -> runtime.AddressInvalid:
    return runtime.AddressInvalid(message, field=f"destination.{field}", pointer=f"/destination/{field}", **details)


def check_country(country: str) -> dict[str, Any]:
    entry = _countries().get(country)
    if entry is None:
        raise _refuse("We do not deliver to this country.", "country", supported=sorted(_countries()))
    return entry


def _check_state(entry: Mapping[str, Any], state: str) -> None:
    states = entry.get("states")
    if states and state not in states:
        problem = "is missing" if not state else "is not known"
        raise _refuse(f"The state or province {problem}; use the short code.", "state", allowed=states)


def _check_postal_code(entry: Mapping[str, Any], postal_code: str, state: str) -> None:
    pattern = entry.get("postal")
    if pattern is None:
        return
    if not re.fullmatch(pattern, postal_code):
        problem = "does not have the form that this country uses" if postal_code else "is missing"
        raise _refuse(f"The postal code {problem}.", "postal_code", expected=entry["postal_form"])
    states = entry.get("states_by_postal_start", {}).get(postal_code[0])
    if states and state not in states:
        raise _refuse("The postal code does not belong to the state or province.", "postal_code", state_field="state")


def check_address(destination: Mapping[str, Any], *, complete: bool = False) -> Address:
    """The destination, tidied; ``complete`` also asks for the recipient and the street, as an order needs them."""

    def text(field: str) -> str:
        return " ".join(str(destination.get(field) or "").split())

    country, state, postal_code = text("country").upper(), text("state").upper(), text("postal_code").upper()
    entry = check_country(country)
    _check_state(entry, state)
    _check_postal_code(entry, postal_code, state)
    if complete:
        for field, what in (("recipient", "recipient's name"), ("line1", "street line"), ("city", "city")):
            if not text(field):
                raise _refuse(f"The {what} is missing.", field)
    return Address(
        country, entry["region"], state, text("city"), postal_code, text("line1"), text("line2"), text("recipient")
    )
