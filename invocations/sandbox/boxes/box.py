"""Box: how the hub talks with one.

A box is loaded once and called one call at a time. What it says of itself is believed (its first process is ours); what a
tool says comes as bytes.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from invocations.sandbox.boxes.attach_stream import ChannelLost, ChannelTimeout
from invocations.sandbox.pool.loads import LoadTimeout
from sandbox import protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.boxes.socket_stream import BoxStream
    from invocations.sandbox.egress import EgressDoor
    from invocations.sandbox.isolation.container import BoxShape

CANCEL_S = 0.25
_GRACE_S = 3.0  # the supervisor stops the tool by itself; this is for one that does not get to it
_SEND_S = 20.0
_LAST_WORDS_S = 1.0
_TOO_SLOW = "The tool's code was not imported within {:g} s, so the tool was not called."


class NothingRan(Exception):
    """The box ended or broke before the call was in it: another box can do the call."""


class NotLoaded(Exception):
    """The box could not take the tool's package. The message says why; ``said_no``: in the words of the box."""

    def __init__(self, message: str, *, said_no: bool = False) -> None:
        super().__init__(message)
        self.said_no = said_no


@dataclass(slots=True)
class BoxReply:
    """What a box said of one call, and when (``time.perf_counter``): the call was in it, the result out of it."""

    head: dict[str, Any]
    parts: list[bytes]
    sent: float
    loaded: float
    answered: float


@dataclass(eq=False)
class Box:
    """One container that is ready, for one caller at a time."""

    id: str
    shape: BoxShape
    stream: BoxStream
    channel: protocol.FrameChannel
    folder: Path | None = None
    door: EgressDoor | None = None
    sending: threading.Lock = field(default_factory=threading.Lock)

    def is_alive(self) -> bool:
        """Whether it waits for us. One that has ended, or speaks without being asked, serves no more."""
        return self.stream.is_quiet()

    def check_alive(self) -> None:
        if not self.is_alive():
            raise NothingRan("The box had ended.")

    def load(self, body: bytes, *, seconds: float) -> None:
        """Put a tool's code into it. :class:`NothingRan`, :class:`NotLoaded`, :class:`LoadTimedOut`."""
        self.stream.allow(_SEND_S)
        try:
            self.channel.send(protocol.LOAD, body)
        except ChannelLost as error:
            self.hear_last_words(seconds)
            raise NothingRan(str(error)) from error
        self.wait_until_loaded(seconds)

    def wait_until_loaded(self, seconds: float) -> None:
        try:
            self._hear_loaded(seconds, patience_s=seconds + _GRACE_S)
        except ChannelTimeout as error:
            raise LoadTimeout(_TOO_SLOW.format(seconds)) from error

    def hear_last_words(self, seconds: float) -> None:
        """It has taken no more: why, if it says so. ``seconds``: how long its load might take."""
        with suppress(ChannelTimeout):
            self._hear_loaded(seconds, patience_s=_LAST_WORDS_S)

    def _hear_loaded(self, seconds: float, *, patience_s: float) -> None:
        self.stream.allow(patience_s)
        try:
            head, _ = protocol.unpack(self.channel.receive(protocol.LOADED))
        except ChannelTimeout:
            raise
        except (ChannelLost, protocol.ProtocolError) as error:
            raise NotLoaded(str(error)) from error
        if head["late"]:
            raise LoadTimeout(_TOO_SLOW.format(seconds))
        if not head["ok"]:
            raise NotLoaded(str(head["why"]), said_no=head["said_no"])

    def close(self) -> None:
        """End the conversation: the box ends by itself then, and the engine removes it."""
        self.stream.break_off()
        self.stream.close()
        if self.door is not None:
            self.door.close()


class BoxConversation:
    """The conversation about one call."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._called = self._over = self.cancelled = False
        self._answered = threading.Event()

    def run(
        self,
        load: bytes | None,
        call: bytes,
        load_s: float,
        wall_s: float,
        *,
        on_event: Callable[[str, bytes], None] | None,
    ) -> BoxReply:
        """Have the call done. :class:`ChannelLost`: it may have been. It was not: :class:`NothingRan`, and with a ``load``
        :class:`NotLoaded`, :class:`LoadTimedOut`.
        """
        box = self._box
        try:
            sent = time.perf_counter()
            self._send(load, call, load_s)
            loaded = sent
            if load is not None:
                box.wait_until_loaded(load_s)
                loaded = time.perf_counter()
            box.stream.allow(load_s + wall_s + _GRACE_S)
            while True:
                kind, body = box.channel.receive_one_of(protocol.EVENT, protocol.RESULT)
                head, parts = protocol.unpack(body)
                if kind == protocol.RESULT:
                    return BoxReply(head, parts, sent, loaded, time.perf_counter())
                if on_event is not None:
                    on_event(head["stream"], parts[0])
        finally:
            self.close()

    def close(self) -> None:
        """It is over: what the box does from now on is another call's."""
        self._answered.set()
        with self._box.sending:
            self._over = True

    def _send(self, load: bytes | None, call: bytes, load_s: float) -> None:
        box = self._box
        box.stream.allow(_SEND_S)
        try:
            with box.sending:
                if self.cancelled:
                    raise NothingRan("The call was cancelled.")
                if load is not None:
                    box.channel.send(protocol.LOAD, load)
                    box.stream.allow(load_s + _SEND_S)  # it is read when the box is loaded
                box.channel.send(protocol.CALL, call)
                self._called = True
        except ChannelLost as error:
            if load is not None:
                box.hear_last_words(load_s)
            raise NothingRan(str(error)) from error

    def ask_to_end(self) -> None:
        """Only the call of this conversation: what the box does afterwards is nobody's business here."""
        self.cancelled = True
        if not self._box.sending.acquire(timeout=CANCEL_S):
            return  # it does not even take the call
        try:
            if self._called and not self._over:
                with suppress(ChannelLost):
                    self._box.channel.send(protocol.CANCEL, b"")
        finally:
            self._box.sending.release()

    def insist(self) -> None:
        """After it was asked to end: the box has a moment to report, then it is given up."""
        if self._answered.wait(CANCEL_S):
            return
        free = self._box.sending.acquire(timeout=CANCEL_S)  # else it is this call that is being sent
        try:
            if not self._over:
                self._box.stream.break_off()
        finally:
            if free:
                self._box.sending.release()
