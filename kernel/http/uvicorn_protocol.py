"""Uvicorn protocol: how much anybody may send before a request is whole, and how long that may take.

uvicorn bounds neither: it joins a header of any length piece by piece, on the loop that everybody's requests run on, and waits for the
rest of a request for ever. This is its protocol with bounds. What goes beyond one is answered while it is read, and not kept.

``manage.py serve`` uses it. For whoever starts uvicorn itself: ``--http kernel.http.uvicorn_protocol:Protocol --no-proxy-headers``.
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from kernel.http.body_limits import BOUNDED, build_refusal
from kernel.http.traffic import REFUSED, count_refusal
from kernel.problems import AddressTooLong, HeadTooLarge, Malformed, Problem, RequestTooSlow, TooManyRequests

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger("toolhub.connections")

MAX_HEAD_BYTES = 32 * 1024  # a token of an identity provider has up to 16 KiB
MAX_HEADERS = 100
MAX_ADDRESS_BYTES = 16 * 1024
MAX_WAITING = 16  # requests that a connection sends before the one ahead of them is answered
HEAD_S = 10.0  # from the first byte to the last of a head, or from the connection when nothing comes
# A body that is waited for brings so much in each so many seconds, or its end.
BODY_WINDOW_S, BODY_WINDOW_BYTES = 20.0, 20 * 1024
# So long is thrown away what still comes of a request that was refused: who closes at once takes the answer back.
LINGER_S = 2.0

OF_UPGRADES = (b"upgrade", b"connection", b"http2-settings")


class Phase(Enum):
    """What of a request comes next."""

    IDLE, HEAD, BODY = range(3)


class _Refused(Exception):
    """Ends the parser's work within one of its callbacks."""


