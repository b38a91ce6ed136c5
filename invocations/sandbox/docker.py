"""How is a tool run in a container of its own?

One fresh container for each call (isolation level ``cold``). The engine is asked to create, attach and start it; then
the hub and the box's runner speak :mod:`sandbox.protocol` over the attach connection. When that connection ends, for
whatever reason, the runner ends, and the engine removes the container.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from invocations.sandbox import owner
from invocations.sandbox.attached import AttachedStream, ChannelLost, TooLate
from invocations.sandbox.base import Event, Outcome, Profile, SandboxCall, SandboxUnavailable, Status
from invocations.sandbox.container import container_config
from invocations.sandbox.engine import Engine, EngineError, NameTaken, NotThere
from invocations.sandbox.results import outcome_of
from invocations.sandbox.work import UnusableCall, pack_call, pack_load
from sandbox import protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = logging.getLogger(__name__)

_UIDS = range(200_000, 300_000)
_UID_TRIES = 20
_START_S = 20.0
_GRACE_S = 3.0  # the runner stops the tool by itself; this is for a runner that does not get to it
_OVERDUE_S = 15.0
_CANCEL_S = 0.25

INSTANCE, OWNER, DEADLINE, CALL = "toolhub.instance", "toolhub.owner", "toolhub.deadline", "toolhub.call"


@dataclass(slots=True)
class _Run:
    """One run of this process: where it is, and whether somebody wants it to end."""

    box: str = ""
    cancelled: bool = False
    done: bool = False  # the runner has reported, so it ends by itself


@dataclass(slots=True)
class _Clock:
    begun: float = field(default_factory=time.perf_counter)
    steps: list[tuple[str, float, float]] = field(default_factory=list)

    def now(self) -> float:
        return (time.perf_counter() - self.begun) * 1000

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        begin = self.now()
        try:
            yield
        finally:
            self.steps.append((name, begin, self.now()))


class DockerSandbox:
    """Implements :class:`invocations.sandbox.base.Sandbox`. May be used from many threads at once."""

    def __init__(self, image: str, instance: str, *, engine_url: str | None = None, runtime: str = "") -> None:
        self.image = image
        self._instance = instance
        self._runtime = runtime
        self._engine = Engine(engine_url)
        self._image_id = ""
        self._owner = owner.this_process()
        self._runs: dict[str, _Run] = {}
        self._closed = False
        self._lock = threading.Lock()

    def missing(self, profile: Profile) -> tuple[str, ...]:
        return profile.outside

    def run(self, profile: Profile, call: SandboxCall, on_event: Callable[[Event], None] | None = None) -> Outcome:
        lacking = self.missing(profile)
        if lacking:
            sentence = f"This sandbox cannot give a tool the capability {' or '.join(lacking)}."
            return Outcome(Status.CAPABILITY_BLOCKED, blocked=lacking[0], error_message=sentence)
        run, clock = _Run(), _Clock()
        with self._lock:
            if self._closed:
                return Outcome(Status.CANCELLED, error_message="The hub is stopping, so the tool was not run.")
            self._runs[call.name] = run
        stream: AttachedStream | None = None
        try:
            load, body = pack_load(profile, call, level="cold"), pack_call(call, stream=False)
            with clock.step("create"):
                run.box = self._create(profile, call)
            if run.cancelled:  # before there was a box that could be ended
                return self._outcome(Status.CANCELLED, "The call was cancelled before the tool ran.", run, clock)
            with clock.step("start"):
                stream, channel = self._start(run.box, load)
            return self._converse(profile, run, clock, stream, channel, body)
        except (UnusableCall, EngineError, ChannelLost, protocol.ProtocolError) as error:
            if run.cancelled:
                return self._outcome(Status.CANCELLED, "The call was cancelled before the tool ran.", run, clock)
            return self._outcome(Status.START_FAILED, str(error), run, clock)
        finally:
            if stream is not None:
                stream.close()
            if run.box and not run.done:
                self._remove(run.box)
            with self._lock:
                self._runs.pop(call.name, None)

    def _create(self, profile: Profile, call: SandboxCall) -> str:
        if not self._image_id:
            self._image_id = self._find_image()
        deadline = time.time() + _START_S + profile.limits.wall_ms / 1000 + _OVERDUE_S
        labels = {INSTANCE: self._instance, OWNER: self._owner, DEADLINE: f"{deadline:.0f}", CALL: call.name}
        for _ in range(_UID_TRIES):
            uid = random.choice(_UIDS)  # noqa: S311 - not a secret
            config = container_config(
                image=self._image_id,
                uid=uid,
                limits=profile.limits,
                package_bytes=len(call.package),
                labels=call.labels | labels,
                runtime=self._runtime,
            )
            try:
                # The kernel keeps some quotas by user, so live boxes must not share one. The engine refuses a name that
                # is taken: that makes it the one place where all hubs on it agree.
                return self._engine.create(config, f"toolhub-box-{uid}")
            except NameTaken:
                continue
            except NotThere:
                self._image_id = ""
                raise EngineError(self._no_image()) from None
        raise EngineError("No free user for another box was found. Are containers left over on the engine?")

    def _find_image(self) -> str:
        try:
            return self._engine.image_id(self.image)
        except NotThere:
            raise EngineError(self._no_image()) from None

    def _no_image(self) -> str:
        return f"The engine at {self._engine.url} has no sandbox image {self.image}. `make sandbox-image` builds it."

    def _start(self, box: str, load: bytes) -> tuple[AttachedStream, protocol.Channel]:
        stream = self._engine.attach(box)
        try:
            self._engine.start(box)
            stream.allow(_START_S)
            channel = protocol.Channel(stream.read, stream.write)
            channel.open(os.urandom(2 * protocol.KEY_BYTES))
            channel.receive(protocol.READY)
            _load(channel, load)
        except BaseException:
            stream.close()
            raise
        return stream, channel

    def _converse(
        self, profile: Profile, run: _Run, clock: _Clock, stream: AttachedStream, channel: protocol.Channel, body: bytes
    ) -> Outcome:
        """From here on the tool may have run."""
        stream.allow(profile.limits.wall_ms / 1000 + _GRACE_S)
        sent = clock.now()
        try:
            channel.send(protocol.CALL, body)
            result = channel.receive(protocol.RESULT)
            run.done = True
            head, parts = protocol.unpack(result)
        except TooLate:
            return self._outcome(
                Status.TIMED_OUT, "The tool could not be stopped in time; its box was destroyed.", run, clock
            )
        except (ChannelLost, protocol.ProtocolError) as error:
            if run.cancelled:
                return self._outcome(Status.CANCELLED, "The call was cancelled while the tool ran.", run, clock)
            return self._outcome(Status.LOST, f"Contact to the box was lost: {error}", run, clock)
        ended = clock.now()
        loaded = min(sent + head["load_ms"], ended)
        finished = max(loaded, min(sent + head["run_ms"], ended))
        outcome = outcome_of(head, parts, profile.limits, image=self._image_id, box=run.box)
        clock.steps += [("load", sent, loaded), ("run", loaded, finished), ("collect", finished, clock.now())]
        return replace(outcome, steps=tuple(clock.steps))

    def _outcome(self, status: Status, message: str, run: _Run, clock: _Clock) -> Outcome:
        return Outcome(
            status,
            error_message=message,
            clean=status is Status.START_FAILED,
            duration_ms=clock.now(),
            image=self._image_id,
            box=run.box,
            steps=tuple(clock.steps),
        )

    def _remove(self, box: str) -> None:
        try:
            self._engine.remove(box)
        except EngineError as error:
            log.warning("The box %s could not be removed and is left to its deadline: %s", box[:12], error)

    def kill(self, name: str) -> None:
        with self._lock:
            run = self._runs.get(name)
            if run is not None:
                run.cancelled = True
        try:
            for found in self._engine.find({INSTANCE: self._instance, CALL: name}):
                self._end(found["Id"])
        except EngineError as error:
            log.warning("The box of %s is left to its owner and its deadline: %s", name, error)

    def _end(self, box: str) -> None:
        """Ask the runner, so that it can still report; then do not ask."""
        try:
            self._engine.signal(box, "SIGTERM")
            patience = time.monotonic() + _CANCEL_S
            while time.monotonic() < patience:
                if not self._engine.exists(box):
                    return
                time.sleep(0.02)
        except (NotThere, NameTaken):
            pass  # it has not started yet, or has ended just now
        self._engine.remove(box)

    def kill_overdue(self) -> int:
        removed = 0
        for found in self._engine.find({INSTANCE: self._instance}):
            labels = found.get("Labels") or {}
            overdue = float(labels.get(DEADLINE, 0)) < time.time()
            if overdue or owner.is_gone(labels.get(OWNER, "")):
                self._engine.remove(found["Id"])
                removed += 1
        return removed

    def check(self) -> str:
        try:
            version = self._engine.version()
            image = self._find_image()
            options = self._engine.security_options()
        except EngineError as error:
            raise SandboxUnavailable(str(error)) from error
        if not any("seccomp" in option for option in options):
            raise SandboxUnavailable(f"The engine at {self._engine.url} has no seccomp, without which no tool is run.")
        return f"Docker engine {version} at {self._engine.url}, image {self.image} ({image[7:19]})"

    def close(self) -> None:
        with self._lock:
            self._closed = True
            boxes = [run.box for run in self._runs.values() if run.box]
            for run in self._runs.values():
                run.cancelled = True
        for box in boxes:
            self._remove(box)
        self._engine.close()


def _load(channel: protocol.Channel, load: bytes) -> None:
    channel.send(protocol.LOAD, load)
    loaded, _ = protocol.unpack(channel.receive(protocol.LOADED))
    if not loaded["ok"]:
        raise ChannelLost(f"The box could not be loaded. {loaded['why']}")
