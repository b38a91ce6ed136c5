"""Outbound requests: how the hub asks somebody else's server, without being sent to its own neighbours.

For addresses that people type in (webhooks, keys of identity providers). The name is resolved once, every address of it must
be a public one unless the operator allows its network (TOOLHUB_OUTBOUND_NETWORKS), and the connection goes to exactly the
address that was checked. No redirects, no proxies, bounded time and size. What strangers name has networks of its own.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
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


class OutboundTooLarge(OutboundFailed):
    """The answer is longer than what is taken; it would be again."""


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


def read_url(url: str, *, networks: list[str] | None = None) -> OutboundTarget:
    """The parts of an https URL. Plain http only to networks that the operator named, which :func:`resolve_target` sees to.
    ``networks``: as of :func:`send_request`."""
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
    if parts.scheme == "http" and not (list_allowed_networks() if networks is None else networks):
        raise AddressRefused("Give an https:// address.")
    try:
        host = parts.hostname.encode("idna").decode()
    except UnicodeError as error:
        raise AddressRefused("The name of this server cannot be read.") from error
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return OutboundTarget(parts.scheme, host, port or (443 if parts.scheme == "https" else 80), path)


def resolve_target(target: OutboundTarget, *, networks: list[str]) -> str:
    """One address of the host, all of which were found allowed: a name with one private address is refused whole."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OutboundFailed(f"The name {target.host} cannot be resolved.") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for text in addresses:
        address = ip_address(text.partition("%")[0])
        if not may_reach(address, networks):
            raise AddressRefused(f"{target.host} is at a private address, which the hub does not ask.")
        if target.scheme == "http" and not is_within(address, networks):
            raise AddressRefused("Give an https:// address.")
    return addresses[0]


def _resolve_in_time(target: OutboundTarget, *, networks: list[str], seconds: float) -> str:
    """In a thread of its own: nothing else ends a question to a name server, and it is left to that one's own patience."""
    found: Future[str] = Future()

    def resolve() -> None:
        try:
            found.set_result(resolve_target(target, networks=networks))
        except BaseException as error:  # noqa: BLE001  it is raised below
            found.set_exception(error)

    threading.Thread(target=resolve, name="outbound-names", daemon=True).start()
    try:
        return found.result(timeout=seconds)
    except TimeoutError as error:
        raise OutboundFailed(f"{target.host} was not found in time.") from error


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


@lru_cache(1)
def _build_tls() -> ssl.SSLContext:
    """Reading the certificates of all authorities takes 60 ms of a processor, so they are read once."""
    return ssl.create_default_context()


class _Pinned(http.client.HTTPConnection):
    """Connects to an address that was checked, and speaks to the host of the URL, until it is hung up."""

    def __init__(self, target: OutboundTarget, address: str, *, ends: float) -> None:
        super().__init__(target.host, target.port, timeout=TIMEOUT_S)
        self._target, self._address, self._ends = target, address, ends
        # Kept also after http.client has let go of it, while the answer is still read.
        self._opened: socket.socket | None = None
        self.is_hung_up = False

    def connect(self) -> None:
        left = max(0.01, self._ends - time.monotonic())
        raw = socket.create_connection((self._address, self._target.port), min(TIMEOUT_S, left))
        raw.settimeout(TIMEOUT_S)
        if self._target.scheme == "https":
            tls = _build_tls().wrap_socket(raw, server_hostname=self._target.host, do_handshake_on_connect=False)
            self._keep(tls)
            tls.do_handshake()
        else:
            self._keep(raw)

    def _keep(self, opened: socket.socket) -> None:
        self._opened = self.sock = opened
        if self.is_hung_up:  # before there was anything to shut
            raise TimeoutError

    def hang_up(self) -> None:
        self.is_hung_up = True
        if self._opened is not None:
            with contextlib.suppress(OSError):
                # Not that of TLS, which changes what another thread reads by.
                socket.socket.shutdown(self._opened, socket.SHUT_RDWR)


def send_request(
    url: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    statuses: Iterable[int] = range(200, 300),
    read: bool = True,
    most_bytes: int = MAX_BYTES,
    networks: list[str] | None = None,
    within_s: float = DEADLINE_S,
) -> OutboundResponse:
    """Ask ``url`` and return what it answers; :class:`AddressRefused` before anything is sent, :class:`OutboundFailed` afterwards.

    ``read=False``: the status is the answer, however much follows it. ``networks``: those that may be asked
    beside public addresses; None: those that the operator named. ``within_s``: the whole of it.
    """
    networks = list_allowed_networks() if networks is None else networks
    target = read_url(url, networks=networks)
    ends = time.monotonic() + within_s
    address = _resolve_in_time(target, networks=networks, seconds=min(DEADLINE_S, within_s))
    connection = _Pinned(target, address, ends=ends)
    deadline = threading.Timer(max(0.0, ends - time.monotonic()), connection.hang_up)
    deadline.daemon = True
    deadline.start()
    try:
        connection.request(method, target.path, body=body, headers={"User-Agent": "toolhub", **(headers or {})})
        # One that is not read to its end would hold the socket open.
        with contextlib.closing(connection.getresponse()) as response:
            said = response.read(most_bytes + 1) if read else b""
    except (OSError, http.client.HTTPException, ValueError) as error:
        is_late = connection.is_hung_up or isinstance(error, TimeoutError)
        why = "did not answer in time" if is_late else f"did not answer: {type(error).__name__}"
        raise OutboundFailed(f"{target.host} {why}.") from error
    finally:
        deadline.cancel()
        connection.close()
    if connection.is_hung_up:  # an end that the server has not made
        raise OutboundFailed(f"{target.host} did not answer in time.")
    if read and response.length and len(said) <= most_bytes:
        raise OutboundFailed(f"{target.host} did not answer: the connection ended within the answer.")
    if len(said) > most_bytes:
        raise OutboundTooLarge(f"{target.host} answered with more than {most_bytes:,} bytes.")
    if response.status not in statuses:
        raise OutboundFailed(f"{target.host} answered {response.status}.")
    return OutboundResponse(response.status, said, {name.lower(): value for name, value in response.getheaders()})
