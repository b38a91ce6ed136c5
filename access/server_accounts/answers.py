"""Answers of servers elsewhere: asked by the hub's guarded requests, and read as JSON that is an object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kernel.database.connections import release_connection
from kernel.http.outbound import AddressRefused, OutboundFailed, send_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.http.outbound import OutboundResponse

MAX_DOCUMENT = 64 * 1024
ANY_STATUS = range(100, 600)


class ServerSilent(Exception):
    """Nobody could be asked, or nothing came that can be read: in a sentence."""


def ask(
    url: str, *, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> OutboundResponse:
    """Whatever status it has. No redirect is followed and no private address asked; no connection of the database is held."""
    release_connection()
    try:
        return send_request(
            url,
            method=method,
            body=body,
            headers={"Accept": "application/json", **(headers or {})},
            statuses=ANY_STATUS,
            most_bytes=MAX_DOCUMENT,
        )
    except (AddressRefused, OutboundFailed) as error:
        raise ServerSilent(str(error)) from error


def read_object(answer: OutboundResponse) -> dict[str, Any] | None:
    """None where it is no JSON object."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
