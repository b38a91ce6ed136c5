"""Outbound requests: how the hub asks somebody else's server, without being sent to its own neighbours.

For addresses that people type in (webhooks, keys of identity providers). The name is resolved once, every address of it must
be a public one unless the operator allows its network (TOOLHUB_OUTBOUND_NETWORKS), and the connection goes to exactly the
address that was checked. No redirects, no proxies, bounded time and size.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings

from kernel.http.addresses import is_within, may_reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from ipaddress import IPv4Address, IPv6Address

TIMEOUT_S = 5.0  # of one step
DEADLINE_S = 10.0  # of all: a server that sends a byte now and then holds nobody
MAX_BYTES = 256 * 1024
MAX_URL = 500


class AddressRefused(Exception):
    """The address is not one that the hub asks, in a sentence."""


class OutboundFailed(Exception):
    """Nobody answered, or not as expected, in a sentence."""


@dataclass(frozen=True, slots=True)
class OutboundResponse:
    """``headers`` by their names in lower case."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutboundTarget:
    """``host`` is what the certificate must name; ``path`` has its query."""

    scheme: str
    host: str
    port: int
    path: str


def list_allowed_networks() -> list[str]:
    """Those that the operator named, beside all public addresses."""
    return [text for text in settings.TOOLHUB_OUTBOUND_NETWORKS if text]


def is_allowed(address: IPv4Address | IPv6Address) -> bool:
    """Public, or in a network that the operator named for the hub itself."""
    return may_reach(address, list_allowed_networks())


def read_url(url: str) -> OutboundTarget:
    """The parts of an https URL. Plain http only to networks that the operator named, which :func:`resolve_target` sees to."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused("This is not an address of the web.") from error
    if len(url) > MAX_URL or any(ord(letter) <= 32 or ord(letter) == 127 for letter in url):
        raise AddressRefused("This is not an address of the web.")
    if (
        parts.scheme not in ("https", "http")
        or not parts.hostname
        or parts.username
        or parts.password
        or parts.fragment
    ):
        raise AddressRefused("Give an https:// address without a user name or a fragment.")
    if parts.scheme == "http" and not list_allowed_networks():
        raise AddressRefused("Give an https:// address.")
    try:
        host = parts.hostname.encode("idna").decode()
    except UnicodeError as error:
        raise AddressRefused("The name of this server cannot be read.") from error
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return OutboundTarget(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), path)


def resolve_target(target: OutboundTarget) -> str:
    """One address of the host, all of which were found allowed: a name with one private address is refused whole."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OutboundFailed(f"The name {target.host} cannot be resolved.") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for text in addresses:
        address = ip_address(text.partition("%")[0])
        if not is_allowed(address):
            raise AddressRefused(f"{target.host} is at a private address, which the hub does not ask.")
        if target.scheme == "http" and not is_within(address, list_allowed_networks()):
            raise AddressRefused("Give an https:// address.")
    return addresses[0]


def check_url(url: str) -> None:
    """What can be said about an address without asking anybody: its form, and that it names no private address."""
    target = read_url(url)
    try:
        address = ip_address(target.host)
    except ValueError:
        if target.host.rpartition(".")[2] in ("localhost", "local", "internal") and not list_allowed_networks():
            raise AddressRefused(f"{target.host} is a private name, which the hub does not ask.") from None
        return
    if not is_allowed(address):
        raise AddressRefused(f"{target.host} is a private address, which the hub does not ask.")


class _Pinned(http.client.HTTPConnection):
    """Connects to an address that was checked, and speaks to the host of the URL."""

    def __init__(self, target: OutboundTarget, address: str) -> None:
        super().__init__(target.host, target.port, timeout=TIMEOUT_S)
        self._target, self._address = target, address

    def connect(self) -> None:
        raw = socket.create_connection((self._address, self._target.port), TIMEOUT_S)
        if self._target.scheme == "https":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=self._target.host)
        self.sock = raw

    def hang_up(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)


def send_request(
    url: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    statuses: Iterable[int] = range(200, 300),
    read: bool = True,
    most_bytes: int = MAX_BYTES,
) -> OutboundResponse:
    """Ask ``url`` and return what it answers; :class:`AddressRefused` before anything is sent, :class:`OutboundFailed` afterwards.

    ``read=False``: the status is the answer, however much follows it.
    """
    target = read_url(url)
    connection = _Pinned(target, resolve_target(target))
    deadline = threading.Timer(DEADLINE_S, connection.hang_up)
    deadline.daemon = True
    deadline.start()
    try:
        connection.request(method, target.path, body=body, headers={"User-Agent": "toolhub", **(headers or {})})
        response = connection.getresponse()
        said = response.read(most_bytes + 1) if read else b""
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise OutboundFailed(f"{target.host} did not answer: {type(error).__name__}.") from error
    finally:
        deadline.cancel()
        connection.close()
    if len(said) > most_bytes:
        raise OutboundFailed(f"{target.host} answered with more than {most_bytes:,} bytes.")
    if response.status not in statuses:
        raise OutboundFailed(f"{target.host} answered {response.status}.")
    return OutboundResponse(response.status, said, {name.lower(): value for name, value in response.getheaders()})
