"""An engine that can go away: a socket in front of the real one."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK = 1 << 16


class EngineProxy:
    """``url`` is where it answers, until :meth:`cut`; after :meth:`mend` again. It ends with a :meth:`cut`."""

    def __init__(self, folder: Path, engine_url: str) -> None:
        self._path = folder / "engine.sock"
        self._engine = engine_url.removeprefix("unix://")
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self.url = f"unix://{self._path}"
        self._listener = self._listen()

    def mend(self) -> None:
        self._listener = self._listen()

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        listener.listen(64)
        threading.Thread(target=self._serve, args=[listener], daemon=True).start()
        return listener

    def cut(self) -> None:
        """Nobody answers any more, and whoever was being answered is not."""
        self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._engine)
            with self._lock:
                self._pairs.append((near, far))
            threading.Thread(target=self._pass_on, args=[near, far], daemon=True).start()

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        """Until both sides have said all that they have to say."""
        with near, far, selectors.DefaultSelector() as selector:
            selector.register(near, selectors.EVENT_READ, far)
            selector.register(far, selectors.EVENT_READ, near)
            while selector.get_map():
                for key, _ in selector.select():
                    source, target = key.fileobj, key.data
                    assert isinstance(source, socket.socket)
                    try:
                        data = source.recv(_CHUNK)
                        target.sendall(data)
                    except OSError:
                        return
                    if not data:
                        selector.unregister(source)
                        with suppress(OSError):
                            target.shutdown(socket.SHUT_WR)
