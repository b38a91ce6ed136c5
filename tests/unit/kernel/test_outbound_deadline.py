"""Outbound deadline: does somebody else's server hold the hub longer than the hub has decided, at whichever step it is slow?"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from kernel.http import outbound

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL = ["127.0.0.0/8"]
SOON_S = 0.3  # the time-out of a single step stays at seconds, so it is not what ends these
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"  # http.client lets go of its socket when it reads this


@pytest.fixture(autouse=True)
def short_deadline(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = LOCAL
    monkeypatch.setattr(outbound, "DEADLINE_S", SOON_S)  # of who looks for the address


@contextmanager
def slow_server(said: bytes) -> Iterator[int]:
    """One that says this to the first who asks, and then nothing. Its port."""
    done = threading.Event()

    def serve() -> None:
        taken, _ = server.accept()
        with taken:
            taken.sendall(said)
            done.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            done.set()
            thread.join(60)


@pytest.mark.parametrize(
    ("scheme", "said"),
    [("http", b""), ("http", HEAD), ("http", HEAD + b"x"), ("https", b"")],  # the last: no handshake
)
def test_a_server_that_says_no_more_is_left_at_the_deadline(scheme: str, said: bytes) -> None:
    with slow_server(said) as port, pytest.raises(outbound.OutboundFailed, match="did not answer in time"):
        outbound.send_request(f"{scheme}://127.0.0.1:{port}/", within_s=SOON_S)


@pytest.mark.parametrize("said", [b"", b"half of it"])
def test_an_answer_that_ends_before_its_length_is_none(said: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n"

    def serve() -> None:
        taken, _ = server.accept()
        with taken:
            taken.recv(4096)
            taken.sendall(head + said)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(outbound.OutboundFailed, match="ended within the answer"):
            outbound.send_request(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join(60)


def test_a_name_server_that_says_nothing_is_left_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()

    def ask(*_: Any, **__: Any) -> Any:
        done.wait(60)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", ask)
    try:
        with pytest.raises(outbound.OutboundFailed, match="was not found in time"):
            outbound.send_request("https://slow.example/", within_s=SOON_S)
    finally:
        done.set()


def test_a_connection_that_is_made_after_the_deadline_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.create_connection
    hung_up = threading.Event()
    hang_up = outbound._Pinned.hang_up

    def note(pinned: Any) -> None:
        hang_up(pinned)
        hung_up.set()

    def connect_late(*args: Any, **more: Any) -> Any:
        made = connect(*args, **more)
        assert hung_up.wait(60)
        return made

    monkeypatch.setattr(outbound._Pinned, "hang_up", note)
    monkeypatch.setattr(socket, "create_connection", connect_late)

    with slow_server(b"") as port, pytest.raises(outbound.OutboundFailed, match="did not answer in time"):
        outbound.send_request(f"http://127.0.0.1:{port}/", within_s=SOON_S)


def test_what_strangers_name_is_asked_at_public_addresses_only() -> None:
    with slow_server(HEAD) as port, pytest.raises(outbound.AddressRefused, match="private address"):
        try:
            outbound.send_request(f"https://127.0.0.1:{port}/", networks=[])
        finally:
            socket.create_connection(("127.0.0.1", port)).close()  # so that the server ends
