"""HTTP client: how a model's provider is asked. One address, one pool, bounded in time and size, every failure a problem.

The key of a provider goes to the address that is configured and nowhere else: requests to other hosts and redirects are refused. The
name is resolved once, all that it means is checked, and the connection goes to exactly what was checked. A provider's library is given
a client of this kind (:meth:`HttpClient.build_client`), so that none of them opens its own.
"""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import anyio
import httpx2

from kernel.http.addresses import is_within, may_reach
from kernel.problems import Problem, SchemaInvalid
from llm.problems import ModelTimedOut, ProviderAnswerUnreadable, ProviderUnavailable, StreamTruncated
from llm.providers.failures import (
    MAX_ERROR_BYTES,
    NOT_JSON,
    ErrorBody,
    classify_exception,
    classify_frame,
    classify_response,
)
from unitools.server_sent_events import EventReader, EventTooLong

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    # (scheme, host, port) to the addresses that may be asked, all of them checked; raises a Problem.
    AddressCheck = Callable[[str, str, int], Awaitable[tuple[str, ...]]]

MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_CONNECTIONS = 200
KEPT_S = 30.0  # an idle connection
EVENTS = "text/event-stream"
JSON = "application/json"
OWN_HEADERS = {"accept": "*/*", "user-agent": "toolhub"}  # some servers refuse whoever says nothing

NOT_RESOLVED = "The name of the provider's host cannot be resolved."
LOOKED_UP_S = 5.0
PRIVATE = "The provider is at a private address, and no network was named in which that is allowed."
PLAIN = "The provider is asked over https only, but in networks that were named for it."
OTHER_HOST = "Something asked for another host than that of the provider."
TOO_LARGE = "The provider's answer is larger than is read."
COMPRESSED = "The provider's answer is compressed, though that was not asked for."
NOT_EVENTS = "The provider answered with something that is no stream of events."


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """How long a provider may take: to take a connection, to begin its answer, between two pieces of it, and in all."""

    connect_s: float = 5.0
    first_event_s: float = 120.0
    idle_s: float = 60.0
    total_s: float = 900.0


