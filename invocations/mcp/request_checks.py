"""Request checks of MCP: how a request comes, from where, and how much it holds, before anybody asks whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from access.connections.resources import MCP_PATH
from kernel.problems import (
    Forbidden,
    TooLarge,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


# Objects and arrays of a message. The SDK reads it again on the event loop, where everybody waits meanwhile: about 5 ms for 1,000.
MAX_PARTS = 20_000


def check_scheme(scope: Mapping[str, Any]) -> None:
    """Refused, not sent to https as a page is: clients would follow with GET and without the message, and go on using http."""
    if settings.SECURE_SSL_REDIRECT and scope.get("scheme") != "https":
        raise Forbidden(
            "The hub is asked over https only.",
            remedy=f"Connect to {settings.TOOLHUB_PUBLIC_URL}{MCP_PATH}. "
            "A key that was sent over http may have been read: replace it.",
        )


def check_origin(headers: Mapping[str, str]) -> None:
    """Neither a name that is not the hub's (DNS rebinding) nor a page of somebody else speaks to it through a browser."""
    host = headers.get("host", "")
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        raise Forbidden(
            "The hub is not called by this name.", remedy="Use the address in TOOLHUB_PUBLIC_URL, or ask an operator."
        )
    origin = headers.get("origin")
    if origin is None or origin in settings.CSRF_TRUSTED_ORIGINS:
        return
    if read_place(origin) != host:
        raise Forbidden(
            "This page may not speak to the hub.",
            remedy="Ask an operator to add its origin to TOOLHUB_TRUSTED_ORIGINS.",
        )


def read_place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def check_message_size(body: bytes) -> None:
    if body.count(b"[") + body.count(b"{") > MAX_PARTS:
        raise TooLarge(
            f"The message has more than {MAX_PARTS:,} objects and arrays.",
            remedy="Send less at once, or make this call over REST.",
            details={"max_parts": MAX_PARTS},
        )
