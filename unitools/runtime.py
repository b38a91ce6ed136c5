"""Runtime: what a tool's code may ask and tell while it runs.

The same module works inside the sandbox and in a plain Python process. It uses the standard library only, because it is
part of the sandbox image. A tool reads its call with :func:`current_call`, raises one of the domain errors below when the
answer is a catalogued "no", records what its answer rests on, and may say how far it is::

    from unitools import runtime

    def run(sku: str, quantity: int) -> dict:
        call = runtime.current_call()
        runtime.used_source("price_list", name="prices-2026-11", version="2026-11-01")
        runtime.set_ttl(60)
        runtime.log("Looked up the price.")
        runtime.progress(0.5, "Asking the warehouse")
        if quantity > stock: raise runtime.OutOfStock("Only 3 left.", sku=sku, available=3)
        return {...}

What each tenant set for its own installation of the tool is in :func:`config`; the values that it keeps in the hub are in
:func:`secret`, under the names that the manifest gives them. A secret that leaves the tool, in its result, its messages or
its output, fails the call.

The hub records the time and the chance of every call, so that it can be run again: :func:`now` is the time at which the run began,
the same in a replay, and the module ``random`` is seeded with the call's ``seed`` before the tool runs.

Errors::

    DomainError
     ├── InvalidArgument     INVALID_ARGUMENT
     ├── NotFound            NOT_FOUND
     ├── Conflict            CONFLICT
     ├── UpstreamError       UPSTREAM_ERROR
     ├── NeedsConfirmation   NEEDS_USER_CONFIRMATION
     ├── ComplianceBlocked   COMPLIANCE_BLOCKED
     ├── PriceChanged        PRICE_CHANGED
     ├── OutOfStock          OUT_OF_STOCK
     ├── AddressInvalid      ADDRESS_INVALID
     └── ModelRetry          MODEL_RETRY: whoever asked is to ask again, otherwise
    ResultInvalid            the result is not what the tool declares: an error of the tool, and no "no" of it
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar

__all__ = [
    "AddressInvalid",
    "Call",
    "ComplianceBlocked",
    "Conflict",
    "DomainError",
    "InvalidArgument",
    "ModelRetry",
    "NeedsConfirmation",
    "NotFound",
    "OutOfStock",
    "PriceChanged",
    "Report",
    "ResultInvalid",
    "Source",
    "UpstreamError",
    "artifact",
    "config",
    "current_call",
    "log",
    "mask",
    "now",
    "progress",
    "running",
    "secret",
    "set_ttl",
    "used_source",
    "warn",
]


class DomainError(Exception):
    """A "no" that the caller understands. ``details`` must be JSON and hold no personal data: it is shown to the caller."""

    code: ClassVar[str]

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details


class ResultInvalid(Exception):
    """What the tool returned is not what it declares; raised where that is seen before the hub sees it. ``pointers``: where."""

    def __init__(self, message: str, pointers: list[str] | None = None) -> None:
        super().__init__(message)
        self.pointers = pointers or []


class InvalidArgument(DomainError):
    code = "INVALID_ARGUMENT"


class NotFound(DomainError):
    code = "NOT_FOUND"


class Conflict(DomainError):
    code = "CONFLICT"


class UpstreamError(DomainError):
    code = "UPSTREAM_ERROR"


class NeedsConfirmation(DomainError):
    code = "NEEDS_USER_CONFIRMATION"


class ComplianceBlocked(DomainError):
    code = "COMPLIANCE_BLOCKED"


class PriceChanged(DomainError):
    code = "PRICE_CHANGED"


class OutOfStock(DomainError):
    code = "OUT_OF_STOCK"


class AddressInvalid(DomainError):
    code = "ADDRESS_INVALID"


class ModelRetry(DomainError):
    """Nothing was done; the model is to call again, and the message says how: ``ModelRetry("There are two Springfields. Add the
    state.")``. How often it may is for whoever runs the model to say."""

    code = "MODEL_RETRY"


# Plain classes: what `dataclasses` imports would be half as much again in the memory of every box.


class Call:
    """The call that is being answered; not to be changed. ``started_at``: when it was made; ``now``: when this run of it began.
    Both are UTC and recorded, as the ``seed`` is: a replay has the same.

    ``session_id`` and ``client`` (``app``, ``version``, ``model``) are what the caller says of itself. ``traceparent`` is the W3C
    trace context of the run, for what the tool asks of others.
    """

    __slots__ = (
        "call_id",
        "client",
        "config",
        "currency",
        "dry_run",
        "idempotency_key",
        "locale",
        "now",
        "request_id",
        "secrets",
        "seed",
        "session_id",
        "started_at",
        "timezone",
        "tool_id",
        "tool_version",
        "traceparent",
    )

    def __init__(
        self,
        *,
        call_id: str = "local",
        tool_id: str = "",
        tool_version: str = "",
        locale: str = "en-US",
        currency: str = "USD",
        timezone: str = "UTC",
        request_id: str = "",
        session_id: str = "",
        client: dict[str, str] | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        traceparent: str = "",
        started_at: datetime | None = None,
        now: datetime | None = None,
        seed: int | None = None,
        config: dict[str, Any] | None = None,
        secrets: dict[str, str] | None = None,
    ) -> None:
        self.call_id = call_id
        self.tool_id = tool_id
        self.tool_version = tool_version
        self.locale = locale
        self.currency = currency
        self.timezone = timezone
        self.request_id = request_id
        self.session_id = session_id
        self.client = client or {}
        self.dry_run = dry_run
        self.idempotency_key = idempotency_key
        self.traceparent = traceparent
        self.started_at = started_at or datetime.now(UTC)
        self.now = now or self.started_at
        self.seed = int.from_bytes(os.urandom(16), "big") if seed is None else seed
        self.config = config or {}
        self.secrets = secrets or {}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Call:
        known = {k: v for k, v in data.items() if k in cls.__slots__ and v is not None}
        for name in ("started_at", "now"):
            if isinstance(known.get(name), str):
                known[name] = datetime.fromisoformat(known[name])
        if isinstance(known.get("seed"), str):
            known["seed"] = int(known["seed"], 16)  # no number of JSON is as long
        return cls(**known)


class Source:
    """One thing the answer rests on: a rule set, a price list, a document, with the version that was used."""

    __slots__ = ("name", "type", "version")

    def __init__(self, type: str, name: str, version: str) -> None:
        self.type, self.name, self.version = type, name, version

    def to_json(self) -> dict[str, str]:
        return {"type": self.type, "name": self.name, "version": self.version}


class Report:
    """What a tool said and left beside its return value. ``artifacts`` are (name, media type, content)."""

    __slots__ = ("artifacts", "sources", "ttl_seconds", "warnings")

    def __init__(self) -> None:
        self.artifacts: list[tuple[str, str, bytes]] = []
        self.sources: list[Source] = []
        self.warnings: list[str] = []
        self.ttl_seconds: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "sources": [source.to_json() for source in self.sources],
            "warnings": list(self.warnings),
            "ttl_seconds": self.ttl_seconds,
        }