@dataclass(frozen=True, slots=True)
class AllowedAddresses:
    """The check that holds where no other is given: public addresses over https, and all in the networks that are named.

    A host is looked up again after some seconds and not for each request. What a lookup found is what is connected to, so a host that
    means another address meanwhile gains nothing.
    """

    networks: tuple[str, ...] = ()
    _found: dict[tuple[str, str, int], tuple[float, tuple[str, ...]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    async def __call__(self, scheme: str, host: str, port: int) -> tuple[str, ...]:
        until, addresses = self._found.get((scheme, host, port), (0.0, ()))
        if monotonic() >= until:
            addresses = await self._look_up(scheme, host, port)
            self._found[scheme, host, port] = (monotonic() + LOOKED_UP_S, addresses)
        return addresses

    async def _look_up(self, scheme: str, host: str, port: int) -> tuple[str, ...]:
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ProviderUnavailable(NOT_RESOLVED) from error
        addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
        for text in addresses:
            address = ip_address(text.partition("%")[0])
            if not may_reach(address, self.networks):
                raise ProviderUnavailable(PRIVATE)
            if scheme != "https" and not is_within(address, self.networks):
                raise ProviderUnavailable(PLAIN)
        return addresses


class StreamWatch(Protocol):
    """Who sees the bytes of a stream before the library does, and knows whether it has come to its end. Both raise problems."""

    def feed(self, data: bytes) -> None: ...

    def finish(self) -> None: ...


class HttpClient:
    """One provider's connections. ``proxy``: asked instead of the provider's address, which is then the proxy's to check."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limits: TimeLimits | None = None,
        check_address: AddressCheck | None = None,
        tls: ssl.SSLContext | None = None,
        proxy: str = "",
    ) -> None:
        self.base_url = read_base_url(base_url)
        self.headers = dict(headers or {})
        self.limits = limits or TimeLimits()
        self.check_address = check_address or AllowedAddresses()
        self.proxy = proxy
        self._tls = tls
        # Connections live in the event loop in which they were made; a program may have several, one after the other.
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncHTTPTransport] = WeakKeyDictionary()

    def get_pool(self) -> httpx2.AsyncHTTPTransport:
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is None:
            bounds = httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEPT_S)
            tls = self._tls or build_tls()
            pool = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, limits=bounds, proxy=self.proxy or None)
            self._pools[loop] = pool
        return pool

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    def build_client(self, exchange: Exchange) -> httpx2.AsyncClient:
        """A client for one request. It may be closed or not: the connections stay."""
        return httpx2.AsyncClient(
            transport=exchange,
            base_url=self.base_url,
            headers=self.headers,
            follow_redirects=False,
            trust_env=False,
            timeout=None,
        )

    def _build_request(
        self,
        method: str,
        path: str,
        *,
        body: object,
        headers: Mapping[str, str] | None,
        params: Mapping[str, str] | None,
    ) -> httpx2.Request:
        """Without a client around it, which takes longer to make than the request."""
        target = self.base_url.raw_path.rstrip(b"/") + b"/" + path.lstrip("/").encode()
        url, named = self.base_url.copy_with(raw_path=target), {**OWN_HEADERS, **self.headers, **(headers or {})}
        return httpx2.Request(method, url, json=body, headers=named, params=params)

    @asynccontextmanager
    async def open_stream(
        self,
        path: str,
        *,
        body: object,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        watch: StreamWatch | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """Ask for a stream of events; leaving the context ends the provider's work. Every failure is a Problem.

        ``path`` is appended to the base address.
        """
        exchange = Exchange(self, watch=watch)
        request = self._build_request("POST", path, body=body, headers=headers, params=params)
        response = await exchange.handle_async_request(request)
        try:
            yield response
        except httpx2.HTTPError as error:
            raise exchange.problem or classify_exception(error) from error
        finally:
            await response.aclose()

    async def fetch_json(
        self,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Any:
        """A whole answer in JSON; GET where there is no body. Every failure is a Problem."""
        exchange = Exchange(self, expects=JSON)
        method = "GET" if body is None else "POST"
        request = self._build_request(method, path, body=body, headers=headers, params=params)
        response = await exchange.handle_async_request(request)
        try:
            document = json.loads(await response.aread())
        except httpx2.HTTPError as error:
            raise exchange.problem or classify_exception(error) from error
        except (ValueError, RecursionError) as error:
            raise ProviderAnswerUnreadable(NOT_JSON) from error
        if isinstance(document, dict) and document.get("error"):
            raise classify_frame(document)
        return document


@lru_cache(1)
def build_tls() -> ssl.SSLContext:
    """Reading all certificates takes some milliseconds of a processor, so they are read once."""
    return httpx2.create_ssl_context(trust_env=False)


def read_base_url(text: str) -> httpx2.URL:
    """An address that providers can be asked at. Raises SchemaInvalid."""
    message = "Give the address of a provider as https://host/path, without a user name, a query or a fragment."
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        raise SchemaInvalid.at("/base_url", message) from None
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo or url.query or url.fragment:
        raise SchemaInvalid.at("/base_url", message)
    return url


class Exchange(httpx2.AsyncBaseTransport):
    """One request and its answer. ``problem``: what went wrong with it, whatever a library makes of that."""

    def __init__(self, client: HttpClient, *, expects: str = EVENTS, watch: StreamWatch | None = None) -> None:
        self._client = client
        self._expects = expects
        self.watch = watch
        self.problem: Problem | None = None
        self._ends_at = monotonic() + client.limits.total_s

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._send(request)
        except Problem as problem:
            self.problem = problem
            raise
        except Exception as error:
            self.problem = classify_sending(error)
            raise self.problem from error

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        _check_target(request.url, self._client.base_url)
        limits = self._client.limits
        request.headers["accept-encoding"] = "identity"
        request.extensions["timeout"] = {
            "connect": limits.connect_s,
            "pool": limits.connect_s,
            "write": limits.first_event_s,
            "read": None,  # watched here
        }
        with self.limit_time(limits.first_event_s):
            response = await self._connect(request)
        try:
            await self._check_response(response)
        except BaseException:
            await response.aclose()
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        stream = BoundedStream(self, response.stream)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )

    async def _connect(self, request: httpx2.Request) -> httpx2.Response:
        """Ask the first of the checked addresses that takes a connection. The certificate must name the host all the same."""
        pool, url = self._client.get_pool(), request.url
        if self._client.proxy:
            return await pool.handle_async_request(request)
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = await self._client.check_address(url.scheme, url.host, port)
        request.extensions["sni_hostname"] = url.host
        for address in addresses:
            request.url = url.copy_with(host=address)
            try:
                return await pool.handle_async_request(request)
            except httpx2.ConnectError:
                if address == addresses[-1]:
                    raise
        raise ProviderUnavailable(NOT_RESOLVED)

    async def _check_response(self, response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ProviderAnswerUnreadable(COMPRESSED)
        if not response.is_success:
            body = await self._read_beginning(response)
            raise classify_response(response.status_code, response.headers, body)
        if kind == "text/html" or (kind == JSON and self._expects == EVENTS):
            error = ErrorBody(await self._read_beginning(response))
            if isinstance(error.document, dict) and error.document.get("error"):
                raise classify_frame(error.document)
            problem = ProviderAnswerUnreadable(NOT_JSON if self._expects == JSON else NOT_EVENTS)
            problem.is_refusal = kind == "text/html"
            raise problem

    async def _read_beginning(self, response: httpx2.Response) -> bytes:
        """Of an error. What is wrong with its body does not matter beside it."""
        body = b""
        try:
            with self.limit_time(self._client.limits.idle_s):
                async for data in response.aiter_raw():
                    body += data
                    if len(body) >= MAX_ERROR_BYTES:
                        break
        except (httpx2.HTTPError, ModelTimedOut):
            pass
        return body[:MAX_ERROR_BYTES]

    @property
    def idle_s(self) -> float:
        return self._client.limits.idle_s

    @property
    def first_event_s(self) -> float:
        return self._client.limits.first_event_s

    def limit_time(self, seconds: float) -> _TimeLimit:
        return _TimeLimit(min(seconds, max(0.0, self._ends_at - monotonic())))


class _TimeLimit:
    """A limit of one wait; what takes longer is LLM.TIMEOUT."""

    def __init__(self, seconds: float) -> None:
        self._scope = anyio.fail_after(seconds)

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        try:
            return self._scope.__exit__(*error)
        except TimeoutError as late:
            raise ModelTimedOut from late


class BoundedStream(httpx2.AsyncByteStream):
    """The body of an answer as it arrives, watched for its time, its size and its end."""

    def __init__(self, exchange: Exchange, stream: httpx2.AsyncByteStream) -> None:
        self._exchange = exchange
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._read():
                yield data
        except Problem as problem:
            self._exchange.problem = problem
            raise
        except Exception as error:
            self._exchange.problem = classify_reading(error)
            raise self._exchange.problem from error

    async def _read(self) -> AsyncIterator[bytes]:
        pieces, size, watch = aiter(self._stream), 0, self._exchange.watch
        seconds = self._exchange.first_event_s
        while True:
            with self._exchange.limit_time(seconds):
                data = await anext(pieces, None)
            if data is None:
                break
            size += len(data)
            if size > MAX_ANSWER_BYTES:
                raise ProviderAnswerUnreadable(TOO_LARGE)
            if watch:
                watch.feed(data)
            seconds = self._exchange.idle_s
            yield data
        if watch:
            watch.finish()

    async def aclose(self) -> None:
        await self._stream.aclose()


def _check_target(url: httpx2.URL, base: httpx2.URL) -> None:
    if (url.scheme, url.host, url.port) != (base.scheme, base.host, base.port):
        raise ProviderUnavailable(OTHER_HOST)


def classify_sending(error: Exception) -> Problem:
    """A line that breaks before an answer: nobody was there."""
    problem = classify_exception(error)
    return ProviderUnavailable() if isinstance(problem, StreamTruncated) else problem


def classify_reading(error: Exception) -> Problem:
    """A line that breaks within an answer: it is not whole, whoever was at fault."""
    problem = classify_exception(error)
    return StreamTruncated() if isinstance(problem, ProviderUnavailable) else problem


async def read_events(response: httpx2.Response) -> AsyncIterator[str]:
    """The data of each server-sent event. What stands between them is left out.

    Raises:
        ProviderAnswerUnreadable: it is no text in UTF-8, or larger than is read.
    """
    reader = EventReader(max_chars=MAX_ANSWER_BYTES)
    try:
        async for piece in response.aiter_raw():
            for event in reader.read(piece):
                yield event.data
        for event in reader.read(b"", last=True):
            yield event.data
    except UnicodeDecodeError:
        raise ProviderAnswerUnreadable(NOT_EVENTS) from None
    except EventTooLong:
        raise ProviderAnswerUnreadable(TOO_LARGE) from None
