"""Columns of the list of calls: those that somebody has chosen beside the ones that all lists have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.functional import _StrPromise

COOKIE = "call_columns"
LABELS: dict[str, str | _StrPromise] = {
    "took": gettext_lazy("Took"),
    "cost": gettext_lazy("Cost"),
    "version": gettext_lazy("Version"),
    "origin": gettext_lazy("Way in"),
    "request": gettext_lazy("Request id"),
    "key": gettext_lazy("Idempotency key"),
    "policy": gettext_lazy("Policy"),
    "trace": gettext_lazy("Trace"),
}
USUAL = ("took",)


def read_columns(request: HttpRequest) -> list[str]:
    """In their order; who has chosen none has the usual ones."""
    kept = request.COOKIES.get(COOKIE)
    chosen = USUAL if kept is None else kept.split(".")
    return [name for name in LABELS if name in chosen]


def write_columns(chosen: list[str]) -> str:
    """What the cookie holds."""
    return ".".join(name for name in LABELS if name in chosen) or "none"
