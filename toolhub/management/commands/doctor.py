"""Doctor: what is wrong here, line by line."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import redis
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder

from evidence.append_only import triggers_for
from evidence.keys.keystore import get_keystore
from evidence.log.signer import get_signer, may_sign
from evidence.log.signing_keys import check_signing_keys
from evidence.log.state import log_state
from evidence.months.partitions import list_partition_faults
from invocations.evidence_pairs.constraints import TRIGGERS
from invocations.sandbox.base import SandboxUnavailable
from invocations.sandbox.engine import Engine, EngineError
from invocations.sandbox.factory import current_isolation_checks, current_sandbox, find_boxes
from invocations.sandbox.isolation.runtime_lines import NOTE, OK, WRONG, DoctorLine, describe_runtimes
from invocations.sandbox.remote.sandbox import RemoteSandbox
from invocations.unfinished_calls.lost_rows import find_lost_rows
from invocations.unfinished_calls.triggers import unfinished_call_triggers
from kernel.database.triggers import missing_triggers
from kernel.problems import Problem
from registry.dependencies import states, store
from registry.dependencies.target import folder_name
from sandbox.image import find_image
from toolhub.database.hub_role import may_alter_tables
from toolhub.database.migration_state import find_missing_migrations
from toolhub.database.row_level_security import describe_missing_policies
from toolhub.installation import check_that_keys_fit
from toolhub.startup import missing_keys
from toolhub.variables import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


# A process is what its connections are named after (TOOLHUB_DATABASE_URL's server may serve others as well).
ROOM = """
    SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - (SELECT count(*) FROM pg_stat_activity
               WHERE backend_type = 'client backend' AND application_name NOT LIKE 'toolhub %%'),
        (SELECT count(DISTINCT application_name) FROM pg_stat_activity
         WHERE application_name LIKE 'toolhub %%' AND application_name <> current_setting('application_name'))
"""


CONNECTED_WITHIN_S = 5
NOT_SET_UP = "This hub is not set up yet: type `.venv/bin/python manage.py init`."
NO_CONNECTION = (
    "{}. If the server does not know the role {} or the database, the hub is not set up yet: type `.venv/bin/python manage.py "
    "init` as the role that owns the tables (docs/how-to/run-the-production-shape.md). Otherwise look at TOOLHUB_DATABASE_URL."
)

LOOKED_AT = 100_000  # the newest calls: whether what the queue knows of them is there


class Remark(str):
    """What a check has to say when nothing is wrong, but somebody may want to do something."""

    __slots__ = ()


def environment() -> str:
    """A name that is mistyped would otherwise be a setting that somebody believes in."""
    if unknown := VARIABLES.unknown():
        return Remark(" ".join(unknown))
    return f"{sum(name in VARIABLES.environ for name in VARIABLES.rows)} settings are set, and all are known"


def no_tables() -> str:
    """Why nothing can be asked of the hub's tables, and what to do; empty: it can."""
    try:
        if connection.vendor == "postgresql":
            # Past the pool, which tries again for seconds each time and keeps the reason for its log.
            psycopg.connect(**connection.get_connection_params() | {"connect_timeout": CONNECTED_WITHIN_S}).close()
        if MigrationRecorder(connection).has_table():
            return ""
    except (DatabaseError, psycopg.Error) as error:
        if connection.vendor != "postgresql":
            return str(error)
        return NO_CONNECTION.format(" ".join(str(error).split()).rstrip("."), connection.settings_dict["USER"])
    return NOT_SET_UP


def database() -> str:
    if trouble := no_tables():
        raise LookupError(trouble)
    if missing := find_missing_migrations():
        raise LookupError(f"{len(missing)} migrations are not applied; type `.venv/bin/python manage.py migrate`.")
    if missing_triggers(connection, unfinished_call_triggers(connection.vendor)):
        raise LookupError(
            "Calls that wait are not found: triggers of the queue are missing; type `.venv/bin/python manage.py migrate`."
        )
    if lost := find_lost_rows(connection, newest=LOOKED_AT):
        raise LookupError(
            f"The queue knows {len(lost)} calls otherwise than they are; type `.venv/bin/python manage.py migrate`."
        )
    return f"{connection.vendor} answers, all migrations applied"


def walls() -> str:
    if connection.vendor != "postgresql":
        return "one wall between tenants, the filters of each query; row-level security needs PostgreSQL"
    if missing := describe_missing_policies(connection):
        raise LookupError(missing)
    return "row-level security binds every request to its tenant"


