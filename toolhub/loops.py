"""Loops: all that a process does in the background, one row each, and the kinds of process that do it.

A row is all that a loop needs to be started, watched by the probes and stopped. A path is imported when the loop starts: Celery reads
this table before Django has loaded the models.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

from kernel.database.change_watch import news

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDED_WITHIN_S = 30


class ProcessRole(Enum):
    """A kind of process that runs loops. A web process of the production shape runs none."""

    WORKER = "worker"  # `celery -A toolhub worker`
    UPKEEP = "upkeep"  # `manage.py upkeep`; a worker does its work too, unless TOOLHUB_WORKER_SENDS is 0
    KEEPER = "keeper"  # `manage.py keep`: it alone holds the key that logs are signed with
    EMBEDDED = "embedded"  # `manage.py serve` in the default, where one process is all


@dataclass(frozen=True, slots=True)
class Loop:
    """``path``: of a function that takes the event that tells it to stop. Any number of processes may run the same loop."""

    name: str
    path: str
    roles: frozenset[ProcessRole]


_CALLS = frozenset({ProcessRole.WORKER, ProcessRole.EMBEDDED})
_SENDING = frozenset({ProcessRole.UPKEEP, ProcessRole.EMBEDDED})
_EVIDENCE = frozenset({ProcessRole.KEEPER, ProcessRole.EMBEDDED})

LOOPS = (
    Loop("sweeper", "invocations.queue.sweeper.run_sweeper", _CALLS | _SENDING),
    # The embedded default has no Redis to listen to; a run there is cancelled in its own process.
    Loop("canceller", "invocations.run.cancellation.listen_for_cancellations", frozenset({ProcessRole.WORKER})),
    Loop("listener", "invocations.queue.notify.listener.listen_for_notifications", frozenset({ProcessRole.WORKER})),
    Loop("builder", "invocations.run.probes.run_builder", _CALLS),
    Loop("call_hours", "invocations.call_hours.rollup.run_rollup", _CALLS | _SENDING),
    Loop("reporter", "invocations.sandbox_hosts.reports.run_reporter", _CALLS),
    Loop("chains", "invocations.chains.orchestration.run_chain_loop", _CALLS),
    Loop("agent_runs", "invocations.agent_runs.orchestration.run_agent_run_loop", _CALLS),
    Loop("sender", "access.notifications.deliveries.run_sender", _SENDING),
    Loop("token_returns", "access.server_accounts.token_returns.run_token_returns", _SENDING),
    Loop("callbacks", "invocations.callbacks.delivery.run_callback_sender", _SENDING),
    Loop("months", "evidence.months.loop.run_months", _SENDING),
    Loop("sealer", "evidence.log.sealer.run_sealer", _EVIDENCE),
    Loop("events", "evidence.sinks.delivery.run_delivery", _EVIDENCE),
    Loop("witnessing", "evidence.witnesses.anchors.run_anchoring", _EVIDENCE),
    Loop("indexer", "evidence.search.indexer.run_indexer", _EVIDENCE),
    Loop("erasure", "evidence.erasures.services.run_erasures", _EVIDENCE),
    Loop("retention", "evidence.retention.run_retention", _EVIDENCE),
    Loop("verifier", "evidence.integrity.loop.run_verifier", _EVIDENCE),
    Loop("exporter", "evidence.exports.jobs.run_exports", _EVIDENCE),
)


def select_loops(*roles: ProcessRole) -> list[Loop]:
    """The loops of a process that has these roles, each once."""
    return [loop for loop in LOOPS if not loop.roles.isdisjoint(roles)]


class LoopThreads:
    """A thread for each loop of a process, named as it is. All are told to stop before one is waited for."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def start(self, *loops: Loop) -> None:
        self._stop = threading.Event()
        self.threads = [
            threading.Thread(target=import_string(loop.path), args=(self._stop,), name=loop.name, daemon=True)
            for loop in loops
        ]
        for thread in self.threads:
            thread.start()

    def tell(self) -> None:
        """All of them to stop: none begins another pass."""
        self._stop.set()
        news.wake()

    def join(self, *, within_s: float) -> None:
        for thread in self.threads:
            thread.join(timeout=within_s)


@contextmanager
def run_loops(*loops: Loop) -> Iterator[LoopThreads]:
    """The loops run while the block does. At its end all are told to stop, and each is waited for."""
    running = LoopThreads()
    running.start(*loops)
    try:
        yield running
    finally:
        running.tell()
        running.join(within_s=ENDED_WITHIN_S)
