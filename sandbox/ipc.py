"""IPC: how the processes of a box hand things to each other.

Over pairs of sockets that keep messages apart: a few bytes, and descriptors with them. By the kernel's calls and not by what the
module ``socket`` puts around them, since what a process of a call runs is copied for it, page by page.
"""

from __future__ import annotations

import os
import struct
from _socket import AF_UNIX, CMSG_SPACE, SCM_CREDENTIALS, SCM_RIGHTS, SOCK_SEQPACKET, SOL_SOCKET, socket, socketpair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

_MOST_BYTES = 64 * 1024
_MOST_FDS = 8
_MOST_WORDS = 2000  # in bytes
WORD_BYTES = 16  # more than any word that tells what to do
_INLINE, _APART = b"=", b"@"
_CREDENTIALS = struct.Struct("3i")
_DESCRIPTOR = struct.Struct("i")


def fork_process(serve: Callable[[socket], NoReturn]) -> tuple[int, socket]:
    """A process of ours, and the way to it."""
    end, other = socketpair(AF_UNIX, SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        os.dup2(other.detach(), 3)
        empty = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(empty, fd)
        os.closerange(4, 1 << 20)
        serve(socket(fileno=3))
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


def send_message(end: socket, message: bytes, descriptors: Sequence[int] = ()) -> None:
    packed = b"".join([_DESCRIPTOR.pack(each) for each in descriptors])
    end.sendmsg((message,), ((SOL_SOCKET, SCM_RIGHTS, packed),) if packed else ())


def receive_message(end: socket, size: int = _MOST_BYTES, most: int = 1) -> tuple[bytes, int, list[int]]:
    """One message, the number of the process that sent it where the kernel says that, and the descriptors that came with it.

    ``size``: its bytes, and ``most``: its descriptors, where fewer than usual are expected.
    """
    room = CMSG_SPACE(_CREDENTIALS.size) + CMSG_SPACE(most * _DESCRIPTOR.size)
    pid, descriptors = 0, list[int]()
    try:
        message, others, _, _ = end.recvmsg(size, room)
    except ConnectionError:
        return b"", 0, []
    for level, kind, data in others:
        if level == SOL_SOCKET and kind == SCM_CREDENTIALS:
            pid = _CREDENTIALS.unpack(data)[0]
        if level == SOL_SOCKET and kind == SCM_RIGHTS:
            descriptors += [each for (each,) in _DESCRIPTOR.iter_unpack(data)]
    return message, pid, descriptors


def clean_message(message: bytes) -> str:
    """What another process of the box says for people to read: one line of bounded length, without what moves a cursor."""
    text = message[:_MOST_WORDS].decode("utf-8", "replace")
    return "".join(character if character.isprintable() else " " for character in text)


def send_work(end: socket, data: bytes, descriptors: Sequence[int] = ()) -> None:
    """Bytes, however many, and descriptors with them."""
    if len(data) < _MOST_BYTES:
        send_message(end, _INLINE + data, descriptors)
        return
    fd = open_in_memory(data)
    try:
        send_message(end, _APART, (fd, *descriptors))
    finally:
        os.close(fd)


def receive_work(end: socket) -> tuple[bytes, list[int]]:
    """What was given."""
    message, _, descriptors = receive_message(end, most=_MOST_FDS)
    if message[:1] == _APART:
        with os.fdopen(descriptors.pop(0), "rb") as file:
            return file.read(), descriptors
    if message[:1] != _INLINE:
        raise EOFError("Nothing was given.")
    return message[1:], descriptors
