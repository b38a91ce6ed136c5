"""Limits: how much is done at once, how long it may take, and how often it may fail."""

from __future__ import annotations

from kernel.dotenv import NAMED
from kernel.names import QUEUES
from kernel.variables import UPKEEP, WEB, WORKER
from toolhub.variables.table import VARIABLES

_group, _number = VARIABLES.group, VARIABLES.number

_group("How much, and how long")
TOOLHUB_WORKER_CONCURRENCY = _number(
    "TOOLHUB_WORKER_CONCURRENCY", 4, least=1, roles=(WORKER,), about="Calls of one tenant that a worker runs at once."
)
TOOLHUB_WORKER_SPARE = _number(
    "TOOLHUB_WORKER_SPARE", 1, roles=(WORKER,), about="Places of a worker beside them, that only other tenants get."
)
TOOLHUB_WORKER_SENDS = VARIABLES.flag(
    "TOOLHUB_WORKER_SENDS",
    default=True,
    roles=(WORKER,),
    about="Whether a worker sends mail, messages to webhooks and answers to callback addresses. 0 where its network has no way out: "
    "`manage.py upkeep` then sends them.",
)
TOOLHUB_WORK_CLASSES = VARIABLES.listed(
    "TOOLHUB_WORK_CLASSES",
    "quick,long",
    of=tuple(QUEUES),
    roles=(WORKER,),
    about="Which calls a worker takes: long ones are those of tools that may take longer than a minute.",
)
TOOLHUB_WEB_THREADS = _number(
    "TOOLHUB_WEB_THREADS",
    16,
    least=1,
    roles=(WEB,),
    about="Requests that a web process works on at once. Any number waits for answers beside them.",
)
TOOLHUB_SYNC_WAIT_S = _number(
    "TOOLHUB_SYNC_WAIT_S",
    50,
    least=1,
    unit="seconds",
    roles=(WEB,),
    about="The longest wait of a caller for the end of its call; common clients give up at 60 seconds.",
)
TOOLHUB_QUEUE_WAIT_S = _number(
    "TOOLHUB_QUEUE_WAIT_S",
    20,
    least=1,
    unit="seconds",
    roles=(WEB, UPKEEP),
    about="A call that somebody waits for and that no worker started for so long is timed out.",
)
TOOLHUB_ASYNC_QUEUE_WAIT_S = _number(
    "TOOLHUB_ASYNC_QUEUE_WAIT_S",
    3600,
    least=1,
    unit="seconds",
    roles=(WEB, UPKEEP),
    about="The same for a call that nobody waits for.",
)
TOOLHUB_SEGMENT_S = _number(
    "TOOLHUB_SEGMENT_S",
    10,
    least=1,
    unit="seconds",
    roles=(WORKER,),
    about="How often what a long run says becomes evidence.",
)
TOOLHUB_STREAMS_PER_AGENT = _number(
    "TOOLHUB_STREAMS_PER_AGENT",
    20,
    least=1,
    roles=(WEB,),
    about="Event streams of one agent in each web process, at most; and as many more that listen for changes of its list of tools.",
)
TOOLHUB_MODEL_STREAMS_PER_AGENT = _number(
    "TOOLHUB_MODEL_STREAMS_PER_AGENT",
    200,
    least=1,
    roles=(WEB,),
    about="Streamed answers of models that one agent has on their way in each web process, at most.",
)
TOOLHUB_HOLD_S = _number(
    "TOOLHUB_HOLD_S",
    24 * 60 * 60,
    least=1,
    unit="seconds",
    about="A call that waits so long for a person has expired.",
)
TOOLHUB_LEASE_S = _number(
    "TOOLHUB_LEASE_S",
    15,
    least=1,
    unit="seconds",
    about="A worker that has not renewed its lease for so long is lost, and its calls are ended or given to another.",
)
TOOLHUB_SWEEP_INTERVAL_S = _number(
    "TOOLHUB_SWEEP_INTERVAL_S",
    1,
    least=1,
    unit="seconds",
    roles=(WORKER, UPKEEP),
    about="The pause between two passes of the sweeper.",
)
TOOLHUB_RATE_FAILED_KEYS = _number(
    "TOOLHUB_RATE_FAILED_KEYS",
    120,
    unit="a minute",
    roles=(WEB,),
    about="Requests of one address without a valid key before the answer is 429. 0: any number.",
)
TOOLHUB_RATE_REFUSED_CALLS = _number(
    "TOOLHUB_RATE_REFUSED_CALLS",
    120,
    unit="a minute",
    roles=(WEB,),
    about="Refused calls of one agent before the answer is 429. 0: any number.",
)
TOOLHUB_RATE_REGISTRATIONS = _number(
    "TOOLHUB_RATE_REGISTRATIONS",
    10,
    unit="an hour",
    roles=(WEB,),
    about="Programs of one address that register themselves before the answer is 429. 0: any number.",
)
TOOLHUB_LOG_FORMAT = VARIABLES.choice(
    "TOOLHUB_LOG_FORMAT",
    "line",
    of=("line", "json"),
    example="json",
    about="json: each line of the log is an object with time, level, logger, message, request_id, call_id, tenant and trace_id.",
)
TOOLHUB_LOG_LEVEL = VARIABLES.choice(
    "TOOLHUB_LOG_LEVEL",
    "",
    of=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    shown="INFO for the hub's own loggers, WARNING for everything else",
    example="INFO",
    about="The least level that is logged; a value set applies to the hub's own loggers and to everything else.",
)

_group("For docker compose only: it does not start without these, TOOLHUB_SECRET_KEY and TOOLHUB_HUB_ROLE_PASSWORD")
VARIABLES.elsewhere(
    "POSTGRES_PASSWORD", by="docker compose", about="Of the role toolhub, which owns the database and its tables."
)
VARIABLES.elsewhere("REDIS_PASSWORD", by="docker compose", about="Of the broker.")
VARIABLES.elsewhere(
    "DOCKER_GID", by="docker compose", about="The group of the engine's socket: stat -c %g /var/run/docker.sock"
)

_group("Read by others than the hub's settings")
VARIABLES.elsewhere(
    NAMED,
    by="whatever starts",
    about="In the environment only: another file than .env; empty: none.",
)
VARIABLES.elsewhere(
    "TOOLHUB_URL", by="unitools", about="Where the hub is that `unitools push` and the client of a hub speak to."
)
VARIABLES.elsewhere("TOOLHUB_API_KEY", by="unitools", about="The key that they send.")
VARIABLES.elsewhere(
    "TOOLHUB_FAULTS",
    by="tests",
    about="Points at which a process ends itself or stands still (kernel/fault_injection.py). Leave it unset.",
)
VARIABLES.elsewhere("DOCKER_HOST", by="the library for Docker", about="The engine, when TOOLHUB_DOCKER_URL is empty.")
VARIABLES.elsewhere(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    by="OpenTelemetry",
    about="Where spans go; without it they go nowhere.",
)
