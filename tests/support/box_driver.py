"""Box driver: how does a test drive one box directly, without a pool and without what the hub makes of a result?

The box is a real container; the conversation is that of ``sandbox.protocol``, over the socket in the box's own folder or
over the engine's attach connection.
"""

from __future__ import annotations

import json
import os
import random
import socket
import time
import uuid
from contextlib import closing, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import Limits
from invocations.sandbox.engine import Engine, EngineObjectMissing
from invocations.sandbox.isolation.container import build_container_config
from invocations.sandbox.isolation.seccomp import FRESH_PROFILE_FILE, PROFILE_FILE
from sandbox import protocol, run_monitor
from sandbox.image import image_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from invocations.sandbox.boxes.attach_stream import AttachedStream

ROOMY = Limits(wall_ms=8_000)
_PATIENCE_S = 30.0
_HELPERS = 1  # the relay


class Line:
    """The hub's end of the socket in the box's folder."""

    def __init__(self, listener: socket.socket) -> None:
        listener.settimeout(_PATIENCE_S)
        self._socket, _ = listener.accept()
        self._socket.settimeout(_PATIENCE_S)

    def read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()


class DrivenBox:
    """One container. ``attach`` speaks over the engine; ``binds`` are more of Docker's mounts; ``before`` fills the folder."""

    def __init__(self, folder: Path, *, limits: Limits = ROOMY, attach: bool = False, **options: Any) -> None:
        self.limits = limits
        self.events: list[tuple[str, bytes]] = []
        self._engine = Engine()
        self.folder = folder / f"box-{uuid.uuid4().hex[:8]}"
        self.folder.mkdir()
        self.folder.chmod(0o711)
        options.pop("before", lambda _: None)(self.folder)
        image = options.pop("image", "") or os.environ.get("TOOLHUB_SANDBOX_IMAGE") or image_name()
        self._line: Line | AttachedStream
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            if not attach:
                listener.bind(str(self.folder / "s"))
                (self.folder / "s").chmod(0o666)
                listener.listen(1)
            self.id = self._create(image, **options)
            if attach:
                stream = self._engine.attach(self.id)
                stream.allow(600)
                self._line = stream
            self._engine.start(self.id)
            if not attach:
                self._line = Line(listener)
                (self.folder / "s").unlink()
        self.channel = protocol.FrameChannel(self._line.read, self._line.write)
        self.channel.open(os.urandom(2 * protocol.KEY_BYTES))
        self.ready, _ = protocol.unpack(self.channel.receive(protocol.READY))

    def _create(
        self, image: str, *, seccomp: Path | None = None, binds: Iterable[str] = (), data: bool = False, **_: Any
    ) -> str:
        uid = random.randrange(200_000, 300_000)
        config = build_container_config(
            image=self._engine.image_id(image), uid=uid, limits=self.limits, package_bytes=1 << 20, labels={}
        )
        host = config["HostConfig"]
        profile = json.dumps(json.loads((seccomp or FRESH_PROFILE_FILE).read_text()))
        host["SecurityOpt"] = ["no-new-privileges", f"seccomp={profile}"]
        host["Binds"] = [f"{self.folder}:/c:ro", *binds]
        host["PidsLimit"] += _HELPERS
        if data:
            host["Tmpfs"]["/data"] = (
                f"size=64m,nr_inodes=4096,mode=0700,uid={uid},gid={uid},noexec,nosuid,nodev,noatime"
            )
        return self._engine.create(config, f"toolhub-box-{uid}")

    # -- the conversation

    def load(self, sources: Mapping[str, str], *, level: str = "fresh", **head: Any) -> dict[str, Any]:
        """Load a package ``tool`` with these modules; what the box says to it."""
        self.send_load(sources, level=level, **head)
        loaded, _ = protocol.unpack(self.channel.receive(protocol.LOADED))
        return loaded

    def send_load(self, sources: Mapping[str, str], *, level: str = "fresh", **head: Any) -> None:
        files = {"tool/__init__.py": ""} | {f"tool/{name}.py": source for name, source in sources.items()}
        files |= head.pop("more", {})
        whole = {
            "fs": [],
            "net": False,
            "proc": [],
            "browser": False,
            "program": None,
            "server": None,
            "settings": {},
            "operation": None,
            "remote": None,
            "ahead": True,
            "load_ms": 60_000,
            "import_ms": 60_000,
        } | head
        whole |= {"level": level, "limits": asdict(self.limits), "files": list(files)}
        self.channel.send(protocol.LOAD, protocol.pack(whole, *(text.encode() for text in files.values())))

    def send_call(self, *, stream: bool = False, inputs: Mapping[str, bytes] | None = None, **arguments: Any) -> None:
        inputs = inputs or {}
        head = {
            "module": "tool.main",
            "entry": "run",
            "context": {"call_id": "inv_test", "tool_id": "test.tool.one", "started_at": "2026-11-22T10:00:00+00:00"},
            "stream": stream,
            "inputs": [{"path": path} for path in inputs],
        }
        settings = json.dumps({"config": {"region": "eu"}, "secrets": {"API_TOKEN": "a-secret-of-the-tenant"}})
        body = protocol.pack(head, json.dumps(arguments).encode(), settings.encode(), *inputs.values())
        self.channel.send(protocol.CALL, body)

    def receive_result(self) -> Said:
        while True:
            kind, body = self.channel.receive_one_of(protocol.EVENT, protocol.RESULT)
            head, parts = protocol.unpack(body)
            if kind == protocol.RESULT:
                return Said(head, parts)
            self.events.append((head["stream"], parts[0]))

    def call(self, **options: Any) -> Said:
        self.send_call(**options)
        return self.receive_result()

    def cancel(self) -> None:
        self.channel.send(protocol.CANCEL, b"")

    def is_gone(self, seconds: float = 5.0) -> bool:
        """Whether the container goes within this time."""
        deadline = time.monotonic() + seconds
        while self._engine.exists(self.id):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def close(self) -> None:
        self._line.close()
        with suppress(EngineObjectMissing):
            self._engine.remove(self.id)
        self._engine.close()

    def __enter__(self) -> DrivenBox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Said:
    """What a box said of one call."""

    def __init__(self, head: dict[str, Any], parts: list[bytes]) -> None:
        self.head = head
        self.report, self.stdout, self.stderr, *contents = parts
        self.files = {each["path"]: content for each, content in zip(head["files"], contents, strict=True)}
        self.ended, self.clean = head["ended"], head["clean"]
        self.kind, self.about = 0, dict[str, Any]()
        self.value: Any = None
        said = self.report.removeprefix(protocol.IMPORTED)
        if said and self.ended == run_monitor.EXITED:
            self.kind, size, _ = protocol.REPORT.unpack_from(said)
            start = protocol.REPORT.size
            self.value = json.loads(said[start : start + size] or b"null")
            self.about = json.loads(said[start + size :])

    def __repr__(self) -> str:
        return f"{self.head} {self.kind} {self.value!r} {self.about} {self.stdout!r} {self.stderr!r}"


STRICT = PROFILE_FILE
WITHOUT_LIMIT_OF_SILENCE = replace(ROOMY, idle_ms=0)
