"""Celery: the application that workers and senders share.

``celery -A toolhub worker`` runs the workers of the production shape. A worker also sweeps: with one alive, nothing that a
crash left stays open.
"""

from __future__ import annotations

import logging
import os
import time
from logging.config import dictConfig
from typing import TYPE_CHECKING, Any

from celery import Celery
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from kernel.huge_pages import start_collapses
from kernel.observability import exposition, telemetry
from toolhub.brokers.wake_up_consumer import WakeUpConsumer
from toolhub.loops import LoopThreads, ProcessRole, select_loops

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
# Celery would make Django's checks and throw away what they say, after importing every page and endpoint for them. A worker refuses to
# start by itself (`_trace`).
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("toolhub")
try:
    app.conf.update(settings.CELERY)
except ImproperlyConfigured as error:  # read here for the first time by every worker, web process and command
    raise SystemExit(f"toolhub does not start. {error}") from error
app.set_default()
app.steps["consumer"].add(WakeUpConsumer)
app.autodiscover_tasks(["invocations"])

_loops = LoopThreads()  # of this worker
STOPPED_WITHIN_S = 5
LOOK_AGAIN_S = 0.1


def start_sandbox() -> None:
    from invocations.sandbox.factory import start_sandbox as start  # noqa: PLC0415  models load only after Django is set up

    start()


def offer_metrics() -> None:
    from toolhub.instruments import make_instruments  # noqa: PLC0415  as above

    if exposition.is_wanted():
        make_instruments()
        exposition.serve_metrics()


def offer_probes(loops: Sequence[threading.Thread]) -> None:
    from toolhub.probes.server import serve_probes  # noqa: PLC0415  as above

    serve_probes(loops)


def import_providers() -> None:
    """A worker asks the models of agent runs, and would otherwise import what asks them while it has a run locked."""
    from registry.model_providers.early_imports import start_early_imports  # noqa: PLC0415  as above

    start_early_imports()


def begin_drain() -> None:
    from toolhub.probes.readiness import DRAINING  # noqa: PLC0415  as above

    DRAINING.set()


@setup_logging.connect
def _keep_logging(loglevel: int | str | None = None, **_: Any) -> None:
    """Celery's lines go where all others go, in their form; it would give its loggers handlers of its own."""
    dictConfig(settings.LOGGING)
    if loglevel is not None:
        logging.getLogger("celery").setLevel(loglevel)


@worker_init.connect
def _trace(**_: Any) -> None:
    from toolhub.startup import refuse_foreign_keys, refuse_without_keys, say_unknown_settings  # noqa: PLC0415  models load after Django is set up

    refuse_without_keys()
    refuse_foreign_keys()
    if not settings.TOOLHUB_EMBEDDED:  # there the web server says it
        say_unknown_settings()
    telemetry.setup_telemetry("worker")


def worker_roles() -> tuple[ProcessRole, ...]:
    return (ProcessRole.WORKER, ProcessRole.UPKEEP) if settings.TOOLHUB_WORKER_SENDS else (ProcessRole.WORKER,)


@worker_ready.connect
def _start_loops(**_: Any) -> None:
    if settings.TOOLHUB_EMBEDDED:
        return  # the one process runs them by itself (toolhub.embedded_mode)
    start_sandbox()
    offer_metrics()
    import_providers()
    start_collapses()
    _loops.start(*select_loops(*worker_roles()))
    offer_probes(_loops.threads)


@worker_shutting_down.connect
def _drain(**_: Any) -> None:
    from invocations.queue.claims import places  # noqa: PLC0415  as above

    begin_drain()
    places.close()


@worker_shutdown.connect
def _stop(**_: Any) -> None:
    """First the runs end, as they are cancelled and probed until then; then the loops are told, so that none begins anything without
    boxes, and waited for whatever becomes of the boxes.
    """
    from invocations.queue.claims import places  # noqa: PLC0415  as above
    from invocations.sandbox.factory import current_sandbox  # noqa: PLC0415  as above

    _drain()  # said by a signal already; remote control and an error that Celery cannot recover from say nothing before this
    try:
        WakeUpConsumer.join()
        places.wait_for_claim()
        while places.any_taken():  # these came by a notification of PostgreSQL
            time.sleep(LOOK_AGAIN_S)
        _loops.tell()
        current_sandbox().close()
    finally:
        _loops.tell()
        _loops.join(within_s=STOPPED_WITHIN_S)
