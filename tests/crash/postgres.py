"""A server to crash: where does a PostgreSQL server come from that a test may crash?"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from scripts.provision.processes import free_port
from scripts.provision.services import postgres_programs
from tests.e2e.processes import until

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    "fsync": "off",  # the machine does not crash, only the server
    "synchronous_commit": "on",
}


class OwnPostgres:
    """A cluster of its own; it keeps what was committed, whenever it is ended."""

    def __init__(self, folder: Path) -> None:
        self._data, self._log = folder / "data", folder / "postgres.log"
        self._port, password = free_port(), secrets.token_hex(12)
        self.url = f"postgresql://toolhub:{password}@127.0.0.1:{self._port}/postgres"
        self._account: dict[str, Any] = {}
        secret = folder / "password"
        secret.write_text(password)
        self._data.mkdir(mode=0o700)
        if os.geteuid() == 0:  # PostgreSQL does not run as root
            self._account = {"user": "postgres", "group": "postgres", "extra_groups": []}
            for path in (folder, secret, self._data):
                shutil.chown(path, "postgres", "postgres")
        make = [
            str(postgres_programs() / "initdb"),
            f"--pgdata={self._data}",
            "--username=toolhub",
            f"--pwfile={secret}",
        ]
        make += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        done = subprocess.run(make, capture_output=True, text=True, cwd="/", check=False, **self._account)
        assert done.returncode == 0, done.stderr
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        command = [str(postgres_programs() / "postgres"), "-D", str(self._data), f"--port={self._port}", *settings]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", **self._account
            )
        until(self._answers, "PostgreSQL answers")

    def crash(self) -> None:
        """All its processes end at once, and write nothing down any more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def own_postgres() -> Iterator[OwnPostgres]:
    with tempfile.TemporaryDirectory(prefix="toolhub-postgres-") as folder:
        server = OwnPostgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.crash()