def evidence() -> str:
    """Whoever owns the tables may switch triggers off. That is nothing wrong on one host, where it owns all else as well."""
    postgresql = connection.vendor == "postgresql"
    wanted = [*triggers_for(connection.vendor), *(TRIGGERS if postgresql else [])]
    if missing := sorted({f"{each.name} on {each.table}" for each in missing_triggers(connection, wanted)}):
        raise LookupError(
            f"Not in force: {', '.join(missing)}. Find out who took that down and verify the log; "
            "`.venv/bin/python manage.py migrate` puts it up again."
        )
    if postgresql:
        with connection.cursor() as cursor:
            faults = list_partition_faults(cursor)
        if faults:
            raise LookupError(
                f"The tables of months lack: {', '.join(faults)}. `.venv/bin/python manage.py migrate` puts it up again."
            )
    said = "append-only" + (", each call with its Begin and its End" if postgresql else "")
    lifted_by = may_alter_tables(connection) if postgresql else ""
    return Remark(f"{said}; {lifted_by} (docs/how-to/run-the-production-shape.md)") if lifted_by else said


def pool() -> str:
    """Whether the server has room for what the hub's processes may open. Each connection bears its process's name."""
    if connection.vendor != "postgresql":
        return "one file, no server"
    most = settings.TOOLHUB_DATABASE_POOL
    with connection.cursor() as cursor:
        cursor.execute(ROOM)
        room, found = cursor.fetchone()
    processes = max(found, 1)  # without this one
    said = f"each process opens at most {most} (TOOLHUB_DATABASE_POOL), and the server takes {room} of the hub's"
    if most * processes > room:
        return Remark(
            f"{said}; {processes} processes are connected now, which want {most * processes} when all are busy. "
            "Raise max_connections or lower the pool (docs/how-to/run-the-production-shape.md)"
        )
    return f"{said}: enough for {room // most} processes, and {processes} are connected now"


def broker() -> str:
    if settings.TOOLHUB_EMBEDDED:
        return "in memory (embedded default)"
    if not settings.TOOLHUB_REDIS_URL:
        return "none: PostgreSQL wakes the workers, and calls are slower than with Redis (TOOLHUB_REDIS_URL)"
    redis.Redis.from_url(settings.TOOLHUB_REDIS_URL, socket_connect_timeout=2).ping()
    return "Redis answers"


def keys() -> str:
    if lost := missing_keys():
        raise LookupError(" ".join(f"{sentence} {remedy}" for sentence, remedy in lost))
    if no_tables():
        return "all files of keys are there; whether they fit is known when the database answers"
    if settings.TOOLHUB_KEYSTORE != "file" or settings.TOOLHUB_KEY_FILE.exists():
        check_that_keys_fit()
    key_id, wrapped = get_keystore().wrap(b"0" * 32, context=b"doctor")
    get_keystore().unwrap(key_id, wrapped, context=b"doctor")
    where = settings.TOOLHUB_KEY_FILE if settings.TOOLHUB_KEYSTORE == "file" else settings.TOOLHUB_KEYSTORE
    return f"key {key_id} in {where} works"


def sandbox() -> str:
    return current_sandbox().check()


def images() -> str:
    """Few tools need those beside the usual one, so it is nothing wrong when one is not there."""
    if settings.TOOLHUB_SANDBOX != "docker":
        return "none are used"
    if settings.TOOLHUB_SANDBOX_HOSTS:
        return "those of the sandbox hosts; where one lacks what a tool needs, its calls go to the next"
    named = settings.TOOLHUB_SANDBOX_IMAGES
    with closing(Engine(settings.TOOLHUB_DOCKER_URL or None)) as engine:
        try:
            missing = [name for name in sorted(named) if not engine.has_image(find_image(name, named))]
        except EngineError as error:
            raise SandboxUnavailable(str(error)) from error
    if missing:
        return Remark(f"not on this host: {', '.join(missing)}; tools that need one wait for `make sandbox-images`")
    return f"on this host: {', '.join(sorted(named))}"


def tools() -> str:
    missing = [str(root) for root in settings.TOOLHUB_TOOLS_PATH if not root.is_dir()]
    if missing:
        raise LookupError(f"TOOLHUB_TOOLS_PATH names {missing[0]}, which is not a folder.")
    return ", ".join(str(root) for root in settings.TOOLHUB_TOOLS_PATH)


