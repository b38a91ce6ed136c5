"""Docker sandbox: how a tool is run in a container.

Each call gets a box of the pool at the level of isolation that it needs: one that its own tenant's version is loaded in, a
blank one, or one made for it. Whatever the engine or a box does is an outcome, and the box serves on only when its
first process says that nothing of the call is left.
"""

from __future__ import annotations

import logging
import math
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from invocations.sandbox.active_runs import CANCELLED, ActiveRun, ActiveRuns, StepClock
from invocations.sandbox.base import (
    IMAGE_MISSING,
    Profile,
    RunEvent,
    RunOutcome,
    RunStatus,
    SandboxCall,
    SandboxUnavailable,
)
from invocations.sandbox.boxes.attach_stream import ChannelLost, ChannelTimeout
from invocations.sandbox.boxes.box import Box, BoxConversation, NothingRan, NotLoaded
from invocations.sandbox.boxes.call_egress import GateRecords, open_egress
from invocations.sandbox.boxes.loader import BoxLoader
from invocations.sandbox.boxes.maker import CALL, INSTANCE, LONGEST, OWNER, POOL, START_S, BoxMaker, NotMade
from invocations.sandbox.boxes.payloads import UnusableCall, pack_call, pack_load
from invocations.sandbox.boxes.run_directory import RunDir, find_default_run_dir
from invocations.sandbox.boxes.upkeep import BoxUpkeep, OrphanReaper, read_cpu_pressure
from invocations.sandbox.egress import CredentialUnfit, RemoteWay, ServiceWay, add_connections
from invocations.sandbox.engine import Engine, EngineError, EngineObjectMissing
from invocations.sandbox.isolation.container import build_box_shape
from invocations.sandbox.isolation.levels import COLD, FRESH, REUSED, SINGLE, build_smallest_call, choose_level
from invocations.sandbox.pool.loads import LoadTimeout
from invocations.sandbox.pool.pool import BoxPool
from invocations.sandbox.pool.slots import (
    MIB,
    USUAL_IDLE,
    BoxRefused,
    BoxRequest,
    IdleTerms,
    PackageLoad,
    PoolCaps,
    PoolSlot,
)
from invocations.sandbox.pool.standby import Standby, derive_standby_key
from invocations.sandbox.preload_exclusions import PreloadExclusions
from invocations.sandbox.reach import list_missing_capabilities
from invocations.sandbox.results import NOT_IMPORTED, build_outcome
from invocations.sandbox.run_events import EventRelay
from invocations.sandbox.stats import SandboxStats
from sandbox import protocol, run_monitor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.egress import EgressGate
    from invocations.sandbox.isolation.container import BoxShape
    from invocations.sandbox.isolation.runtimes import Runtimes
    from invocations.sandbox.stats import SandboxSnapshot

__all__ = ["CALL", "INSTANCE", "LONGEST", "OWNER", "DockerSandbox"]

log = logging.getLogger(__name__)

_KILLS = (
    RunStatus.TIMED_OUT,
    RunStatus.CANCELLED,
    RunStatus.LOG_FLOOD,
    RunStatus.RESULT_TOO_LARGE,
    RunStatus.OUT_OF_MEMORY,
    RunStatus.LOST,
)
# Of a box that keeps a server of others ready: measured; and short, since there may be a catalogue of them.
_WITH_SERVER = IdleTerms(memory_bytes=80 * MIB, most_s=110.0)
_SERVED = (RunStatus.OK, RunStatus.DOMAIN_ERROR)  # whose server answered
_TRIES = 3  # boxes for one call, when they are found dead before it is in them
_STOPPING = "The hub is stopping, so the tool was not run."


class NoImage(EngineError):
    """The engine has no image of this name."""

    broken = False


