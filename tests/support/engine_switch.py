"""A way to the Docker engine that a test can shut: for everybody who goes through it the engine is gone then."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


class Door:
    """Passes on bytes between a socket of its own and the engine's. ``with Door(path) as door:`` it is open."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "engine.sock")
        self.url = f"unix://{self._path}"
        self._listener: socket.socket | None = None
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()

    def open(self) -> None:
        self._listener = listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path)
        listener.listen()
        threading.Thread(target=self._welcome, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        """Nobody comes in, and everybody who is in is out."""
        if self._listener is None:
            return
        Path(self._path).unlink()
        for end in (self._listener, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._listener, self._ends = None, []

    def _welcome(self, listener: socket.socket) -> None:
        while True:
            try:
                guest, _ = listener.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(ENGINE)
            with self._lock:
                self._ends += [guest, engine]
            for source, target in ((guest, engine), (engine, guest)):
                threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()

    def __enter__(self) -> Door:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