class Protocol(HttpToolsProtocol):
    """One connection. Speaks HTTP/1.1 and nothing else: a wish for another protocol is not heard."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.url = b""  # until a request begins
        self._phase = Phase.IDLE
        self._advanced = False  # the parser has read more than a part of a header
        self._unfinished = 0  # bytes read since it did
        self._head_bytes = self._head_count = 0  # headers and trailers of the request that is read
        self._body_bytes = 0  # in this window of time
        self._problem: Problem | None = None
        self._over = False
        self._without_upgrade = b""  # the head of a request with a body that asked for another protocol
        self._upgraded = False  # such a one was read, the last of its connection
        self._arrived = 0.0  # when the request that is read began, on the loop's clock
        self._clock: asyncio.TimerHandle | None = None
        self._clock_of = Phase.IDLE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arrived = self.loop.time()
        self._start_clock(Phase.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        self._unset_keepalive_if_required()
        self._advanced = False
        try:
            self._parse(data)
        except httptools.HttpParserUpgrade:
            # Answered as if it had not asked, as RFC 9110 allows. What follows may be of the other protocol.
            self._over = True
        except httptools.HttpParserError:
            self._refuse(self._problem or Malformed("This is not a request of HTTP/1.1."))
            return
        # The parser joins what it has of a header with each piece that comes, and says nothing before the last.
        self._unfinished = 0 if self._advanced else self._unfinished + len(data)
        if self._unfinished > MAX_HEAD_BYTES:
            self._refuse(_head_too_large())
            return
        # Blank lines before a request are the beginning of its head.
        phase = Phase.HEAD if self._phase is Phase.IDLE and not self._advanced else self._phase
        if phase is not self._clock_of:
            self._start_clock(phase)

    def _parse(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if not self._without_upgrade:
                raise
            # The parser would take the body for the other protocol: another one reads the request as if it had not asked.
            head, self._without_upgrade = self._without_upgrade, b""
            self._upgraded, self.parser = True, httptools.HttpRequestParser(self)
            self.parser.feed_data(head + data[upgrade.args[0] :])

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MAX_WAITING:
            self._stop_parsing(TooManyRequests(f"A connection has at most {MAX_WAITING} requests waiting."))
        self._advanced, self._phase, self._arrived = True, Phase.HEAD, self.loop.time()
        self._head_bytes = self._head_count = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        if len(self.url) + len(url) > MAX_ADDRESS_BYTES:
            said = f"The address has more than {MAX_ADDRESS_BYTES:,} bytes."
            self._stop_parsing(AddressTooLong(said, details={"max_bytes": MAX_ADDRESS_BYTES}))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        self._head_count += 1
        if self._head_bytes > MAX_HEAD_BYTES or self._head_count > MAX_HEADERS:
            self._stop_parsing(_head_too_large())
        if self._phase is Phase.HEAD:  # trailers are not headers: whoever decided by those has decided
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        upgrade = self.parser.should_upgrade()
        if upgrade and any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers):
            self._without_upgrade = self._head_without_upgrade()
            return
        self.scope[BOUNDED] = True  # type: ignore[literal-required]
        super().on_headers_complete()
        self._advanced, self._phase, self._body_bytes = True, Phase.BODY, 0
        if upgrade or self._upgraded:
            self.cycle.keep_alive = False

    def _head_without_upgrade(self) -> bytes:
        """The head that was read, without the wish. Java's client sends it with each request, to speak HTTP/2 if it can."""
        method, values = self.parser.get_method(), [value for _, value in self.headers]
        if self._upgraded or method == b"CONNECT" or any(b"\r" in value or b"\n" in value for value in values):
            remedy = (
                "Leave the header Upgrade out: the hub speaks HTTP/1.1 (in Java: version(HttpClient.Version.HTTP_1_1))."
            )
            self._stop_parsing(Malformed("A request that asks for another protocol has no body.", remedy=remedy))
        kept = [name + b": " + value + b"\r\n" for name, value in self.headers if name not in OF_UPGRADES]
        version = self.parser.get_http_version().encode()
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, b"".join(kept))

    def on_body(self, body: bytes) -> None:
        self._advanced = True
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._without_upgrade:
            return  # of the head alone: the whole is read anew
        self._advanced, self._phase = True, Phase.IDLE
        self._stop_clock()
        super().on_message_complete()
        self._over = self._over or self._upgraded  # what follows may be of the other protocol

    def _should_upgrade_to_ws(self) -> bool:
        return False

    def _stop_parsing(self, problem: Problem) -> None:
        self._problem = problem
        raise _Refused

    def _start_clock(self, phase: Phase) -> None:
        self._stop_clock()
        if phase is not Phase.IDLE:
            seconds = HEAD_S if phase is Phase.HEAD else BODY_WINDOW_S
            self._clock, self._clock_of = self.loop.call_later(seconds, self._check_time), phase

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock, self._clock_of = None, Phase.IDLE

    def _check_time(self) -> None:
        """The time of a head or of a body's window is over."""
        if self.transport.is_closing():
            return
        if self.flow.read_paused or (self._clock_of is Phase.BODY and self._body_bytes >= BODY_WINDOW_BYTES):
            self._body_bytes = 0  # what comes is not read just now, or it comes as fast as it must
            self._start_clock(self._clock_of)
        elif self._phase is not Phase.IDLE:
            self._refuse(RequestTooSlow())
        elif self._is_free():
            self.transport.close()  # nothing was asked, so there is nothing to answer
        else:
            self._stop_clock()

    def _is_free(self) -> bool:
        """Whether no request is being answered, or waits for it."""
        return not self.pipeline and (self.cycle is None or self.cycle.response_complete)

    def _refuse(self, problem: Problem) -> None:
        """Answer, when the answer to this request is the next one of the connection, and hear nothing more of it."""
        self._over = True
        self._stop_clock()
        log.info("%s:%s %s: %s", *(self.client or ("", "")), problem.status, problem.detail)
        unanswered = self._phase is Phase.BODY and not self.pipeline and not self.cycle.response_started
        if not unanswered and not self._is_free():
            self.transport.close()
            return
        if unanswered:
            self.scope[REFUSED] = problem.status  # type: ignore[literal-required]
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        else:
            count_refusal(problem.status, self.loop.time() - self._arrived)
        status, headers, body = build_refusal(problem, self.url.partition(b"?")[0].decode("latin-1"))
        lines = [name + b": " + value + b"\r\n" for name, value in (*self.server_state.default_headers, *headers)]
        self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", body]))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._clock = self.loop.call_later(LINGER_S, self.transport.close)


def _head_too_large() -> HeadTooLarge:
    return HeadTooLarge(
        f"The headers have more than {MAX_HEAD_BYTES:,} bytes, or are more than {MAX_HEADERS}.",
        details={"max_bytes": MAX_HEAD_BYTES, "max_headers": MAX_HEADERS},
    )
