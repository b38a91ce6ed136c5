"""Settings of a model provider: how long it is waited for, how often it is asked again, and what its kind reads."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RETRIES = 5
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


LONGEST = asdict(ProviderTimeouts(connect_s=60, first_event_s=300, idle_s=300, total_s=300))


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What a provider's row says of it, with what is usual filled in."""

    timeouts: ProviderTimeouts = field(default_factory=ProviderTimeouts)
    retries: int = 2
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ProviderSettings:
        return cls(**{**stored, "timeouts": ProviderTimeouts(**stored.get("timeouts", {}))})


def check_settings(given: Mapping[str, Any], *, at: str = "/settings") -> None:
    """Raise :class:`SchemaInvalid` for what cannot be kept."""
    for name in given:
        if name not in ("timeouts", "retries", "options"):
            raise SchemaInvalid.at(f"{at}/{name}", "There is no such setting. There are: timeouts, retries, options.")
    _check_timeouts(given.get("timeouts", {}), f"{at}/timeouts")
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
