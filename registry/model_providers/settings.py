"""Settings of a model provider: how long it is waited for, how often it is asked, and what its kind reads."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS = ("timeouts", "retries", "rates", "options")
MAX_RETRIES = 5
MAX_RATE = 1_000_000_000  # a minute
MAX_OPTIONS_BYTES = 4096
# What whoever runs the hub decides: where its processes may connect to, and which of their files are read.
OF_THE_HUB = ("check_address", "files", "limits", "networks", "proxy", "resolve")


@dataclass(frozen=True, slots=True)
class ProviderTimeouts:
    """How long a provider is waited for, in seconds."""

    connect_s: float = 10
    first_event_s: float = 60
    idle_s: float = 60  # between two pieces of an answer
    total_s: float = 300


@dataclass(frozen=True, slots=True)
class ProviderRates:
    """How much the provider's key may be used in a minute; None: nobody counts here."""

    requests: int | None = None
    tokens: int | None = None


LONGEST = asdict(ProviderTimeouts(connect_s=60, first_event_s=300, idle_s=300, total_s=300))


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What a provider's row says of it, with what is usual filled in."""

    timeouts: ProviderTimeouts = field(default_factory=ProviderTimeouts)
    retries: int = 2
    rates: ProviderRates = field(default_factory=ProviderRates)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ProviderSettings:
        timeouts, rates = ProviderTimeouts(**stored.get("timeouts", {})), ProviderRates(**stored.get("rates", {}))
        return cls(**{**stored, "timeouts": timeouts, "rates": rates})


def check_settings(given: Mapping[str, Any], *, at: str = "/settings") -> None:
    """Raise :class:`SchemaInvalid` for what cannot be kept."""
    for name in given:
        if name not in SETTINGS:
            raise SchemaInvalid.at(f"{at}/{name}", f"There is no such setting. There are: {', '.join(SETTINGS)}.")
    _check_timeouts(given.get("timeouts", {}), f"{at}/timeouts")
    _check_rates(given.get("rates", {}), f"{at}/rates")
    retries = given.get("retries", 0)
    if type(retries) is not int or not 0 <= retries <= MAX_RETRIES:
        raise SchemaInvalid.at(f"{at}/retries", f"It is a number from 0 to {MAX_RETRIES}.")
    options = given.get("options", {})
    if not isinstance(options, dict) or len(json.dumps(options)) > MAX_OPTIONS_BYTES:
        raise SchemaInvalid.at(f"{at}/options", f"Options are an object of at most {MAX_OPTIONS_BYTES:,} bytes.")
    for name in options:
        if name in OF_THE_HUB:
            raise SchemaInvalid.at(
                f"{at}/options/{name}", "This is set by whoever runs the hub, and not for one provider."
            )


def _check_timeouts(given: Any, at: str) -> None:
    if not isinstance(given, dict):
        raise SchemaInvalid.at(at, "Timeouts are an object: the name of each, and its seconds.")
    for name, value in given.items():
        if name not in LONGEST:
            raise SchemaInvalid.at(f"{at}/{name}", f"There is no such timeout. There are: {', '.join(LONGEST)}.")
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or not 0.1 <= value <= LONGEST[name]:
            raise SchemaInvalid.at(f"{at}/{name}", f"It is a number of seconds from 0.1 to {LONGEST[name]:g}.")


def _check_rates(given: Any, at: str) -> None:
    if not isinstance(given, dict):
        raise SchemaInvalid.at(at, "Rates are an object: `requests` and `tokens` in a minute.")
    for name, value in given.items():
        if name not in ("requests", "tokens"):
            raise SchemaInvalid.at(f"{at}/{name}", "There is no such rate. There are: requests, tokens.")
        if value is not None and (type(value) is not int or not 1 <= value <= MAX_RATE):
            raise SchemaInvalid.at(f"{at}/{name}", f"It is a number from 1 to {MAX_RATE:,}, or null.")
