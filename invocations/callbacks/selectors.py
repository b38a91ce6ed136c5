"""Callback selectors: the messages about ended calls that somebody wants to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.callbacks.models import CallbackDelivery
from kernel.ids import decode
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from kernel.principal import Principal

STATES = ("trying", "delivered", "given_up")
NAMES = {"endpoint": ("cbe", "endpoint_id"), "agent": ("agt", "endpoint__agent_id"), "call": ("inv", "invocation_id")}


def filter_deliveries(wanted: Mapping[str, str], *, by: Principal) -> QuerySet[CallbackDelivery]:
    """The tenant's messages in a state, to an endpoint or an agent, or about a call: each where ``wanted`` says so."""
    rows = CallbackDelivery.objects.filter(tenant_id=by.tenant_id).select_related("endpoint__agent", "invocation")
    for name, (prefix, column) in NAMES.items():
        if text := wanted.get(name, "").strip():
            try:
                rows = rows.filter(**{column: decode(prefix, text)})
            except ValueError as error:
                raise SchemaInvalid.at(f"/{name}", str(error)) from error
    state = wanted.get("state", "")
    if state not in ("", *STATES):
        raise SchemaInvalid.at("/state", f"The states are {', '.join(STATES)}.")
    if state == "delivered":
        rows = rows.filter(delivered_at__isnull=False)
    elif state:
        rows = rows.filter(delivered_at=None, next_attempt_at__isnull=state == "given_up")
    return rows
