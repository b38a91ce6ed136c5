"""Celery: the application that workers and senders share.

``celery -A toolhub worker`` runs the workers of the production shape. A worker also sweeps: with one alive, nothing that a
crash left stays open.
"""

from __future__ import annotations

import logging
import os
import threading
from logging.config import dictConfig
from typing import TYPE_CHECKING, Any

from celery import Celery
from celery.signals import setup_logging, worker_init, worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from kernel.observability import exposition, telemetry

if TYPE_CHECKING:
    from collections.abc import Callable

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")

app = Celery("toolhub")
try:
    app.conf.update(settings.CELERY)
except ImproperlyConfigured as error:  # read here for the first time by every worker, web process and command
    raise SystemExit(f"toolhub does not start. {error}") from error
app.set_default()
app.autodiscover_tasks(["invocations"])

_stop_sweeping = threading.Event()
_beside: list[threading.Thread] = []
STOPPED_WITHIN_S = 5


def sweeper_loop() -> Callable[[threading.Event], None]:
    from invocations.queue.sweeper import run_sweeper  # noqa: PLC0415  models load only after Django is set up

    return run_sweeper


def sender_loop() -> Callable[[threading.Event], None]:
    from access.notifications.deliveries import run_sender  # noqa: PLC0415  as above

    return run_sender


def callback_loop() -> Callable[[threading.Event], None]:
    from invocations.callbacks.delivery import run_callback_sender  # noqa: PLC0415  as above

    return run_callback_sender


def chain_loop() -> Callable[[threading.Event], None]:
    from invocations.chains.orchestration import run_chain_loop  # noqa: PLC0415  as above

    return run_chain_loop


def canceller_loop() -> Callable[[threading.Event], None]:
    from invocations.run.cancellation import listen_for_cancellations  # noqa: PLC0415  as above

    return listen_for_cancellations


def builder_loop() -> Callable[[threading.Event], None]:
    from registry.dependencies.builder import run_builder  # noqa: PLC0415  as above

    return run_builder


def reporter_loop() -> Callable[[threading.Event], None]:
    from invocations.sandbox_hosts.reports import run_reporter  # noqa: PLC0415  as above

    return run_reporter


def start_sandbox() -> None:
    from invocations.sandbox.factory import start_sandbox as start  # noqa: PLC0415  as above

    start()


def offer_metrics() -> None:
    from invocations.metrics.hub_gauges import make_instruments  # noqa: PLC0415  as above

    if exposition.is_wanted():
        make_instruments()
        exposition.serve_metrics()


def offer_probes() -> None:
    from toolhub.probes.server import serve_probes  # noqa: PLC0415  as above

    serve_probes(_beside)


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


def loops_beside() -> dict[str, Callable[[], Callable[[threading.Event], None]]]:
    """What a worker does beside running calls."""
    loops = {"sweeper": sweeper_loop, "canceller": canceller_loop, "builder": builder_loop}
    loops |= {"reporter": reporter_loop, "chains": chain_loop}
    if settings.TOOLHUB_WORKER_SENDS:
        loops |= {"sender": sender_loop, "callbacks": callback_loop}
    return loops


@worker_ready.connect
def _start_sweeping(**_: Any) -> None:
    if settings.TOOLHUB_EMBEDDED:
        return  # the one process sweeps by itself (toolhub.embedded_mode)
    start_sandbox()
    offer_metrics()
    _stop_sweeping.clear()
    for name, loop in loops_beside().items():
        thread = threading.Thread(target=loop(), args=(_stop_sweeping,), name=name, daemon=True)
        thread.start()
        _beside.append(thread)
    offer_probes()


@worker_shutting_down.connect
def _drain(**_: Any) -> None:
    begin_drain()


@worker_shutdown.connect
def _stop(**_: Any) -> None:
    from invocations.sandbox.factory import current_sandbox  # noqa: PLC0415  as above

    _stop_sweeping.set()
    current_sandbox().close()
    while _beside:  # what one of them has started ends with it
        _beside.pop().join(STOPPED_WITHIN_S)
