"""Which Celery application do workers and senders share?

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

from toolhub.kernel import exposition, telemetry

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
    from invocations.sweeper import run  # noqa: PLC0415  models load only after Django is set up

    return run


def sender_loop() -> Callable[[threading.Event], None]:
    from access.deliveries import run  # noqa: PLC0415  as above

    return run


def callback_loop() -> Callable[[threading.Event], None]:
    from invocations.callbacks.sending import run  # noqa: PLC0415  as above

    return run


def chain_loop() -> Callable[[threading.Event], None]:
    from invocations.chains.driving import run  # noqa: PLC0415  as above

    return run


def canceller_loop() -> Callable[[threading.Event], None]:
    from invocations.cancelling import run  # noqa: PLC0415  as above

    return run


def builder_loop() -> Callable[[threading.Event], None]:
    from registry.dependencies.builder import run  # noqa: PLC0415  as above

    return run


def reporter_loop() -> Callable[[threading.Event], None]:
    from invocations.sandbox_hosts import run  # noqa: PLC0415  as above

    return run


def start_sandbox() -> None:
    from invocations.sandbox.current import start_sandbox as start  # noqa: PLC0415  as above

    start()


def offer_metrics() -> None:
    from invocations.gauges import make_instruments  # noqa: PLC0415  as above

    if exposition.is_wanted():
        make_instruments()
        exposition.serve_metrics()


def offer_probes() -> None:
    from toolhub.probes import serve_probes  # noqa: PLC0415  as above

    serve_probes(_beside)


def begin_drain() -> None:
    from toolhub.readiness import DRAINING  # noqa: PLC0415  as above

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
    telemetry.setup("worker")


@worker_ready.connect
def _start_sweeping(**_: Any) -> None:
    if settings.TOOLHUB_EMBEDDED:
        return  # the one process sweeps by itself (toolhub.embedded)
    start_sandbox()
    offer_metrics()
    _stop_sweeping.clear()
    loops = {"sweeper": sweeper_loop, "canceller": canceller_loop, "sender": sender_loop, "builder": builder_loop}
    loops |= {"reporter": reporter_loop, "callbacks": callback_loop, "chains": chain_loop}
    for name, loop in loops.items():
        thread = threading.Thread(target=loop(), args=(_stop_sweeping,), name=name, daemon=True)
        thread.start()
        _beside.append(thread)
    offer_probes()


@worker_shutting_down.connect
def _drain(**_: Any) -> None:
    begin_drain()


@worker_shutdown.connect
def _stop(**_: Any) -> None:
    from invocations.sandbox.current import current_sandbox  # noqa: PLC0415  as above

    _stop_sweeping.set()
    current_sandbox().close()
    while _beside:  # what one of them has started ends with it
        _beside.pop().join(STOPPED_WITHIN_S)