def packages() -> str:
    """What tools need of others, as far as it is on this host. It is nothing wrong where no worker is."""
    used, here = states.list_needed_locks(), store.list_folders()
    missing = sum(folder_name(digest) not in here for digest in used)
    found = f"locks of tools in use: {len(used)}; not installed on this host: {missing}"
    remarks = []
    if missing:
        remarks.append(f"a worker here installs them into {store.store_root()}, and refuses their calls until then")
    if settings.TOOLHUB_WHEELHOUSE and not Path(settings.TOOLHUB_WHEELHOUSE).is_dir():
        remarks.append(
            f"a worker here gets none: TOOLHUB_WHEELHOUSE names {settings.TOOLHUB_WHEELHOUSE}, which is not a folder"
        )
    return Remark("; ".join([found, *remarks])) if remarks else found


def log() -> str:
    """Whether facts get into the log. The key is looked at where it is: with the keeper."""
    if may_sign() and get_signer().has_keys():
        check_signing_keys()
    state = log_state()
    if state.wrong and settings.TOOLHUB_EMBEDDED:
        return Remark(f"{state.wrong} That is so while the hub is not running.")
    if state.wrong:
        raise LookupError(f"{state.wrong} Is a keeper running (`manage.py keep`)? Its own log says what stops it.")
    if state.signed_at is None:
        return Remark("nothing was sealed yet: the first keeper (`manage.py keep`) makes its key and begins")
    return f"facts pending: {state.pending}; signed last at {state.signed_at:%H:%M:%S} UTC"


CHECKS: tuple[Callable[[], str], ...] = (
    environment,
    database,
    pool,
    walls,
    evidence,
    broker,
    keys,
    tools,
    packages,
    log,
    sandbox,
    images,
)
OF_TABLES = frozenset({pool, walls, evidence, packages, log})
OF_WORKERS = frozenset({packages, sandbox, images})
# What is nothing to a process of a role. Without a role all is looked at: one host may do everything.
NOT_OF: dict[str, frozenset[Callable[[], str]]] = {
    "web": OF_WORKERS,
    "worker": frozenset(),
    "upkeep": OF_WORKERS | {tools},
    "keeper": OF_WORKERS | {tools},
}


def cannot_be_asked() -> frozenset[Callable[[], str]]:
    """What would say once more what `database` says. Key files that are lost are lost without it, but not before `init` makes them."""
    if trouble := no_tables():
        return OF_TABLES | {keys} if trouble == NOT_SET_UP else OF_TABLES
    return frozenset()


def list_wall_lines(*, every: bool) -> Iterable[DoctorLine]:
    """Of the engine beside this process, or as the sandbox hosts see theirs."""
    boxes = find_boxes()
    if isinstance(boxes, RemoteSandbox):
        return boxes.list_check_lines(every=every)
    return describe_runtimes(current_isolation_checks(), settings.TOOLHUB_SANDBOX_RUNTIMES, every=every)


class Command(BaseCommand):
    requires_system_checks = []  # it says itself what they would stop at
    help = "Report line by line what works and what does not. Exits with 2 if something does not."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--sandbox", action="store_true", help="check every isolation layer of a box again, one line each"
        )

        parser.add_argument(
            "--role", choices=sorted(NOT_OF), help="what this host runs; everything is checked if omitted"
        )

    def handle(self, *args: Any, sandbox: bool = False, role: str = "", **options: Any) -> None:
        good, answering = True, set()
        left_out = NOT_OF.get(role, frozenset()) | cannot_be_asked()
        for check in CHECKS:
            if check in left_out:
                continue
            try:
                said = check()
                mark = NOTE if isinstance(said, Remark) else OK
                answering.add(check.__name__)
            except (DatabaseError, redis.RedisError, Problem, SandboxUnavailable, LookupError, OSError) as error:
                said, mark, good = str(error).strip(), WRONG, False
            self.stdout.write(f"{mark:5}  {check.__name__:9} {said}")
        if "sandbox" in answering and settings.TOOLHUB_SANDBOX == "docker":
            for line in list_wall_lines(every=sandbox):
                self.stdout.write(f"{line.mark:5}  {line.about:9} {line.said}")
                good &= line.mark != WRONG
        if settings.TOOLHUB_EMBEDDED:
            self.stdout.write("note   embedded default: one process, SQLite. Several hosts need PostgreSQL and Redis.")
        if not good:
            sys.exit(2)
