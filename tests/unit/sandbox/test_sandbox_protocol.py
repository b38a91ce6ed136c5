from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sandbox import protocol

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = bytes(range(64))


def reader_of(data: bytearray) -> Callable[[int], bytes]:
    def read(size: int) -> bytes:
        if len(data) < size:
            raise EOFError
        taken = bytes(data[:size])
        del data[:size]
        return taken

    return read


class Wire:
    """Both ends of a channel, and the bytes that are on their way."""

    def __init__(self) -> None:
        self.to_box, self.to_hub = bytearray(), bytearray()
        self.hub = protocol.FrameChannel(reader_of(self.to_hub), self.to_box.extend)
        self.box = protocol.FrameChannel(reader_of(self.to_box), self.to_hub.extend)
        self.hub.open(KEYS)
        self.box.accept()


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_frames_arrive_in_order_in_both_directions(wire: Wire) -> None:
    wire.box.send(protocol.READY, b"1")
    wire.hub.send(protocol.CALL, b"2" * 100_000)
    wire.box.send(protocol.RESULT, b"")

    assert wire.hub.receive(protocol.READY) == b"1"
    assert wire.box.receive(protocol.CALL) == b"2" * 100_000
    assert wire.hub.receive(protocol.RESULT) == b""


@pytest.mark.parametrize("position", [0, 2, 3, 5, 11, 12, 27, 28, 31])
def test_a_frame_with_one_changed_byte_is_refused(wire: Wire, position: int) -> None:
    wire.hub.send(protocol.CALL, b"body")
    wire.to_box[position] ^= 1

    with pytest.raises((protocol.ProtocolError, EOFError)):
        wire.box.receive(protocol.CALL)


def test_a_repeated_frame_is_refused(wire: Wire) -> None:
    wire.hub.send(protocol.CALL, b"body")
    wire.to_box.extend(bytes(wire.to_box))
    wire.box.receive(protocol.CALL)

    with pytest.raises(protocol.ProtocolError, match="repeated"):
        wire.box.receive(protocol.CALL)


def test_a_frame_that_was_sent_the_other_way_is_refused(wire: Wire) -> None:
    wire.box.send(protocol.READY, b"body")
    wire.to_box.extend(wire.to_hub)

    with pytest.raises(protocol.ProtocolError):
        wire.box.receive(protocol.READY)


def test_a_frame_of_another_kind_is_refused(wire: Wire) -> None:
    wire.hub.send(protocol.CALL, b"")

    with pytest.raises(protocol.ProtocolError, match="kind"):
        wire.box.receive(protocol.RESULT)


def test_a_frame_that_is_too_long_is_neither_sent_nor_read(wire: Wire) -> None:
    with pytest.raises(protocol.ProtocolError):
        wire.hub.send(protocol.CALL, bytes(protocol.MAX_FRAME_BYTES + 1))
    wire.to_box.extend(b"TB\x02\x03\x00\x00\x00\x01\xff\xff\xff\xff" + bytes(16))
    with pytest.raises(protocol.ProtocolError):
        wire.box.receive(protocol.CALL)


def test_a_body_is_put_together_and_taken_apart() -> None:
    assert protocol.unpack(protocol.pack({"a": 1}, b"x", b"", b"yz")) == ({"a": 1}, [b"x", b"", b"yz"])


@pytest.mark.parametrize("body", [b"", b"\0\0\0\1", b"\0\0\0\2{}", protocol.pack({}, b"abc")[:-1], b"\0\0\0\2[]"])
def test_a_broken_body_is_refused(body: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.unpack(body)


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null, "\\u00e9 é"], "b": {}}', " [1]\n", "7", '"x"', "1e400", "NaN"])
def test_json_is_read_as_the_library_reads_it(text: str) -> None:
    assert repr(protocol.read_json(text.encode())) == repr(json.loads(text))


@pytest.mark.parametrize("text", [b"", b" ", b"{", b"1 2", b"{} x", b"\xff", b"nul"])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"JSON|expect|Expect|decode|delimiter"):
        protocol.read_json(text)