class DockerSandbox:
    """Implements :class:`invocations.sandbox.base.Sandbox`. May be used from many threads at once.

    Nothing is asked of the engine before the first call, or :meth:`start`.
    """

    def __init__(
        self,
        image: str,
        instance: str,
        *,
        engine_url: str | None = None,
        runtime: str = "",
        runtimes: Runtimes | None = None,
        caps: PoolCaps | None = None,
        run_dir: Path | None = None,
        gate: EgressGate | None = None,
        usual: Profile | None = None,
    ) -> None:
        self.image = image
        self.caps = caps or PoolCaps()
        self._instance, self._runtime, self._runtimes = instance, runtime, runtimes
        self._gate = gate
        self._usual = usual or Profile()
        self._engine = Engine(engine_url)
        self._images: dict[str, str] = {}  # ids by name, as last seen
        self._namespaces: dict[str, bool] = {}  # by runtime, once it is known
        self._run_dir = RunDir(run_dir or find_default_run_dir(), instance)
        self._maker = BoxMaker(
            self._engine, instance, self._run_dir, age_s=self.caps.age_s + self.caps.load_s, gate=gate
        )
        self._owner = self._maker.owner
        self._reaper = OrphanReaper(self._engine, instance, self._owner, self._known)
        self._upkeep = BoxUpkeep(self._maker, self._reaper, self._look)
        self._running, self._figures, self._ahead = ActiveRuns(), SandboxStats(), PreloadExclusions()
        self._loader = BoxLoader(self._figures, self._ahead, load_s=self.caps.load_s, most=self.caps.boxes)
        self._pool: BoxPool[Box] = BoxPool(
            self.caps,
            on_work=self._upkeep.tell,
            on_load=lambda slot, load: self._loader.begin(self._pool, slot, load),
            pressure=read_cpu_pressure,
        )
        self._standby = Standby(self._pool)
        self._started = False
        self._lock = threading.Lock()

    # -- what it is

    def missing(self, profile: Profile, *, by_gate: bool = False) -> tuple[str, ...]:
        if self._gate is None:
            return tuple(name for name in profile.outside if name in ("net", "cidr"))
        return list_missing_capabilities(profile, by_gate=by_gate)

    def check(self) -> str:
        try:
            version = self._engine.version()
            image = self._find_image(self.image)
            options = self._engine.security_options()
            if self._gate is not None:
                self._gate.check()
        except (EngineError, OSError) as error:
            raise SandboxUnavailable(str(error)) from error
        if not any("seccomp" in option for option in options):
            raise SandboxUnavailable(f"The engine at {self._engine.url} has no seccomp, without which no tool is run.")
        return f"Docker engine {version} at {self._engine.url}, image {self.image} ({image[7:19]})"

    def snapshot(self) -> SandboxSnapshot | None:
        """For the console and for metrics."""
        if not self._started:
            return None
        return self._figures.snapshot(self._pool, self.caps, self._maker.transports)

    def is_full(self) -> bool:
        """Whether calls wait until others have ended."""
        return self._pool.is_full()

    # -- calls

    def run(
        self, profile: Profile, call: SandboxCall, on_event: Callable[[RunEvent], None] | None = None
    ) -> RunOutcome:
        lacking = self.missing(profile, by_gate=call.is_by_gate)
        if lacking:
            sentence = f"This sandbox cannot give a tool the capability {' or '.join(lacking)}."
            return RunOutcome(RunStatus.CAPABILITY_BLOCKED, blocked=lacking[0], error_message=sentence)
        run = ActiveRun(self._pool.withdraw)
        if not self._running.begin(call.name, run):
            return RunOutcome(RunStatus.CANCELLED, error_message=_STOPPING)
        self.start()
        clock, seen = StepClock(), GateRecords()
        try:
            outcome = self._run(profile, call, run, clock, seen, on_event)
        except BoxRefused as error:
            status = RunStatus.CANCELLED if error.cancelled else RunStatus.START_FAILED
            outcome = _nothing_ran(status, str(error), clock, seen, retry_after_s=error.retry_after_s)
        except LoadTimeout as error:
            outcome = _nothing_ran(RunStatus.LOAD_TIMED_OUT, str(error), clock, seen, retry_after_s=error.retry_after_s)
        except NoImage as error:
            outcome = replace(_nothing_ran(RunStatus.START_FAILED, str(error), clock, seen), error_code=IMAGE_MISSING)
        except (UnusableCall, NotMade, NotLoaded, EngineError, SandboxUnavailable) as error:
            outcome = _nothing_ran(RunStatus.START_FAILED, str(error), clock, seen)
            if isinstance(error, NotMade) and not error.broken:
                self._images.clear()  # perhaps the image is another one now
        finally:
            self._running.end(call.name)
        self._figures.count(outcome)
        if outcome.box and outcome.status in _KILLS:
            self._figures.killed(str(outcome.status))
        return outcome

    def _run(
        self,
        profile: Profile,
        call: SandboxCall,
        run: ActiveRun,
        clock: StepClock,
        seen: GateRecords,
        on_event: Callable[[RunEvent], None] | None,
    ) -> RunOutcome:
        body = pack_call(call, stream=on_event is not None)
        way = _build_way(call)
        telling = EventRelay(on_event) if on_event is not None else None
        with clock.step("wait"):
            runtime = self._runtimes.choose(profile) if self._runtimes is not None else self._runtime
            image = self._image_id(call.image or self.image)
        known = self._namespaces.get(runtime)
        level = choose_level(profile, call, pooled=self.caps.ready > 0, namespaces=known is not False)
        again, why = False, ""
        for _ in range(_TRIES):
            try:
                want = self._want(profile, call, level, image, runtime)
                slot = self._wait_for_box(want, run, clock, seen)
                outcome = self._converse(profile, call, slot, run, clock, body, telling, seen, way=way)
            except (NothingRan, NotLoaded) as error:
                if run.cancelled:
                    raise BoxRefused(CANCELLED, cancelled=True) from error
                why = str(error)
                if isinstance(error, NothingRan):
                    continue
                if level == FRESH and not known and not self._gives_namespaces(runtime, run):
                    level = SINGLE
                elif level in REUSED and not again:
                    again = True  # by now without what is imported ahead, if that was why
                else:
                    raise
            else:
                if level == FRESH:
                    self._namespaces[runtime] = True
                if outcome.status in _SERVED:
                    self._standby.make_ready(want, self._load_of(profile, call, level))
                return replace(outcome, level=level, image=image)
        raise NotMade(f"No box stayed alive until the call was in it. {why}", broken=False)

    def _want(self, profile: Profile, call: SandboxCall, level: str, image: str, runtime: str) -> BoxRequest:
        shape = build_box_shape(profile, call, level=level, image=image, runtime=runtime)
        key = (call.key, profile, shape, level) if level in REUSED else None
        return BoxRequest(
            shape,
            tenant=call.key.tenant if call.key else "",
            key=key,
            own=level == COLD,
            name=call.name,
            level=level,
            label=call.labels.get("toolhub.tool", ""),
            labels=call.labels,
            load=PackageLoad(call.key, self._load_of(profile, call, level)) if key is not None else None,
            idle=_WITH_SERVER if call.server is not None and key is not None else USUAL_IDLE,
            standby_key=derive_standby_key(profile, call, shape, level),
        )

    def _load_of(self, profile: Profile, call: SandboxCall, level: str) -> Callable[[bool], bytes]:
        return lambda ahead: pack_load(profile, call, level=level, load_s=self.caps.load_s, ahead=ahead)

    def _wait_for_box(self, want: BoxRequest, run: ActiveRun, clock: StepClock, seen: GateRecords) -> PoolSlot[Box]:
        """A box that can be called: of a key, its tool's code is loaded."""
        with clock.step("wait"):
            ticket = self._pool.ask(want)
            run.waits(ticket)
            if not ticket.settled and not self._pool.wait_for(ticket, START_S):
                reason = "All boxes are in use" if ticket.blocked else "No box got ready"
                self._pool.withdraw(ticket, BoxRefused(f"{reason} for {START_S:.0f} s.", retry_after_s=START_S))
        now = self._pool.now()
        self._figures.waited((now - ticket.since) * 1000)
        if want.load is not None and (span := self._pool.loads.span(want.key, ticket.since)) is not None:
            waits_on = ticket.slot is not None and ticket.slot.calls  # for its turn, since others were before it
            clock.part("load", clock.at(span[0]), clock.at(span[1] if waits_on else now))
        if ticket.refusal is not None:
            seen.add(ticket.connections)
            raise ticket.refusal
        assert ticket.slot is not None
        return ticket.slot

    def _converse(
        self,
        profile: Profile,
        call: SandboxCall,
        slot: PoolSlot[Box],
        run: ActiveRun,
        clock: StepClock,
        body: bytes,
        telling: EventRelay | None,
        seen: GateRecords,
        *,
        way: ServiceWay | None = None,
    ) -> RunOutcome:
        box = slot.box
        assert box is not None
        talk, unfit, used, granted = BoxConversation(box), "died", False, clock.now()
        try:
            box.check_alive()
            unfit = ""
            load = None if slot.loaded or slot.calls else self._load_of(profile, call, slot.level)(False)
            seen.add(slot.connections)
            slot.connections = ()
            with open_egress(box, profile.capabilities, slot.tenant, seen, way=way):
                run.talks(talk)
                unfit, used = "lost", True
                said = talk.run(load, body, self.caps.load_s, profile.limits.wall_ms / 1000, on_event=telling)
            ended = said.head["ended"]
            if ended == run_monitor.LOAD_TIMED_OUT and slot.loaded:  # another box would be loaded for nothing
                self._pool.loads.rest(slot.key, self._pool.now(), NOT_IMPORTED)
            unfit = "" if said.head["clean"] else "dirty" if ended == run_monitor.EXITED else ended
        except NothingRan:
            unfit, used = "" if talk.cancelled and box.is_alive() else "died", False
            raise
        except (ChannelLost, protocol.ProtocolError) as error:
            return add_connections(self._lost(error, run, clock, box), seen.connections)
        finally:
            talk.close()
            unfit = unfit or ("way out" if seen.connections is None else "")
            self._pool.give_back(slot, unfit=unfit, used=used)
        begun, answered = clock.at(said.loaded), clock.at(said.answered)
        loaded = min(begun + said.head["load_ms"], answered)
        finished = max(loaded, min(begun + said.head["run_ms"], answered))
        outcome = build_outcome(said.head, said.parts, profile.limits, box=box.id)
        clock.add("load", granted, loaded)
        clock.steps += [("run", loaded, finished), ("collect", finished, clock.now())]
        return add_connections(replace(outcome, steps=tuple(clock.steps)), seen.connections)

    def _lost(self, error: Exception, run: ActiveRun, clock: StepClock, box: Box) -> RunOutcome:
        """The tool may have run."""
        if run.cancelled:
            status, message = RunStatus.CANCELLED, "The call was cancelled while the tool ran."
        elif isinstance(error, ChannelTimeout):
            status, message = RunStatus.TIMED_OUT, "The tool could not be stopped in time; its box was destroyed."
        else:
            status, message = RunStatus.LOST, f"Contact to the box was lost: {error}"
        steps, now = tuple(clock.steps), clock.now()
        return RunOutcome(status, error_message=message, clean=False, duration_ms=now, box=box.id, steps=steps)

    def _gives_namespaces(self, runtime: str, run: ActiveRun) -> bool:
        """Asked with a package of the hub's own, because a tool's may fail to load for reasons of its own."""
        call, profile = build_smallest_call(), Profile()
        image = self._image_id(self.image)
        try:
            slot = self._wait_for_box(self._want(profile, call, FRESH, image, runtime), run, StepClock(), GateRecords())
            self._converse(profile, call, slot, run, StepClock(), pack_call(call, stream=False), None, GateRecords())
        except NotLoaded as error:
            if not error.said_no:
                return True  # it is not known
            self._namespaces[runtime] = False
            log.warning("No call gets namespaces of its own here, so boxes are used once instead: %s", error)
            self._look()
            return False
        except (NothingRan, LoadTimeout):
            return True
        self._namespaces[runtime] = True
        return True

    # -- images

    def _image_id(self, name: str) -> str:
        return self._images.get(name) or self._find_image(name)

    def _find_image(self, name: str) -> str:
        try:
            found = self._images[name] = self._engine.image_id(name)
        except EngineObjectMissing:
            self._images.pop(name, None)
            command = "make sandbox-image" if name == self.image else "make sandbox-images"
            sentence = f"The engine at {self._engine.url} has no sandbox image {name}. `{command}` builds it."
            raise NoImage(sentence) from None
        return found

    def _look(self) -> None:
        """Are the images still those that boxes were made of? Keep the usual box ready."""
        for name in dict(self._images) | {self.image: ""}:
            with suppress(NoImage):
                self._find_image(name)
        now = set(self._images.values())
        slots = self._pool.slots()
        self._pool.discard([slot for slot in slots if cast("BoxShape", slot.shape).image not in now], "image")
        if self.image in self._images:
            runtime = self._runtimes.names.get("default", "") if self._runtimes is not None else self._runtime
            level = self._usual.isolation
            if self._namespaces.get(runtime) is False and level == FRESH:
                level = SINGLE
            shape = build_box_shape(self._usual, None, level=level, image=self._images[self.image], runtime=runtime)
            self._pool.keep_ready(shape)

    # -- ends

    @property
    def closing(self) -> bool:
        return self._running.closed

    def kill(self, name: str) -> None:
        run = self._running.get(name)
        if run is not None:
            run.cancel()

    def remove_orphans(self) -> int:
        """End the boxes of this hub whose owner is gone or whose time is over; upkeep does it every half minute."""
        return self._reaper.remove_orphans()

    def _known(self) -> set[str]:
        return {slot.box.id for slot in self._pool.slots() if slot.box is not None}

    def start(self) -> None:
        """Look after what was left behind, and keep boxes ready. Happens by itself with the first call."""
        with self._lock:
            if not self._started:
                self._started = True
                self._run_dir.clear_leftovers()
                self._upkeep.start(self._pool)

    def close(self) -> None:
        self._running.close()
        self._pool.close()
        self._standby.close()
        self._loader.close()
        if self._started:
            self._upkeep.stop()
            with suppress(EngineError):
                for found in self._engine.find({INSTANCE: self._instance, POOL: self._maker.pool}):
                    self._engine.remove(found["Id"])
        if self._gate is not None:
            self._gate.close()
        self._run_dir.close()
        self._engine.close()


def _build_way(call: SandboxCall) -> ServiceWay | None:
    """What the gate needs to know of whom it asks for this call; None: nobody."""
    try:
        if call.remote is not None:
            return RemoteWay.build_for(call.remote, call.asks, call.secrets, call.hidden)
        return None if call.operation is None else ServiceWay.build(call.operation, call.secrets, call.hidden)
    except CredentialUnfit as error:
        raise UnusableCall(str(error)) from error


def _nothing_ran(
    status: RunStatus, message: str, clock: StepClock, seen: GateRecords, retry_after_s: float = 0.0
) -> RunOutcome:
    details = {"retry_after_s": math.ceil(retry_after_s)} if retry_after_s else {}
    steps, now = tuple(clock.steps), clock.now()
    outcome = RunOutcome(status, error_message=message, error_details=details, duration_ms=now, steps=steps)
    return add_connections(outcome, seen.connections)
