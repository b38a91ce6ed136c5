"""Builder: what resolves and builds dependencies in the background.

A loop beside each worker, as the sweeper is one. On each host one process builds at a time. It takes what waits in the
database, and makes for itself what another host has built and this one lacks: a folder is the same wherever it is made, since
the lock names every file.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import DatabaseError

from kernel.database.connections import release_connection
from kernel.loops import Rest, repeat_work
from registry.dependencies import build_steps, states, store
from registry.dependencies.failures import (
    CannotBuild,
    CannotBuildYet,
    not_probed,
    os_error_failure,
    pause_after,
    unexpected_failure,
)
from registry.dependencies.pip import ProgressHooks
from registry.dependencies.target import folder_name
from registry.models import Dependencies, DependencyState

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path
    from typing import Protocol

    from registry.models import ToolVersion

    Tell = Callable[[str], object]
    Probe = Callable[[ToolVersion, Path, Callable[[], None]], None]

    class Errand(Protocol):
        """Something else that needs packages of others built, done where and while nobody else builds on the host."""

        def is_waiting(self) -> bool: ...

        def do_next(self, is_stopped: Callable[[], bool]) -> bool:
            """Whether there was anything to do."""
            ...


log = logging.getLogger("toolhub.builder")
EVERY_S = 2.0
LOOK_HERE_EVERY_S = 10.0
COLLECT_EVERY_S = 60 * 60.0
REMOVE_AFTER = timedelta(hours=1)  # a box may still have it mounted
TELL_EVERY_S = 1.0
MAX_PROGRESS = 12


class BuildInterrupted(Exception):
    """Somebody else has what is being built, or this process is told to stop."""


class _Teller:
    """Writes down what is being done, at most once a second, and finds out whether to go on."""

    def __init__(self, claimed: Dependencies | None, is_stopped: Callable[[], bool], tell: Tell) -> None:
        self.claimed, self.is_stopped, self.tell = claimed, is_stopped, tell
        self.lines: list[str] = []
        self.due = 0.0

    def say(self, line: str) -> None:
        self.tell(line)
        self.lines = [*self.lines, line][-MAX_PROGRESS:]

    def beat(self) -> None:
        if self.is_stopped():
            raise BuildInterrupted
        if self.claimed is None or time.monotonic() < self.due:
            return
        self.due = time.monotonic() + TELL_EVERY_S
        try:
            kept = states.report_progress(self.claimed, self.lines)
        except DatabaseError as error:
            log.warning("What is being built was not written down, trying again: %s", error)
            return
        finally:
            release_connection()
        if not kept:
            raise BuildInterrupted


class Builder:
    """What one process remembers between passes. ``probe`` tries the server or object of a version with its dependencies, and
    raises :class:`CannotBuild` when it is not what the manifest pins; without one no such version is locked."""

    def __init__(
        self,
        is_stopped: Callable[[], bool] = lambda: False,
        tell: Tell = log.debug,
        *,
        probe: Probe | None = None,
        errand: Errand | None = None,
    ) -> None:
        self.is_stopped, self.tell, self.probe, self.errand = is_stopped, tell, probe, errand
        self.look_here_at = self.collect_at = 0.0
        self.kinds = [self._do_claimed, self._do_errand, self._tend_folders]  # whose turn it is first
        self.pauses: dict[str, tuple[int, float]] = {}  # of what could not be made here: how often, and not before when

    def pass_once(self) -> bool:
        """One thing done, or looked for. Whether there may be more to do at once."""
        if not Dependencies.objects.exists() and not (self.errand and self.errand.is_waiting()):
            return False
        try:
            with store.claim_host() as is_mine:
                return self._next() if is_mine else False
        except OSError as error:  # no folder to build in; who waits is told, and not left waiting
            failure = os_error_failure(error)
            log.warning("%s %s", failure.message, failure.remedy)
            claimed = states.claim_next()
            return claimed is not None and states.write_failed(claimed, failure)

    def _next(self) -> bool:
        """The three kinds of work by turns: what is made for a tenant may take minutes, and none waits for all of another."""
        states.queue_wanted()
        for place, do_one in enumerate(self.kinds, 1):
            if do_one():
                self.kinds = [*self.kinds[place:], *self.kinds[:place]]
                return True
        return False

    def _do_claimed(self) -> bool:
        claimed = states.claim_next()
        if claimed is not None:
            self._work_on(claimed)
        return claimed is not None

    def _do_errand(self) -> bool:
        return self.errand is not None and self.errand.do_next(self.is_stopped)

    def _tend_folders(self) -> bool:
        self._collect()
        return self._make_missing()

    def _work_on(self, claimed: Dependencies) -> None:
        teller = _Teller(claimed, self.is_stopped, self.tell)
        talk = ProgressHooks(teller.say, teller.beat)
        requirements = claimed.version.view.dependencies
        name = f"{claimed.version.tool.name} {claimed.version.version}"
        release_connection()
        try:
            if claimed.state == DependencyState.RESOLVING:
                states.write_lock(claimed, self._lock_of(claimed, talk))
            else:
                folder, size = build_steps.build_folder(claimed.lock, requirements, talk=talk)
                states.write_built(claimed, size_bytes=size)
                log.info("The dependencies of %s are in %s", name, folder)
        except CannotBuild as error:
            if isinstance(error, CannotBuildYet) and claimed.attempt < error.attempts:
                log.warning(
                    "The dependencies of %s are put off (%s): %s", name, error.failure.code, error.failure.message
                )
                states.put_off(claimed, pause_after(claimed.attempt), f"{error.failure.message} It is tried again.")
                return
            log.warning("The dependencies of %s failed (%s): %s", name, error.failure.code, error.failure.message)
            states.write_failed(claimed, error.failure)
        except BuildInterrupted:
            states.give_back(claimed)
        except DatabaseError:
            raise  # the lease runs out, and the next who looks takes it
        except Exception:
            log.exception("The dependencies of %s failed", name)
            states.write_failed(claimed, unexpected_failure())

    def _lock_of(self, claimed: Dependencies, talk: ProgressHooks) -> list[str]:
        """What the manifest says or pip finds. A server or object of others has been tried with it, and is what the manifest pins."""
        manifest = claimed.version.view
        lines = manifest.dependency_lock or build_steps.resolve_requirements(
            manifest.dependencies, talk=talk, constraints=manifest.dependency_constraints
        )
        if manifest.is_tried:
            if self.probe is None:
                raise CannotBuild(not_probed())
            folder, _ = build_steps.build_folder(lines, manifest.dependencies, talk=talk)
            talk.say(
                "Starting the server, to see what it lists"
                if manifest.server
                else "Making the object, to see what it says"
            )
            self.probe(claimed.version, folder, talk.beat)
        return lines

    def _make_missing(self) -> bool:
        """What is built elsewhere and not here. A failure is this host's own, so the row is not touched."""
        if time.monotonic() < self.look_here_at:
            return False
        self.look_here_at = time.monotonic() + LOOK_HERE_EVERY_S
        here, now = store.list_folders(), time.monotonic()
        missing = [each for each in states.list_needed_locks() if folder_name(each) not in here]
        missing = [each for each in missing if self.pauses.get(each, (0, 0.0))[1] <= now]
        if not missing:
            return False
        self._make(missing[0])
        self.look_here_at = 0.0
        return True

    def _make(self, lock_digest: str) -> None:
        rows = Dependencies.objects.select_related("version__tool")
        row = rows.filter(lock_digest=lock_digest, state=DependencyState.READY).first()
        if row is None:
            return
        teller = _Teller(None, self.is_stopped, self.tell)
        release_connection()
        try:
            build_steps.build_folder(row.lock, (), talk=ProgressHooks(teller.say, teller.beat))
        except CannotBuild as error:
            times = self.pauses.get(lock_digest, (0, 0.0))[0] + 1
            self.pauses[lock_digest] = (times, time.monotonic() + pause_after(times).total_seconds())
            log.warning(
                "This host lacks the dependencies of %s %s, and cannot build them (%s): %s",
                row.version.tool.name,
                row.version.version,
                error.failure.code,
                error.failure.message,
            )
        except BuildInterrupted:
            return
        else:
            self.pauses.pop(lock_digest, None)

    def _collect(self) -> None:
        if time.monotonic() < self.collect_at:
            return
        self.collect_at = time.monotonic() + COLLECT_EVERY_S
        states.release_unused()
        collect_folders()


def collect_folders(*, older_than: timedelta = REMOVE_AFTER) -> list[str]:
    """Remove the folders of this host that no version needs. The names of those that are gone. Call it alone."""
    needed = {folder_name(each) for each in states.list_kept_locks()}
    gone = store.remove_unneeded(needed, older_than_s=older_than.total_seconds())
    if gone:
        log.info("%s folders of dependencies that no version needs were removed", len(gone))
    return gone


def run_builder(stop: threading.Event, *, probe: Probe | None = None, errand: Errand | None = None) -> None:
    """Build until told to stop."""
    builder = Builder(stop.is_set, probe=probe, errand=errand)
    repeat_work(
        lambda: Rest(0) if builder.pass_once() else None,
        stop,
        every_s=EVERY_S,
        what="Dependencies were not built",
        log=log,
    )
