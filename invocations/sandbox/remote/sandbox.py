"""Remote sandbox: tools run on sandbox hosts, and this process has no engine.

A call goes to the host that its box key points at (rendezvous hashing), so that a tool's warm box is found again; to the next one
where that cannot be asked, is ending, or could start nothing; and at last once more to a host where it would have waited, or that
had dropped what the call needs. What was sent and not answered is lost, and is sent to nobody else.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from invocations.sandbox.base import RunOutcome, RunStatus, SandboxUnavailable
from invocations.sandbox.boxes.maker import START_S
from invocations.sandbox.isolation.runtime_lines import WRONG, DoctorLine
from invocations.sandbox.reach import list_missing_capabilities
from invocations.sandbox.remote.connection import CHECK_S, CallLost, CallUnfit, HostUnavailable
from invocations.sandbox.stats import SandboxSnapshot, merge_snapshots
from invocations.sandbox.wire import contract
from invocations.sandbox.wire.contract import EVERY_WALL, KNOWN_WALLS, NO_WALLS
from invocations.sandbox.wire.folder_archive import measure_folder
from invocations.sandbox.wire.messages import WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from invocations.sandbox.base import Profile, RunEvent, SandboxCall
    from invocations.sandbox.remote.host import RemoteHost

log = logging.getLogger(__name__)
RETRY_AFTER_S = 5
KILL_S = 3.0  # for an answer: whoever ends runs has others to end, and comes again
FEW_DAYS = 14  # of a certificate
_TRIES = 3  # hosts for one call
_PASSING = (contract.BUSY, contract.LACKING)  # refusals of a host that takes the call when it is asked once more
_GRACE_S = 60.0  # beside all that a host allows a call
_CLOSE_S = 10.0
_AGAIN_S = 0.05
_LOOK_EVERY_S = 1.0
_STOPPING = "The hub is stopping, so the tool was not run."
_CANCELLED = "The call was cancelled before the tool ran."


class _Cancelled(Exception):
    """Somebody has ended the call before it was sent."""


class _RemoteRun:
    """One call: where it is, and whether it is still wanted."""

    def __init__(self) -> None:
        self.host: RemoteHost | None = None  # to which it was sent
        self.cancelled = False
        self._lock = threading.Lock()

    def send_to(self, host: RemoteHost) -> None:
        with self._lock:
            if self.cancelled:
                raise _Cancelled
            self.host = host

    def cancel(self) -> RemoteHost | None:
        """Who has it."""
        with self._lock:
            self.cancelled = True
            return self.host


class RemoteSandbox:
    """Implements :class:`invocations.sandbox.base.Sandbox`. May be used from many threads at once."""

    def __init__(self, hosts: Sequence[RemoteHost], *, load_s: float) -> None:
        self.hosts = tuple(hosts)
        self._load_s = load_s
        self._runs: dict[str, _RemoteRun] = {}
        self._folders: dict[Path, tuple[str, int]] = {}
        self._closed = False
        self._changed = threading.Condition()
        self._measuring, self._looking = threading.Lock(), threading.Lock()
        self._seen: dict[str, SandboxSnapshot] = {}
        self._looked_at = -math.inf

    def missing(self, profile: Profile, *, by_gate: bool = False) -> tuple[str, ...]:
        return list_missing_capabilities(profile, by_gate=by_gate)

    # -- calls

    def run(
        self, profile: Profile, call: SandboxCall, on_event: Callable[[RunEvent], None] | None = None
    ) -> RunOutcome:
        lacking = self.missing(profile, by_gate=call.is_by_gate)
        if lacking:
            sentence = f"This sandbox cannot give a tool the capability {' or '.join(lacking)}."
            return RunOutcome(RunStatus.CAPABILITY_BLOCKED, blocked=lacking[0], error_message=sentence)
        begun, run = time.perf_counter(), _RemoteRun()
        listener = _Listener(on_event) if on_event is not None else None
        with self._changed:
            if self._closed:
                return RunOutcome(RunStatus.CANCELLED, error_message=_STOPPING)
            self._runs[call.name] = run
        try:
            outcome = self._run_somewhere(profile, call, run, listener, begun)
        except _Cancelled:
            outcome = RunOutcome(RunStatus.CANCELLED, error_message=_CANCELLED)
        except (CallUnfit, WireError) as error:
            outcome = RunOutcome(RunStatus.START_FAILED, error_message=str(error))
        except CallLost as error:
            status = RunStatus.CANCELLED if run.cancelled else RunStatus.LOST
            message = "The call was cancelled while the tool ran." if run.cancelled else str(error)
            took_ms = (time.perf_counter() - begun) * 1000
            outcome = RunOutcome(
                status,
                error_message=message,
                box=str(run.host),
                clean=False,
                connections_known=False,
                duration_ms=took_ms,
            )
        finally:
            with self._changed:
                self._runs.pop(call.name, None)
                self._changed.notify_all()
        return outcome

    def _run_somewhere(
        self,
        profile: Profile,
        call: SandboxCall,
        run: _RemoteRun,
        on_event: Callable[[RunEvent], None] | None,
        begun: float,
    ) -> RunOutcome:
        package = contract.compute_digest(call.package)
        folder = self._measure(call.dependencies) if call.dependencies is not None else ("", 0)
        longest_s = profile.limits.wall_ms / 1000 + 2 * self._load_s + 3 * START_S + _GRACE_S
        not_begun: RunOutcome | None = None
        said: list[str] = []
        hosts = self._list_tries(call)
        attempts = deque((host, host is hosts[-1]) for host in hosts)
        again: set[RemoteHost] = set()
        while attempts:
            host, patient = attempts.popleft()
            sent_ms = 0.0

            def before_sent(host: RemoteHost = host) -> None:
                nonlocal sent_ms
                run.send_to(host)
                sent_ms = (time.perf_counter() - begun) * 1000

            try:
                outcome = host.run(
                    profile,
                    call,
                    package=package,
                    folder=folder,
                    patient=patient,
                    longest_s=longest_s,
                    before_sent=before_sent,
                    on_event=on_event,
                )
            except HostUnavailable as error:
                log.warning("The call %s did not begin on %s: %s", call.name, host, error)
                said.append(str(error))
                if error.code in _PASSING and host not in again:
                    again.add(host)
                    attempts.append((host, True))
                continue
            not_begun = _shift_steps(outcome, sent_ms)
            if outcome.status is not RunStatus.START_FAILED:
                return not_begun
        if not_begun is not None:
            return not_begun
        why = " ".join(dict.fromkeys(said)) or "None is named in TOOLHUB_SANDBOX_HOSTS."
        return RunOutcome(
            RunStatus.START_FAILED,
            error_message=f"No sandbox host could run the call. {why}",
            error_details={"retry_after_s": RETRY_AFTER_S},
        )

    def _list_tries(self, call: SandboxCall) -> list[RemoteHost]:
        """Whom to ask, one after the other."""
        ranked = rank_hosts(self.hosts, call)
        ready = [host for host in ranked if not host.rests] or ranked
        return ready[:_TRIES]

    def _measure(self, folder: Path) -> tuple[str, int]:
        """The same folder never changes: it is named after what decides what is in it."""
        with self._measuring:
            if folder not in self._folders:
                self._folders[folder] = measure_folder(folder)
            return self._folders[folder]

    # -- ends

    @property
    def closing(self) -> bool:
        return self._closed

    def kill(self, name: str) -> None:
        with self._changed:
            run = self._runs.get(name)
        host = run.cancel() if run is not None else None
        if host is not None:
            host.ask(contract.KILL, within_s=KILL_S, name=name)

    def close(self) -> None:
        """End all runs of this process, not those of others on the same hosts."""
        with self._changed:
            self._closed = True
        ends_at = time.monotonic() + _CLOSE_S
        while time.monotonic() < ends_at:
            with self._changed:
                names = list(self._runs)
            for name in names:
                with suppress(HostUnavailable):
                    self.kill(name)
            with self._changed:
                if not self._runs or self._changed.wait_for(lambda: not self._runs, _AGAIN_S):
                    break
        for host in self.hosts:
            host.close()

    # -- what it looks like

    def snapshot(self) -> SandboxSnapshot | None:
        """Of all hosts that answer, together."""
        found = list(self.list_snapshots().values())
        return merge_snapshots(found) if found else None

    def list_snapshots(self) -> dict[str, SandboxSnapshot]:
        """By the daemon's own name, as they were within the last second: metrics ask for one number after the other.

        An address is another machine's as well: each worker with a daemon beside it may reach it at the same socket.
        """
        with self._looking:
            if time.monotonic() - self._looked_at > _LOOK_EVERY_S:
                self._seen, self._looked_at = self._look(), time.monotonic()
            return self._seen

    def _look(self) -> dict[str, SandboxSnapshot]:
        found = {}
        for host in self.hosts:
            try:
                answer = host.ask(contract.SNAPSHOT)
                name, said = str(answer.head["host"]), json.loads(answer.parts[0])
            except (HostUnavailable, ValueError, IndexError, KeyError) as error:
                log.warning("What the boxes of %s look like is not known: %s", host, error)
                continue
            if said is not None:
                found[name] = SandboxSnapshot.from_json(said)
        return found

    def check(self) -> str:
        """One host that answers is enough for calls; that all do is for whoever reads it."""
        if not self.hosts:
            raise SandboxUnavailable("TOOLHUB_SANDBOX_HOSTS names no host.")
        said, failed = [], []
        for host in self.hosts:
            try:
                said.append(f"{host}: {host.ask(contract.CHECK, walls=NO_WALLS).head['lines'][0]['said']}")
            except HostUnavailable as error:
                failed.append(str(error))
        if failed:
            raise SandboxUnavailable(" ".join([*failed, *said]))
        return "; ".join(said)

    def list_check_lines(self, *, every: bool) -> Iterator[DoctorLine]:
        """What each host says of its runtimes and its walls. ``every``: each wall, looked at anew."""
        for host in self.hosts:
            try:
                answer = host.ask(contract.CHECK, walls=EVERY_WALL if every else KNOWN_WALLS, within_s=CHECK_S)
                for line in answer.head["lines"][1:]:
                    yield DoctorLine(line["mark"], line["about"], f"{host}: {line['said']}")
                if (days := host.ask(contract.HEALTH).head["certificate_days"]) is not None and days < FEW_DAYS:
                    yield DoctorLine(WRONG, "host", f"{host}: its certificate holds for {days} days")
            except HostUnavailable as error:
                yield DoctorLine(WRONG, "host", str(error))


class _Listener:
    """Who is told what a tool says, until it raises once."""

    def __init__(self, on_event: Callable[[RunEvent], None]) -> None:
        self._on_event: Callable[[RunEvent], None] | None = on_event

    def __call__(self, event: RunEvent) -> None:
        if self._on_event is not None:
            try:
                self._on_event(event)
            except Exception:
                log.exception("What a tool says is not passed on any more")
                self._on_event = None


def rank_hosts(hosts: Sequence[RemoteHost], call: SandboxCall) -> list[RemoteHost]:
    """The best first. Each host has a number for each key, so another host more or less moves only its own share."""
    key = call.key
    wanted = "\0".join([key.tenant, key.code, key.dependencies, key.principal]) if key is not None else call.name

    def weigh(host: RemoteHost) -> bytes:
        return hashlib.blake2s(f"{host}\0{wanted}".encode()).digest()

    return sorted(hosts, key=weigh, reverse=True)


def _shift_steps(outcome: RunOutcome, by_ms: float) -> RunOutcome:
    """Its steps since the call came to this process: what was sent before it began was waited for."""
    if not outcome.steps:
        return outcome
    shifted = [(name, begin + by_ms, end + by_ms) for name, begin, end in outcome.steps]
    name, _, end = shifted[0]
    return replace(outcome, steps=((name, 0.0, end), *shifted[1:]))
