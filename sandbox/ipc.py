"""IPC: how the processes of a box hand things to each other.

Over pairs of sockets that keep messages apart: a few bytes, and descriptors with them.
"""

from __future__ import annotations

import array
import os
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_MOST_BYTES = 64 * 1024
_MOST_FDS = 8
_MOST_WORDS = 2000  # in bytes
_INLINE, _APART = b"=", b"@"
_CREDENTIALS = struct.Struct("3i")


def fork_process(serve: Callable[[socket.socket], NoReturn]) -> tuple[int, socket.socket]:
    """A process of ours, and the way to it."""
    end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        os.dup2(other.detach(), 3)
        empty = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(empty, fd)
        os.closerange(4, 1 << 20)
        serve(socket.socket(fileno=3))
    other.close()
    return pid, end


def open_in_memory(data: bytes) -> int:
    """A descriptor from which ``data`` can be read."""
    fd = os.memfd_create("work")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def receive_message(end: socket.socket) -> tuple[bytes, int, list[int]]:
    """One message, the number of the process that sent it, and the descriptors that came with it."""
    room = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(array.array("i").itemsize)
    pid, descriptors = 0, array.array("i")
    try:
        message, others, _, _ = end.recvmsg(_MOST_BYTES, room)
    except ConnectionError:
        return b"", 0, []
    for level, kind, data in others:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            pid = _CREDENTIALS.unpack(data)[0]
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data)
    return message, pid, list(descriptors)


def clean_message(message: bytes) -> str:
    """What another process of the box says for people to read: one line of bounded length, without what moves a cursor."""
    text = message[:_MOST_WORDS].decode("utf-8", "replace")
    return "".join(character if character.isprintable() else " " for character in text)


def send_work(end: socket.socket, data: bytes, descriptors: list[int]) -> None:
    """Bytes, however many, and descriptors with them."""
    if len(data) < _MOST_BYTES:
        socket.send_fds(end, [_INLINE, data], descriptors)
        return
    fd = open_in_memory(data)
    try:
        socket.send_fds(end, [_APART], [fd, *descriptors])
    finally:
        os.close(fd)


def receive_work(end: socket.socket) -> tuple[bytes, list[int]]:
    """What was given."""
    message, descriptors, _, _ = socket.recv_fds(end, _MOST_BYTES, _MOST_FDS)
    if message[:1] == _APART:
        with os.fdopen(descriptors.pop(0), "rb") as file:
            return file.read(), descriptors
    if message[:1] != _INLINE:
        raise EOFError("Nothing was given.")
    return message[1:], descriptors
