"""Engine: how this process reaches the Docker engine.

The one module that knows the client library: a client for each thread, short waits when nobody answers, and every way
in which the engine can fail as one exception whose message says what to do.
"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import docker.errors
import docker.utils
import requests
from docker.transport.unixconn import UnixHTTPConnection

import docker
from invocations.sandbox.boxes.attach_stream import AttachedStream
from invocations.sandbox.boxes.socket_stream import break_off, is_quiet

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONNECT_S = 2
_ANSWER_S = 30.0
_BAD_REQUEST, _NOT_FOUND, _CONFLICT, _SERVER_ERROR = 400, 404, 409, 500
_UNSEEN = "bind source path does not exist"


def _connect(self: UnixHTTPConnection) -> None:
    """As the client library does, but for what it forgets: to close a socket that nobody answers."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(self.timeout)
    try:
        connection.connect(self.unix_socket)
    except BaseException:
        connection.close()
        raise
    self.sock = connection


UnixHTTPConnection.connect = _connect  # type: ignore[method-assign]


class EngineError(Exception):
    """The engine cannot be used, or refused. The message says what to do; ``broken``: it has not just said no.

    ::

        EngineError
         ├── NotThere        the container or image does not exist
         ├── NameTaken       a container of this name exists
         ├── UnknownRuntime  the engine has no such runtime
         └── NotSeen         what is to be mounted is not where the engine is
    """

    broken = True


class EngineObjectMissing(EngineError):
    """The engine has no such container or image."""

    broken = False


class ContainerNameTaken(EngineError):
    """Another container has the name."""

    broken = False


class UnknownRuntime(EngineError):
    """The engine has no runtime of this name."""

    broken = False


class FolderNotSeen(EngineError):
    """The engine does not see a folder of this host."""

    broken = False


class _Connection:
    """The socket of an attach request, and what has to be closed with it."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._socket: socket.socket = getattr(raw, "_sock", raw)

    def settimeout(self, seconds: float) -> None:
        self._socket.settimeout(seconds)

    def sendall(self, data: bytes) -> None:
        self._socket.sendall(data)

    def recv(self, size: int) -> bytes:
        return self._socket.recv(size)

    def is_quiet(self) -> bool:
        return is_quiet(self._socket)

    def break_off(self) -> None:
        break_off(self._socket)

    def close(self) -> None:
        response = getattr(self._raw, "_response", None)
        if response is not None:
            response.close()
        self._raw.close()
        self._socket.close()


@contextmanager
def _naming_the_runtime(name: str) -> Iterator[None]:
    try:
        yield
    except docker.errors.APIError as error:
        if not name or error.status_code != _BAD_REQUEST or "runtime" not in str(error.explanation).lower():
            raise
        raise UnknownRuntime(
            f'The Docker engine knows no runtime {name!r}. Add it under "runtimes" in the engine\'s daemon.json and have '
            "the engine read that again, or name another in TOOLHUB_SANDBOX_RUNTIMES."
        ) from error


class Engine:
    """The requests that a sandbox makes."""

    def __init__(self, url: str | None = None) -> None:
        self._options: dict[str, Any] = {**docker.utils.kwargs_from_env()}
        if url:
            self._options["base_url"] = url
        self.url: str = self._options.get("base_url") or "unix:///var/run/docker.sock"
        self._version = ""
        self._local = threading.local()
        self._clients: list[docker.APIClient] = []
        self._lock = threading.Lock()

    def _client(self) -> docker.APIClient:
        client: docker.APIClient | None = getattr(self._local, "client", None)
        if client is None:
            client = docker.APIClient(**self._options, version=self._version or "auto", timeout=_CONNECT_S, num_pools=1)
            self._version = client.api_version
            client.timeout = (_CONNECT_S, _ANSWER_S)  # type: ignore[assignment] # requests takes a pair
            self._local.client = client
            with self._lock:
                self._clients.append(client)
        return client

    @contextmanager
    def _requests(self) -> Iterator[docker.APIClient]:
        """A client whose failures leave as :class:`EngineError`."""
        try:
            yield self._client()
        except docker.errors.APIError as error:
            status = error.status_code or 0
            kind = {_NOT_FOUND: EngineObjectMissing, _CONFLICT: ContainerNameTaken}.get(status, EngineError)
            if status == _BAD_REQUEST and _UNSEEN in str(error.explanation):
                kind = FolderNotSeen
            refusal = kind(f"The Docker engine refused: {error.explanation or error}")
            refusal.broken = status >= _SERVER_ERROR
            raise refusal from error
        except requests.Timeout as error:
            raise EngineError(
                f"The Docker engine at {self.url} does not answer in time. Is it overloaded or stuck?"
            ) from error
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            raise EngineError(
                f"No Docker engine answers at {self.url}. Start it (`make engine` does), or set DOCKER_HOST. ({error})"
            ) from error

    def version(self) -> str:
        with self._requests() as client:
            return str(client.version()["Version"])

    def security_options(self) -> list[str]:
        with self._requests() as client:
            return [str(option) for option in client.info().get("SecurityOptions") or []]

    def image_id(self, name: str) -> str:
        with self._requests() as client:
            return str(client.inspect_image(name)["Id"])  # type: ignore[no-untyped-call]

    def has_image(self, name: str) -> bool:
        try:
            return bool(self.image_id(name))
        except EngineObjectMissing:
            return False

    def info(self) -> dict[str, Any]:
        """What the engine says of itself and its host."""
        with self._requests() as client:
            found: dict[str, Any] = client.info()
            return found

    def now(self) -> float:
        """Seconds since 1970 by the engine's own clock, which dates what it makes."""
        return datetime.fromisoformat(self.info()["SystemTime"]).timestamp()

    def create(self, config: dict[str, Any], name: str) -> str:
        with self._requests() as client, _naming_the_runtime(config.get("HostConfig", {}).get("Runtime", "")):
            return str(client.create_container_from_config(config, name)["Id"])  # type: ignore[no-untyped-call]

    def attach(self, box: str) -> AttachedStream:
        with self._requests() as client:
            return AttachedStream(
                _Connection(client.attach_socket(box, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}))
            )

    def start(self, box: str) -> None:
        with self._requests() as client:
            client.start(box)

    def signal(self, box: str, name: str) -> None:
        with self._requests() as client:
            client.kill(box, name)

    def remove(self, box: str) -> None:
        """Make sure the box is gone."""
        try:
            with self._requests() as client:
                client.remove_container(box, force=True, v=True)
        except (EngineObjectMissing, ContainerNameTaken):
            pass  # gone, or the engine is removing it already

    def exists(self, box: str) -> bool:
        try:
            with self._requests() as client:
                client.inspect_container(box)
        except EngineObjectMissing:
            return False
        return True

    def memory_held(self, box: str) -> int:
        """Bytes, without what the kernel would give back at once; 0 of a box that is gone."""
        try:
            with self._requests() as client:
                said = client.stats(box, stream=False, one_shot=True)["memory_stats"]
        except EngineObjectMissing:
            return 0
        more = said.get("stats", {})
        return max(0, int(said.get("usage", 0)) - int(more.get("inactive_file", more.get("total_inactive_file", 0))))

    def find(self, labels: dict[str, str]) -> list[dict[str, Any]]:
        """Containers with all these labels, running or not, as the engine lists them."""
        with self._requests() as client:
            wanted = [f"{key}={value}" for key, value in labels.items()]
            return list(client.containers(all=True, filters={"label": wanted}))

    def close(self) -> None:
        with self._lock:
            while self._clients:
                self._clients.pop().close()
        self._local = threading.local()
