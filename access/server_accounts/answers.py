"""Answers of servers elsewhere: asked by the hub's guarded requests, and read as JSON that is an object."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings

from kernel.database.connections import release_connection
from kernel.http.outbound import AddressRefused, OutboundFailed, read_url, resolve_target, send_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.http.outbound import OutboundResponse

LOG = logging.getLogger(__name__)
MAX_DOCUMENT = 64 * 1024
ANY_STATUS = range(100, 600)


class ServerSilent(Exception):
    """Nobody could be asked, or nothing came that can be read: in a sentence."""


def ask(
    url: str, *, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> OutboundResponse:
    """Whatever status it has. No redirect is followed, and no private address asked outside of the networks for this; no connection
    of the database is held. Why nothing came is written to the log: persons are not told what answers in the hub's own networks."""
    release_connection()
    try:
        return send_request(
            url,
            method=method,
            body=body,
            headers={"Accept": "application/json", **(headers or {})},
            statuses=ANY_STATUS,
            most_bytes=MAX_DOCUMENT,
            networks=list_networks(),
        )
    except (AddressRefused, OutboundFailed) as error:
        LOG.warning("An address of a server account was not asked, or did not answer: %s", error)
        raise ServerSilent(f"{read_host(url)} could not be asked.") from error


def check_address(url: str) -> None:
    """That it has the form of an address that is asked: https, or http where its host is in a network for this.
    :class:`ServerSilent` where it is not."""
    try:
        target = read_url(url, networks=list_networks())
        if target.scheme == "http":
            resolve_target(target, networks=list_networks())
    except (AddressRefused, OutboundFailed) as error:
        LOG.warning("An address of a server account is not taken: %s", error)
        raise ServerSilent("It is no https:// address that the hub asks.") from error


def list_networks() -> list[str]:
    """Strangers name these addresses, so what is allowed for others counts for nothing here."""
    return [each for each in settings.TOOLHUB_SERVER_ACCOUNT_NETWORKS if each]


def read_host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url[:100]
    except ValueError:
        return url[:100]


def read_object(answer: OutboundResponse) -> dict[str, Any] | None:
    """None where it is no JSON object."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