_current: ContextVar[tuple[Call, Report] | None] = ContextVar("unitools_current_call", default=None)
_progress: ContextVar[Callable[[bytes], None] | None] = ContextVar("unitools_progress", default=None)


@contextmanager
def running(call: Call, *, progress: Callable[[bytes], None] | None = None) -> Iterator[Report]:
    """Make ``call`` the current one for the code inside the ``with`` block; yields what that code reports.

    ``progress`` takes the lines of :func:`progress`, each a JSON object; without it they are printed.
    """
    report = Report()
    token, progress_token = _current.set((call, report)), _progress.set(progress)
    try:
        yield report
    finally:
        _progress.reset(progress_token)
        _current.reset(token)


_published = False


def mark_published() -> None:
    """Said by a hub's sandbox before it loads a tool: what is loaded was published and reviewed as it is, so that what newer versions
    of the SDK refuse to register is no reason to fail its calls."""
    global _published
    _published = True


def is_published() -> bool:
    return _published


def _state() -> tuple[Call, Report]:
    state = _current.get()
    if state is None:
        raise RuntimeError("No tool call is running. Wrap the code in `with unitools.runtime.running(Call()):`.")
    return state


def current_call() -> Call:
    return _state()[0]


def now() -> datetime:
    """The time at which this run began, in UTC: one moment for all of the call, and the same in a replay."""
    return current_call().now


