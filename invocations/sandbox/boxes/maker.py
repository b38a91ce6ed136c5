"""Box maker: how a box is made, and how it ends.

The engine creates and starts a container; its first process comes to the socket in its folder, gets the keys, and says
that it is ready. Whether boxes see folders of this host is found out by the first one, for each runtime: where they do
not, the engine's attach connection is used.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
import shutil
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING

from invocations.sandbox.boxes import owner_process
from invocations.sandbox.boxes.attach_stream import ChannelLost, ChannelTimeout
from invocations.sandbox.boxes.box import Box
from invocations.sandbox.boxes.run_directory import NoRunDirectory
from invocations.sandbox.boxes.socket_stream import BoxListener
from invocations.sandbox.engine import ContainerNameTaken, EngineError, EngineObjectMissing, FolderNotSeen
from sandbox import protocol

if TYPE_CHECKING:
    from pathlib import Path

    from invocations.sandbox.boxes.run_directory import RunDir
    from invocations.sandbox.boxes.socket_stream import BoxStream
    from invocations.sandbox.egress import EgressDoor, EgressGate
    from invocations.sandbox.engine import Engine
    from invocations.sandbox.isolation.container import BoxShape
    from invocations.sandbox.pool.slots import BoxRequest

log = logging.getLogger(__name__)

START_S = 20.0
SOCKET, ATTACH = "socket", "attach"
INSTANCE, OWNER, LONGEST, CALL = "toolhub.instance", "toolhub.owner", "toolhub.longest_s", "toolhub.call"
POOL = "toolhub.pool"  # one process may have several, and closes each by itself
_UIDS = range(200_000, 300_000)
_UID_TRIES = 20
_OVERDUE_S = 60.0


class NotMade(Exception):
    """No box. The message says what to do; ``broken``: the engine does not work, and has not just said no; ``died``: it does, and
    the box has not started.
    """

    def __init__(self, message: str, *, broken: bool, died: bool = False) -> None:
        super().__init__(message)
        self.broken, self.died = broken, died


class BoxMaker:
    """May be used from many threads. ``age_s``: how long a box may wait for calls, at most."""

    def __init__(
        self, engine: Engine, instance: str, run_dir: RunDir, *, age_s: float, gate: EgressGate | None = None
    ) -> None:
        self.owner, self.pool = owner_process.describe_this_process(), secrets.token_hex(8)
        self.transports: dict[str, str] = {}  # by runtime, once it is known
        self._engine, self._instance, self._run_dir, self._age_s, self._gate = engine, instance, run_dir, age_s, gate

    def make(self, shape: BoxShape, want: BoxRequest | None = None) -> Box:
        """``want``: of the call that it is made for, if it is for one only. Raises :class:`NotMade`."""
        transport = self.transports.get(shape.runtime)
        try:
            if transport is not None:
                return self._make(shape, want, transport)
            try:
                box = self._make(shape, want, SOCKET)
                self._decide(shape.runtime, SOCKET, "")
            except ChannelLost:  # it may have been slow: that says nothing of the next one
                return self._make(shape, want, ATTACH)
            except (FolderNotSeen, NoRunDirectory) as error:
                box = self._make(shape, want, ATTACH)
                self._decide(shape.runtime, ATTACH, str(error))
            return box
        except EngineError as error:
            raise NotMade(str(error), broken=error.broken) from error
        except (ChannelLost, protocol.ProtocolError) as error:
            raise NotMade(f"The box did not get ready. {error}", broken=False, died=True) from error
        except NoRunDirectory as error:
            raise NotMade(f"The box did not get ready. {error}", broken=True) from error
        except OSError as error:  # of this host, or of the gate: the engine may be well
            raise NotMade(f"The box did not get ready. {error}", broken=False) from error

    def _decide(self, runtime: str, transport: str, why: str) -> None:
        if self.transports.setdefault(runtime, transport) == transport and why:
            log.warning("Boxes%s are spoken to over the engine: %s", f" of {runtime}" if runtime else "", why)

    def _make(self, shape: BoxShape, want: BoxRequest | None, transport: str) -> Box:
        if shape.egress and (self._gate is None or transport != SOCKET):
            raise NotMade(
                "A box that may reach others needs a folder on this host, which the engine does not see.", broken=False
            )
        with ExitStack() as held, ExitStack() as undo:
            folder: Path | None = None
            listener: BoxListener | None = None
            door: EgressDoor | None = None
            if transport == SOCKET:
                folder = self._run_dir.make_folder()
                undo.callback(shutil.rmtree, folder, ignore_errors=True)
                listener = held.enter_context(closing(BoxListener(folder)))
                if shape.egress and self._gate is not None:
                    door = self._gate.open(folder)
                    undo.callback(door.close)
            box = self._create(shape, want, folder)
            undo.callback(self._remove, box)
            stream = self._start(box, listener, undo)
            channel = self._greet(stream)
            undo.pop_all()
        return Box(box, shape, stream, channel, folder, door)

    def _create(self, shape: BoxShape, want: BoxRequest | None, folder: Path | None) -> str:
        # How long, not until when: clocks of hosts differ, and only the engine's own tells how old a box is.
        longest = START_S + self._age_s + shape.longest_s + _OVERDUE_S
        labels = {INSTANCE: self._instance, OWNER: self.owner, POOL: self.pool, LONGEST: f"{longest:.0f}"}
        if want is not None:
            labels = {**want.labels, CALL: want.name} | labels
        for _ in range(_UID_TRIES):
            uid = random.choice(_UIDS)  # noqa: S311 - not a secret
            config = shape.config(uid=uid, labels=labels, folder=folder)
            # One that comes late, to a folder that is given up, must not wait at a stdin to which nobody speaks.
            config["OpenStdin"] = folder is None
            try:
                # The kernel keeps some quotas by user, so live boxes must not share one. The engine refuses a name that
                # is taken: that makes it the one place where all hubs on it agree.
                return self._engine.create(config, f"toolhub-box-{uid}")
            except ContainerNameTaken:
                continue
            except EngineObjectMissing:
                raise NotMade(f"The engine at {self._engine.url} has no image {shape.image}.", broken=False) from None
        raise EngineError("No free user for another box was found. Are containers left over on the engine?")

    def _start(self, box: str, listener: BoxListener | None, undo: ExitStack) -> BoxStream:
        if listener is None:
            attached = self._engine.attach(box)
            undo.callback(attached.close)
            self._engine.start(box)
            return attached
        self._engine.start(box)
        stream = listener.accept(START_S, lambda: self._engine.exists(box))
        undo.callback(stream.close)
        return stream

    def _greet(self, stream: BoxStream) -> protocol.FrameChannel:
        stream.allow(START_S)
        channel = protocol.FrameChannel(stream.read, stream.write)
        channel.open(os.urandom(2 * protocol.KEY_BYTES))
        try:
            channel.receive(protocol.READY)
        except ChannelTimeout:
            raise
        except ChannelLost as error:
            raise ChannelLost(f"{error} Are the image and the hub of the same sources?") from error
        return channel

    def _remove(self, box: str) -> None:
        with suppress(EngineError):  # it is found again as an orphan
            self._engine.remove(box)

    def memory_held(self, box: Box) -> int:
        return self._engine.memory_held(box.id)

    def end(self, box: Box) -> None:
        """Raises :class:`EngineError` when it is not known to be gone."""
        box.close()
        if box.folder is not None:
            shutil.rmtree(box.folder, ignore_errors=True)
        self._engine.remove(box.id)
