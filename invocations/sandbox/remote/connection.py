"""Host connection: how a worker reaches a sandbox host, and what may fail of that.

What fails before a call was sent is :class:`HostUnavailable`, and another host may be asked; what fails afterwards is
:class:`CallLost`, and nobody is.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from invocations.sandbox.wire import contract
from invocations.sandbox.wire.calls import decode_event, decode_outcome
from invocations.sandbox.wire.identities import IdentityUnusable
from invocations.sandbox.wire.messages import (
    ANSWER,
    EVENT,
    MAX_ANSWER_BYTES,
    REQUEST,
    MessageChannel,
    OversizedHead,
    WireError,
)
from invocations.sandbox.wire.streams import SILENCE_S, PeerLost, PeerStream, TlsPeerStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.base import RunEvent, RunOutcome
    from invocations.sandbox.wire.identities import Identity
    from invocations.sandbox.wire.messages import Message

CONNECT_S = 3.0
ANSWER_S = 10.0
CHECK_S = 120.0  # the walls of a host may be looked at anew
FRESH_S = 2.0  # a connection that was used since then is taken as it is
KEPT_S = 300.0


class HostUnavailable(Exception):
    """Nothing was sent of a call, and nothing has begun. The message says why."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class CallLost(Exception):
    """The call was sent, and what became of it is not known. The message says how that came."""


class CallUnfit(Exception):
    """The call fits into no message, so it was not sent. The message says why."""


@dataclass(frozen=True, slots=True)
class HostAddress:
    """``unix:///path`` or ``tls://name:port``, as :func:`kernel.variables.read_sandbox_hosts` has read it."""

    text: str

    @property
    def is_remote(self) -> bool:
        return self.text.startswith("tls:")

    def connect(self, identity: Identity | None) -> PeerStream:
        url = urlsplit(self.text)
        if not self.is_remote:
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(CONNECT_S)
            try:
                connection.connect(url.path)
            except OSError:
                connection.close()
                raise
            return PeerStream(connection)
        if identity is None:
            raise IdentityUnusable(
                "No certificate is set (TOOLHUB_SANDBOX_TLS_…), and over tls:// a host is reached with one only."
            )
        assert url.hostname is not None
        context = identity.load()
        connection = socket.create_connection((url.hostname, url.port or 0), CONNECT_S)
        try:
            return TlsPeerStream(connection, context, server_name=url.hostname, within_s=CONNECT_S)
        except BaseException:
            connection.close()
            raise


class HostConnection:
    """One connection, used by one thread at a time."""

    def __init__(self, stream: PeerStream) -> None:
        self.channel = MessageChannel(stream, most=MAX_ANSWER_BYTES)
        self.used_at = time.monotonic()
        self.host = ""

    def ask(self, head: dict[str, Any], *, within_s: float = ANSWER_S) -> Message:
        """The answer, which may be a refusal: :class:`HostUnavailable` then."""
        self.channel.send(REQUEST, head)
        return self.take_answer(head["op"], within_s)

    def take_answer(self, op: str, within_s: float) -> Message:
        """The answer to the request of this name."""
        answer = self.channel.receive(within_s)
        self.used_at = time.monotonic()
        if answer.kind != ANSWER:
            raise WireError("Something else came in place of an answer.")
        check_answer(answer, op)
        return answer

    def greet(self) -> None:
        head = {
            "op": contract.HELLO,
            "contract": contract.CONTRACT_VERSION,
            "sources": contract.compute_sources_digest(),
        }
        self.host = str(self.ask(head, within_s=CONNECT_S).head.get("host", ""))

    def is_usable(self) -> bool:
        """Whether it may be used again: one that was not used for long is asked first, so that no call is sent into the void."""
        idle_s = time.monotonic() - self.used_at
        if idle_s > KEPT_S or not self.channel.stream.is_quiet():
            return False
        if idle_s < FRESH_S:
            return True
        try:
            self.ask({"op": contract.HEALTH}, within_s=CONNECT_S)
        except (PeerLost, WireError, HostUnavailable):
            return False
        return True

    def close(self) -> None:
        self.channel.stream.close()

    def converse(
        self,
        head: dict[str, Any],
        parts: tuple[bytes, ...],
        longest_s: float,
        on_event: Callable[[RunEvent], None] | None,
    ) -> RunOutcome:
        """Send a call, and take what comes of it. From the first byte on nothing is sent a second time."""
        try:
            self.channel.send(REQUEST, head, *parts)
            for message in self._receive_until_answer(longest_s):
                if message.kind == EVENT and on_event is not None:
                    on_event(decode_event(message.parts[0]))
                elif message.kind == ANSWER:
                    check_answer(message, contract.OUTCOME)
                    self.used_at = time.monotonic()
                    return decode_outcome(message.parts)
        except OversizedHead as error:
            raise CallUnfit(f"What describes the call is too much: {error}") from error
        except (PeerLost, WireError, ValueError, IndexError) as error:
            raise CallLost(str(error)) from error
        raise CallLost(f"The call has not ended within {longest_s:.0f} s.")

    def _receive_until_answer(self, longest_s: float) -> Iterator[Message]:
        """What comes, until so much time is over. Both sides say now and then that they are there."""
        ends_at = time.monotonic() + longest_s
        self.channel.heard_at = time.monotonic()
        while time.monotonic() < ends_at:
            message = self.channel.receive_until(self.channel.ping_when_due())
            if message is not None:
                yield message
            elif time.monotonic() - self.channel.heard_at > SILENCE_S:
                raise PeerLost(f"It has said nothing for {SILENCE_S:g} s.")


def check_answer(answer: Message, op: str) -> None:
    """:class:`HostUnavailable` for a refusal, :class:`WireError` when it answers something else than was asked."""
    given = answer.head.get("op")
    if given == contract.REFUSED:
        raise HostUnavailable(str(answer.head.get("message", "")), code=str(answer.head.get("code", "")))
    if given != op:
        raise WireError(f"An answer to {str(given)[:40]!r} came in place of one to {op!r}.")
