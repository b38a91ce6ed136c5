"""Echo socket: whether a box reaches a unix socket of this host."""

from __future__ import annotations

import secrets
import shutil
import socket
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

_NONCE_CHARS = 32


class EchoSocket:
    """A socket ``s`` in a folder of its own that gives back what it is told, until the end of the ``with``.

    Where none can be made, because the place is somebody else's or its name too long, nobody gives anything back.
    """

    folder: Path | None = None

    def __init__(self, place: Path) -> None:
        self.nonce = secrets.token_hex(_NONCE_CHARS // 2)
        self._socket = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            place.mkdir(mode=0o711, parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix="probe-", dir=place))
            self.folder.chmod(0o711)
            self._socket.bind(str(self.folder / "s"))
            (self.folder / "s").chmod(0o666)
            self._socket.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection:
                    connection.settimeout(1)
                    with suppress(OSError):
                        connection.sendall(connection.recv(_NONCE_CHARS))
