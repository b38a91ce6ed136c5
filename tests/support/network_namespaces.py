"""Network namespaces: how does a test run a process that can reach nobody, and still ask it something?

``python -m tests.support.network_namespaces SOCKET PORT COMMAND…`` becomes the command, in a namespace whose only interface is the
loopback. Whoever connects to SOCKET, which is a file and therefore in no namespace, is connected to PORT in there.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
PIECE = 1 << 16


def main(path: str, port: str, *command: str) -> None:
    _enter_empty_namespace()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    if os.fork() == 0:
        # It ends with the command, however that ends.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        Relay(listener, lambda: socket.create_connection(("127.0.0.1", int(port)))).accept_all()
        os._exit(0)
    listener.close()
    os.execv(command[0], command)


def _enter_empty_namespace() -> None:
    libc, user = ctypes.CDLL(None, use_errno=True), os.getuid()
    if libc.unshare(CLONE_NEWNET) != 0:  # whoever is not root owns a namespace of users first
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "This machine lets nobody but root make a network namespace.")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    with socket.socket() as any_socket:
        asked = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, asked))
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def list_interfaces(pid: int) -> set[str]:
    """Of the namespace that a process is in."""
    rows = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    return {row.partition(":")[0].strip() for row in rows}


@contextmanager
def relay_port(port: int, path: Path) -> Iterator[None]:
    """Whoever connects to ``port`` here is connected to the socket at ``path``."""

    def connect() -> socket.socket:
        found = socket.socket(socket.AF_UNIX)
        try:
            found.connect(str(path))
        except OSError:
            found.close()
            raise
        return found

    with socket.create_server(("127.0.0.1", port)) as listener:
        relay = Relay(listener, connect)
        thread = threading.Thread(target=relay.accept_all)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            relay.close()


class Relay:
    """Passes on, both ways, what comes over the connections to ``listener``."""

    def __init__(self, listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
        self._listener, self._connect = listener, connect
        self._threads: dict[threading.Thread, socket.socket] = {}

    def accept_all(self) -> None:
        with contextlib.suppress(OSError):  # nobody can connect any more
            while True:
                near, _ = self._listener.accept()
                try:
                    far = self._connect()
                except OSError:
                    near.close()
                    continue
                thread = threading.Thread(target=_relay_connection, args=(near, far), daemon=True)
                self._threads = {each: kept for each, kept in self._threads.items() if each.is_alive()} | {thread: near}
                thread.start()

    def close(self) -> None:
        for thread, near in self._threads.items():
            with contextlib.suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)
            thread.join()


def _relay_connection(near: socket.socket, far: socket.socket) -> None:
    with near, far:
        back = threading.Thread(target=_pass_on, args=(far, near), daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(PIECE):
            sink.sendall(piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(*sys.argv[1:])
