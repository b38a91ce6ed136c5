"""The world outside of a box: what is there outside of a box, when the world is this machine?

Servers with certificates of an authority of the tests, a resolver that answers what a test says, and a client that speaks to
the gate's socket as a tool would.
"""

from __future__ import annotations

import datetime
import socket
import ssl
import tempfile
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from invocations.sandbox.egress import EgressGate, EgressRules
from sandbox.relay import Relay
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.egress import EgressDoor

HOST = "api.example.org"
PUBLIC, INTERNAL = "127.0.0.1", "127.0.0.2"  # the first is admitted by the operator, as a public address would be
WAIT_S = 60.0


def rules(**document: Any) -> EgressRules:
    return EgressRules(Capabilities.from_json(document))


def tls(host: str, port: int) -> dict[str, Any]:
    return {"host": host, "port": port}


def plain(host: str, port: int, *methods: str) -> dict[str, Any]:
    return {"host": host, "port": port, "scheme": "http"} | ({"methods": list(methods)} if methods else {})


# -- certificates


class Authority:
    """A certificate authority that nobody else trusts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Authority of the tests")])
        self.roots = folder / "roots.pem"
        root = self._certificate(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.roots.write_bytes(root.public_bytes(serialization.Encoding.PEM))

    def _certificate(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=name,
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - datetime.timedelta(days=1),
            not_valid_after=now + datetime.timedelta(days=1),
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())

    def server_context(self, *hosts: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        certificate = self._certificate(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])]),
            key,
            x509.BasicConstraints(ca=False, path_length=None),
            names,
        )
        file = self._folder / f"{hosts[0].strip('*.')}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.roots))


# -- servers


@dataclass(slots=True)
class Origin:
    """A server that keeps every byte and, once it has heard ``until``, says ``answer`` and hangs up."""

    port: int = 0
    until: bytes = b"\r\n\r\n"
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    heard: list[bytes] = field(default_factory=list)
    done: threading.Condition = field(default_factory=threading.Condition)

    def all(self, count: int = 1) -> list[bytes]:
        """What it heard from ``count`` connections that are over."""
        with self.done:
            assert self.done.wait_for(lambda: len(self.heard) >= count, WAIT_S)
            return self.heard


@contextmanager
def accept_on(listener: socket.socket, converse: Callable[[socket.socket], None]) -> Iterator[None]:
    """Each connection is conversed with in a thread of its own; the listener is closed behind the block."""

    def listen() -> None:
        while True:
            try:
                end, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=converse, args=(end,), daemon=True).start()

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@contextmanager
def origin(*, address: str = PUBLIC, context: ssl.SSLContext | None = None, **options: Any) -> Iterator[Origin]:
    found = Origin(**options)
    listener = socket.create_server((address, 0))
    found.port = listener.getsockname()[1]

    def converse(end: socket.socket) -> None:
        heard = b""
        try:
            end.settimeout(WAIT_S)
            with context.wrap_socket(end, server_side=True) if context else end as end:
                while found.until not in heard and (data := end.recv(65536)):
                    heard += data
                if found.until in heard:
                    end.sendall(found.answer)
                    end.shutdown(socket.SHUT_WR)
                while data := end.recv(65536):
                    heard += data
        except OSError:
            pass
        with found.done:
            found.heard.append(heard)
            found.done.notify_all()

    with accept_on(listener, converse):
        yield found


# -- the gate, and who speaks to it


class Names:
    """A resolver: names to addresses, or to a list of answers that are given in turn."""

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    def say(self, name: str, *answers: list[str]) -> None:
        self.answers[name] = list(answers)

    def __call__(self, name: str) -> list[str]:
        self.asked.append(name)
        answers = self.answers.get(name)
        if not answers:
            raise OSError("no such name")
        return answers[(self.asked.count(name) - 1) % len(answers)]


@contextmanager
def box_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="box-") as folder:  # short: a socket's path has 108 bytes at most
        yield Path(folder)


@contextmanager
def opened(gate: EgressGate) -> Iterator[EgressDoor]:
    with box_folder() as folder:
        door = gate.open(folder)
        try:
            yield door
        finally:
            door.close()


class Client:
    """A tool's connection to the gate."""

    def __init__(self, door: EgressDoor) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(str(door.path))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, data: bytes) -> Client:
        with suppress(BrokenPipeError, ConnectionResetError):  # who is refused before it has spoken still reads why
            self.socket.sendall(data)
        return self

    def line(self) -> str:
        """The first line of the answer; empty when there is none."""
        head = self.head()
        return head.partition(b"\r\n")[0].decode()

    def head(self) -> bytes:
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            try:
                piece = self.socket.recv(1)
            except ConnectionResetError:
                break
            if not piece:
                break
            data += piece
        return data

    def rest(self) -> bytes:
        """All that comes until the other side hangs up."""
        data = b""
        try:
            while piece := self.socket.recv(65536):
                data += piece
        except ConnectionResetError:
            pass
        return data


def asked(door: EgressDoor, request: bytes) -> str:
    """The first line that the gate answers."""
    with Client(door) as client:
        return client.say(request).line()


def connect(host: str, port: int) -> bytes:
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


def get(door: EgressDoor, context: ssl.SSLContext, host: str, port: int, *, sni: str = "") -> bytes:
    """A page over TLS, as a tool gets it that dials the socket by itself."""
    with Client(door) as client:
        client.say(connect(host, port))
        line = client.line()
        if " 200 " not in line:
            raise ConnectionRefusedError(line)
        with context.wrap_socket(client.socket, server_hostname=sni or host) as stream:
            stream.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            data = b""
            while piece := stream.recv(65536):
                data += piece
    return data


@contextmanager
def relayed(door: EgressDoor) -> Iterator[str]:
    """The address of a relay to this door, as clients expect a proxy's."""
    listener = socket.create_server(("127.0.0.1", 0))
    relay = Relay(listener, str(door.path))
    here, there = socket.socketpair()
    relay.watch(there.fileno())

    def run() -> None:
        while not relay.turn():
            pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        here.send(b"x")
        thread.join()
        relay.clear()
        for each in (here, there, listener):
            each.close()
