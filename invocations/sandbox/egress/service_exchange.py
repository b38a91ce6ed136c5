"""Service exchange: one request of the service way and its answer.

The whole of the request is here before anything is connected to, so that what a box begins and does not finish never leaves. From
the first byte of a request that counts, no other one of the same run leaves: whether it left is a fact that others rely on.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

from invocations.sandbox.base import ServiceRecord
from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied
from invocations.sandbox.egress.service_answer import CHALLENGE, read_answer_head, stream_answer
from invocations.sandbox.egress.service_way import Question
from invocations.sandbox.egress.streams import PIECE, TlsStream

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from invocations.sandbox.egress.request_head import RequestHead
    from invocations.sandbox.egress.service_answer import AnswerHead
    from invocations.sandbox.egress.service_way import ServiceWay
    from invocations.sandbox.egress.streams import EgressStream, ReadPace

_END = b"0\r\n\r\n"


class ServiceExchange:
    """``count`` is told of each byte that passes, and may refuse it. ``answered``: the box has been told a status."""

    def __init__(self, way: ServiceWay, request: RequestHead, box: EgressStream, count: Callable[[int], None]) -> None:
        self._way, self._request, self._box, self._count = way, request, box, count
        self._service: TlsStream | None = None
        self._body = b""
        self.question = Question()
        self.status = 0
        self.answered = self.complete = self.refused_token = False
        self.bytes_out = self.bytes_in = 0

    @property
    def left(self) -> bool:
        return self._service is not None and self._service.left

    def to_record(self) -> ServiceRecord:
        return ServiceRecord(
            method=self._request.method,
            path=self._way.path,
            status=self.status,
            left=self.left,
            complete=self.complete,
            credentials=tuple(sorted(each.secret for each in self._way.credentials)),
            asks=self.question.asks,
            counts=self.question.counts,
            refused_token=self.refused_token,
        )

    async def take_body(self, *, most: int, seconds: float) -> None:
        """The whole of what the box sends, and nothing behind it."""
        length = self._request.length
        if length is None:
            raise EgressDenied(DenialReason.MALFORMED)
        if length > min(most, self._way.most_bytes):
            raise EgressDenied(DenialReason.TOO_MUCH)
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(seconds):
                while length:
                    piece = await self._box.read(min(length, PIECE))
                    if not piece:
                        raise EgressDenied(DenialReason.MALFORMED)
                    pieces.append(piece)
                    length -= len(piece)
        except TimeoutError as error:
            raise EgressDenied(DenialReason.TOO_SLOW) from error
        if self._box.ahead:  # a second request in the same breath
            raise EgressDenied(DenialReason.MALFORMED)
        self._body = b"".join(pieces)

    def read_question(self) -> None:
        """What the whole request asks for; :class:`EgressDenied`."""
        self.question = self._way.read_question(self._request, self._body)
        if self.question.body is not None:
            self._body = self.question.body

    async def open(self, end: socket.socket, pace: ReadPace, context: ssl.SSLContext, *, seconds: float) -> None:
        """TLS with who answers there, whom an authority must vouch for. ``end`` is closed by who has made it."""
        self._service = TlsStream(end, pace, context, self._way.host)
        try:
            async with asyncio.timeout(seconds):
                await self._service.open()
        except ssl.SSLCertVerificationError as error:
            raise EgressDenied(DenialReason.UNTRUSTED) from error
        except (OSError, TimeoutError) as error:
            raise EgressDenied(DenialReason.UNREACHABLE) from error

    async def pass_on(self, *, head_bytes: int, answer_bytes: int) -> None:
        """Send the request, and give the box what comes back, until it hangs up. :class:`EgressDenied` with what came between."""
        assert self._service is not None
        question = asyncio.ensure_future(self._send(self._service))
        answer = asyncio.ensure_future(self._relay(self._service, head_bytes, answer_bytes))
        gone = asyncio.ensure_future(self._box.read(1))
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                answer.result()
        finally:
            for each in (question, answer, gone):
                each.cancel()
            await asyncio.gather(question, answer, gone, return_exceptions=True)

    async def _send(self, service: TlsStream) -> None:
        """Who answers before it has read everything, and hangs up, is heard all the same."""
        head = self._way.head(self._request, length=len(self._body), more=self.question.headers)
        data = head + self._body
        with suppress(OSError):
            for at in range(0, len(data), PIECE):
                piece = data[at : at + PIECE]
                self.bytes_out += len(piece)
                await service.write(piece)

    async def _relay(self, service: TlsStream, head_bytes: int, answer_bytes: int) -> None:
        try:
            answer = await read_answer_head(
                service, method=self._request.method, kept=self._way.answer_headers | {CHALLENGE}, most=head_bytes
            )
            self.status, self.refused_token = answer.status, answer.refuses_token
        except OSError as error:
            raise EgressDenied(DenialReason.CUT_OFF) from error
        self.answered = True
        await self._box.write(self._head_for_box(answer))
        body = stream_answer(service, answer.length, most=answer_bytes)
        while True:
            try:
                piece = await anext(body, b"")
            except OSError as error:
                raise EgressDenied(DenialReason.CUT_OFF) from error
            if not piece:
                break
            self._count(len(piece))
            self.bytes_in += len(piece)
            await self._box.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.complete = True
        await self._box.write(_END)
        self._box.end()

    def _head_for_box(self, answer: AnswerHead) -> bytes:
        lines = [
            f"HTTP/1.1 {answer.status} Answer".encode(),
            *(
                name + b": " + self._way.hide(value)
                for name, value in answer.headers
                if name in self._way.answer_headers
            ),
            b"Transfer-Encoding: chunked",
            b"Connection: close",
        ]
        return b"\r\n".join([*lines, b"", b""])