def config() -> dict[str, Any]:
    """What the tenant set for its installation of this tool; valid against the manifest's ``config_schema``."""
    return current_call().config


def secret(name: str) -> str:
    """The value that the tenant keeps for this tool under the manifest's ``name``; ``LookupError`` when it keeps none."""
    found = current_call().secrets.get(name)
    if found is None:
        raise LookupError(f"This installation has no secret {name}.")
    return found


def used_source(type: str, *, name: str, version: str) -> None:
    """Record a rule set, data file or document that the answer depends on; it becomes part of the evidence."""
    _state()[1].sources.append(Source(type, name, version))


def warn(message: str) -> None:
    """Add a sentence to the answer's ``warnings``. It is shown to the caller: no personal data."""
    _state()[1].warnings.append(message)


def artifact(name: str, data: bytes | str, *, media_type: str = "") -> dict[str, str]:
    """Leave something that does not fit into the result: an image, a document, a long table. Put what this returns into the result.

    The hub keeps it and tells the caller where it is. ``media_type`` is a claim, which the hub holds against the content.
    The manifest's ``limits.artifacts`` and ``limits.artifact_bytes`` say how many and how large they may be together.
    """
    if not name or len(name) > 120 or not name.isprintable() or "/" in name or "\\" in name or name in (".", ".."):
        raise ValueError("An artifact's name is a file name of at most 120 printable characters.")
    report = _state()[1]
    if any(name == each[0] for each in report.artifacts):
        raise ValueError(f"There is an artifact {name} already.")
    content = data.encode() if isinstance(data, str) else bytes(data)
    report.artifacts.append((name, media_type, content))
    return {"artifact": name}


def set_ttl(seconds: int) -> None:
    """How long the answer stays fresh, in seconds; overrides the manifest's ``ttl_seconds``."""
    if seconds < 0:
        raise ValueError("A TTL is not negative.")
    _state()[1].ttl_seconds = seconds


def log(message: str) -> None:
    """Write a line to the log of the call: kept with its output, and told to whoever waits. No personal data, no secrets."""
    print(message, flush=True)  # noqa: T201 - that is what it is for
    _tell({"log": message})


def mask(value: Any, keep: int = 0) -> Any:
    """What may stand in a log in a value's place: ``log(f"Charged {mask(card, keep=4)}.")`` writes ``•••4242``.

    ``keep``: how many of the last characters stay, of a text or number that has at least four times as many. Lists and objects keep
    their shape and the objects' keys; true, false and None stay. How long a text was is not told.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return {key: mask(each, keep) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [mask(each, keep) for each in value]
    text = str(value) if isinstance(value, (str, int, float)) else ""
    return _MASKED + (text[-keep:] if 0 < keep * 4 <= len(text) else "")


_MASKED = "•••"


def progress(fraction: float, message: str = "") -> None:
    """Say how far the call is, from 0 to 1, to whoever waits for it. No personal data, no secrets."""
    if not 0 <= fraction <= 1:
        raise ValueError("Progress is a number from 0 to 1.")
    if not _tell({"fraction": fraction, "message": message}):
        print(f"{fraction:.0%} {message}".rstrip(), flush=True)  # noqa: T201 - there is nobody else to tell


def _tell(said: dict[str, Any]) -> bool:
    """False when nobody listens, as where a tool runs locally."""
    take = _progress.get()
    if take is None:
        return False
    with suppress(OSError):  # nobody listens any more
        take(json.dumps(said).encode() + b"\n")
    return True
