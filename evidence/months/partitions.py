"""Partitions of facts: a table for each month on PostgreSQL, and how another one is added.

``evidence_fact`` is divided by the time in its ids (UUIDv7), so its primary key stays what it was. The first part has all ids below
the first month and the last one all after the last month: whatever a clock says, a fact finds a place. The last part is cut at its
lower end before its time comes. That is what :data:`ADD` does, a function that belongs to the owner of the tables and that the hub's
role may call: it takes no arguments and can do nothing else. It also writes what a part does not get from the whole: that nobody
truncates it, that row level security shows nothing of it by itself, and that a call has one Begin and one End in it.
:mod:`invocations.evidence_pairs.constraints` asks at COMMIT whether another part has a second one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from django.db import OperationalError, transaction
from psycopg import errors

from evidence.kinds import PAIR
from kernel.ids import lowest_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

T = TypeVar("T")
TABLE, FIRST, LAST = "evidence_fact", "evidence_fact_before", "evidence_fact_later"
BOUND = f"{FIRST}_bound"  # holds the whole to what its first part will hold, for as long as it is being divided
ADD, ANALYZE = "toolhub_add_fact_months", "toolhub_analyze_facts"
PAIR_INDEX = "fact_one_begin_one_end"
AHEAD = 3  # months that have their table before they begin
ROOM = timedelta(days=14)  # for a migration that was cut short, before the first part takes no more
# With those who use facts, before tables change: as long everybody waits who comes after. Longer than PostgreSQL takes to call off
# a vacuum of its own, which is a second.
PATIENCE_MS = 1_500
TRIES, REST_S = 60, 2.0
_LOCK = 0x6D6F6E746873  # one process at a time

_OF_PAIR = ", ".join(f"'{kind}'" for kind in PAIR)
# A month of a moment and the lowest id of one, in SQL. Months are those of UTC, whatever the session says.
_MONTH = "date_trunc('month', {0} AT TIME ZONE 'UTC')"
_LOWEST = "(lpad(to_hex((extract(epoch FROM {0}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid"
_TIME = "to_timestamp(('x' || left(replace({0}::text, '-', ''), 12))::bit(48)::bigint / 1000.0)"
_NOW = _MONTH.format("clock_timestamp()")
_BOUND = "pg_get_expr(c.relpartbound, c.oid)"
_LOWER = _TIME.format(f"substring({_BOUND} FROM 'FROM ..([0-9a-f-]{{36}})')") + " AT TIME ZONE 'UTC'"
_UPPER = _TIME.format(f"substring({_BOUND} FROM 'TO ..([0-9a-f-]{{36}})')") + " AT TIME ZONE 'UTC'"
_AS_THE_WHOLE = "INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE INCLUDING COMPRESSION"

# `begins` and `ends` are moments of UTC without a zone. A part that has ids from beyond its month, since a clock went ahead or nobody
# came for long, is made as long as it has to be: nothing is moved.
_ADD = f"""
    CREATE OR REPLACE FUNCTION {ADD}() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $body$
    DECLARE
        newest uuid;
        begins timestamp;
        ends timestamp;
        month text;
        added integer := 0;
    BEGIN
        IF current_setting('lock_timeout') = '0' THEN PERFORM set_config('lock_timeout', '{PATIENCE_MS}ms', true); END IF;
        PERFORM pg_advisory_xact_lock({_LOCK});
        LOOP
            SELECT {_LOWER} INTO begins FROM pg_class c WHERE c.oid = to_regclass('public.{LAST}') AND c.relispartition;
            IF begins IS NULL THEN
                SELECT max({_UPPER}) INTO ends FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                    WHERE i.inhparent = 'public.{TABLE}'::regclass;
            ELSE
                EXIT WHEN begins >= {_NOW} + interval '{AHEAD} months';
                EXECUTE 'SELECT id FROM public.{LAST} ORDER BY id DESC LIMIT 1' INTO newest;
                ends := greatest(begins, {_MONTH.format(_TIME.format("newest"))}) + interval '1 month';
                month := '{TABLE}_' || to_char(begins, 'YYYY_MM');
                -- No vacuum of it is waited for while all of the facts are locked.
                LOCK TABLE public.{LAST} IN SHARE UPDATE EXCLUSIVE MODE;
                ALTER TABLE public.{TABLE} DETACH PARTITION public.{LAST};
                EXECUTE format('ALTER TABLE public.{LAST} RENAME TO %I', month);
                EXECUTE format('ALTER TABLE public.{TABLE} ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
                    month, {_LOWEST.format("begins")}, {_LOWEST.format("ends")});
                added := added + 1;
            END IF;
            CREATE TABLE public.{LAST} (LIKE public.{TABLE} {_AS_THE_WHOLE});
            EXECUTE format(
                $ddl$CREATE UNIQUE INDEX %I ON public.{LAST} (invocation_id, kind) WHERE kind IN ({_OF_PAIR})$ddl$,
                '{PAIR_INDEX}_' || to_char(ends, 'YYYY_MM'));
            CREATE TRIGGER toolhub_no_truncate BEFORE TRUNCATE ON public.{LAST}
                FOR EACH STATEMENT EXECUTE FUNCTION public.toolhub_refuse_change();
            ALTER TABLE public.{LAST} ENABLE ALWAYS TRIGGER toolhub_no_truncate;
            ALTER TABLE public.{LAST} ENABLE ROW LEVEL SECURITY;
            EXECUTE format('ALTER TABLE public.{TABLE} ATTACH PARTITION public.{LAST} FOR VALUES FROM (%L) TO (MAXVALUE)',
                {_LOWEST.format("ends")});
        END LOOP;
        RETURN added;
    END $body$"""  # noqa: S608  constants only
# PostgreSQL does that by itself for each part, but never for the whole. Apart from the other, which nobody passes meanwhile.
_ANALYZE = f"""
    CREATE OR REPLACE FUNCTION {ANALYZE}() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $body$ BEGIN ANALYZE public.{TABLE}; END $body$"""

_IS_DIVIDED = f"SELECT relkind = 'p' FROM pg_class WHERE oid = 'public.{TABLE}'::regclass"  # noqa: S608  a constant
_OWNER = f"SELECT relowner::regrole::text FROM pg_class WHERE oid = 'public.{TABLE}'::regclass"  # noqa: S608  a constant
_INDEXES = (
    "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), i.indisprimary FROM pg_index i "
    "WHERE i.indrelid = %s::regclass"
)
_ROW_TRIGGERS = "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal AND tgtype & 1 = 1"
# What a part has to have beside what PostgreSQL gives to each.
_FAULTS = f"""
    SELECT part.relname, lacks.what FROM pg_inherits i JOIN pg_class part ON part.oid = i.inhrelid CROSS JOIN LATERAL (
        SELECT 'row level security' AS what WHERE NOT part.relrowsecurity
        UNION ALL SELECT 'a policy that shows its rows' FROM pg_policy p WHERE p.polrelid = part.oid
        UNION ALL SELECT 'rights of ' || CASE a.grantee WHEN 0 THEN 'everybody' ELSE a.grantee::regrole::text END
            FROM (SELECT DISTINCT grantee FROM aclexplode(part.relacl)) a WHERE a.grantee <> part.relowner
        UNION ALL SELECT 'another owner' FROM pg_class whole WHERE whole.oid = i.inhparent AND whole.relowner <> part.relowner
        UNION ALL SELECT 'toolhub_no_truncate' WHERE NOT EXISTS (
            SELECT FROM pg_trigger t WHERE t.tgrelid = part.oid AND t.tgname = 'toolhub_no_truncate' AND t.tgenabled = 'A'
            AND t.tgtype & 32 = 32 AND t.tgfoid = 'public.toolhub_refuse_change'::regproc)
        UNION ALL SELECT t.tgname FROM pg_trigger t
            WHERE t.tgrelid = i.inhparent AND NOT t.tgisinternal AND t.tgtype & 1 = 1 AND NOT EXISTS (
            SELECT FROM pg_trigger o WHERE o.tgrelid = part.oid AND o.tgparentid = t.oid AND o.tgenabled = 'A')
        UNION ALL SELECT '{PAIR_INDEX}' WHERE NOT EXISTS (
            SELECT FROM pg_index x WHERE x.indrelid = part.oid AND x.indisunique AND x.indisvalid
            AND starts_with(x.indexrelid::regclass::text, '{PAIR_INDEX}'))
    ) lacks WHERE i.inhparent = 'public.{TABLE}'::regclass
    UNION ALL SELECT '{LAST}', 'the months to come' WHERE NOT EXISTS (
        SELECT FROM pg_class c WHERE c.oid = to_regclass('public.{LAST}') AND c.relispartition
        AND {_LOWER} > clock_timestamp() AT TIME ZONE 'UTC')
    ORDER BY 1, 2
"""  # noqa: S608  constants only
_PARTS = f"""
    SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'public.{TABLE}'::regclass ORDER BY 2
"""  # noqa: S608  constants only


class MonthsBusy(Exception):
    """Others use facts for so long that their tables stay as they are. ``refused_from``: from when on facts are refused until then."""

    def __init__(self, refused_from: datetime | None = None) -> None:
        super().__init__(
            "Somebody reads facts in one long transaction, so their tables cannot be changed and stay as they are. "
            "Run it again when that has ended: a backup, for one (pg_stat_activity has it)."
            + (f" Do so before {refused_from:%Y-%m-%d}: from then on facts are refused." if refused_from else "")
        )


def first_of_month(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def following_month(moment: datetime) -> datetime:
    return first_of_month(first_of_month(moment) + timedelta(days=31))


def _read_moment(id: UUID) -> datetime:
    return datetime.fromtimestamp((id.int >> 80) / 1000, UTC)


def is_divided(cursor: CursorWrapper) -> bool:
    cursor.execute(_IS_DIVIDED)
    return bool(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True)
class Month:
    """One part. ``bound``: as PostgreSQL says it. ``ends``: None of the last one."""

    table: str
    bound: str

    @property
    def ends(self) -> datetime | None:
        found = re.search(r"TO \('([0-9a-f-]{36})'\)", self.bound)
        return _read_moment(UUID(found[1])) if found else None

    @property
    def condition(self) -> str:
        """The same of ids, in SQL."""
        low, high = (re.search(rf"{word} \(('[0-9a-f-]{{36}}')\)", self.bound) for word in ("FROM", "TO"))
        return " AND ".join([*([f"id >= {low[1]}"] if low else []), *([f"id < {high[1]}"] if high else [])])


def list_months(cursor: CursorWrapper) -> list[Month]:
    cursor.execute(_PARTS)
    return [Month(*row) for row in cursor.fetchall()]


def measure_table(cursor: CursorWrapper, table: str) -> int:
    """Its bytes on the disk, with indexes."""
    cursor.execute("SELECT pg_total_relation_size(%s::regclass)", [f"public.{table}"])
    return int(cursor.fetchone()[0])


def try_often(connection: BaseDatabaseWrapper, change: Callable[[CursorWrapper], T]) -> T:
    """Change tables that others use: in a transaction, or a savepoint, of its own, which gives way to them again and again.

    Raises :class:`MonthsBusy` when they have them for minutes.
    """
    for _ in range(TRIES):
        try:
            with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = {PATIENCE_MS}")
                return change(cursor)
        except OperationalError as error:
            if not isinstance(error.__cause__, errors.LockNotAvailable | errors.DeadlockDetected):
                raise
        sleep(REST_S)
    raise MonthsBusy


def replace_month(
    connection: BaseDatabaseWrapper,
    month: Month,
    *,
    columns: str,
    rows: Callable[[str], str],
    compare: Callable[[CursorWrapper, str], None],
) -> None:
    """Put a table with other rows in the place of a month's, and drop that: in a transaction of the owner.

    All that takes long is done before, to a table that nobody knows. ``rows``: the query of those that a table of this name lacks.
    ``compare``: raises when the table of this name may not take the month's place, and is asked when nobody writes into that any more.
    """
    new = f"{month.table}_new"
    with connection.cursor() as cursor:
        cursor.execute(_OWNER)
        (owner,) = cursor.fetchone()
        for statement in (
            f"CREATE TABLE {new} (LIKE {TABLE} {_AS_THE_WHOLE} INCLUDING INDEXES, CONSTRAINT {new}_bound CHECK ({month.condition}))",
            f"ALTER TABLE {new} OWNER TO {owner}",  # who drops may be another, as a superuser
            f"INSERT INTO {new} ({columns}) {rows(new)}",
            f"CREATE UNIQUE INDEX {new}_pair ON {new} (invocation_id, kind) WHERE kind IN ({_OF_PAIR})",
            f"CREATE TRIGGER toolhub_no_truncate BEFORE TRUNCATE ON {new} "
            "FOR EACH STATEMENT EXECUTE FUNCTION toolhub_refuse_change()",
            f"ALTER TABLE {new} ENABLE ALWAYS TRIGGER toolhub_no_truncate",
            f"ALTER TABLE {new} ENABLE ROW LEVEL SECURITY",
            f"ANALYZE {new}",
        ):
            cursor.execute(statement)
    add_late_rows = f"INSERT INTO {new} ({columns}) {rows(new)}"
    try_often(connection, lambda cursor: _exchange(cursor, month, new, add_late_rows, compare))


def _exchange(
    cursor: CursorWrapper, month: Month, new: str, add_late_rows: str, compare: Callable[[CursorWrapper, str], None]
) -> None:
    """Late facts wait from the first statement on, everybody from DETACH on."""
    table = month.table
    cursor.execute(f"LOCK TABLE {table} IN SHARE MODE")
    cursor.execute(add_late_rows)
    cursor.execute(f"SELECT (SELECT count(*) FROM {table}) = (SELECT count(*) FROM {new})")  # noqa: S608
    if cursor.fetchone() != (True,):
        raise RuntimeError(f"{table} has other rows than what was to take its place.")
    compare(cursor, new)
    for statement in (
        f"ALTER TABLE {TABLE} DETACH PARTITION {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE {new} RENAME TO {table}",
        f"ALTER INDEX {new}_pair RENAME TO {PAIR_INDEX}{table.removeprefix(TABLE)}",
        f"ALTER TABLE {TABLE} ATTACH PARTITION {table} {month.bound}",
        f"ALTER TABLE {table} DROP CONSTRAINT {new}_bound",
    ):
        cursor.execute(statement)


def list_partition_faults(cursor: CursorWrapper) -> list[str]:
    """What a month lacks, or has and should not, each as ``table: what``."""
    if not is_divided(cursor):
        bound = _find_bound(cursor)
        return [f"{TABLE}: months{f', and it takes no fact from {_read_moment(bound):%Y-%m-%d} on' if bound else ''}"]
    cursor.execute(_FAULTS)
    return [f"{table}: {what}" for table, what in cursor.fetchall()]


def add_months(connection: BaseDatabaseWrapper) -> int:
    """Have tables for the months to come; returns how many were added."""
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = {PATIENCE_MS}")
        cursor.execute(f"SELECT {ADD}()")
        added = int(cursor.fetchone()[0])
    if added:
        transaction.on_commit(partial(_analyze_facts, connection), using=connection.alias)
    return added


def _analyze_facts(connection: BaseDatabaseWrapper) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {ANALYZE}()")


def bound_first_part(connection: BaseDatabaseWrapper) -> UUID:
    """The lowest id that is not of the first part, which is all that there is. The table is held to it, and looked through for it
    while calls go on. Facts behind it are refused until the table is divided, or :func:`free_first_part` has given up. A run that
    was killed left its bound behind: that is taken if there is time enough before it.
    """
    with connection.cursor() as cursor:
        bound = _find_bound(cursor)
        cursor.execute("SELECT clock_timestamp()")
        if bound is None or _read_moment(bound) < cursor.fetchone()[0] + ROOM:
            bound = _choose_bound(cursor)
            statement = (
                f"ALTER TABLE {TABLE} DROP CONSTRAINT IF EXISTS {BOUND}, "
                f"ADD CONSTRAINT {BOUND} CHECK (id < '{bound}') NOT VALID"
            )
            try_often(connection, lambda cursor: cursor.execute(statement))
        cursor.execute(f"ALTER TABLE {TABLE} VALIDATE CONSTRAINT {BOUND}")
    return bound


def free_first_part(connection: BaseDatabaseWrapper) -> None:
    """Take the bound away from a table that was not divided. Raises :class:`MonthsBusy`, which says until when that can wait."""
    with connection.cursor() as cursor:
        bound = _find_bound(cursor)
    if bound is None:
        return
    try:
        try_often(connection, lambda cursor: cursor.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {BOUND}"))
    except MonthsBusy as busy:
        raise MonthsBusy(_read_moment(bound)) from busy


def _find_bound(cursor: CursorWrapper) -> UUID | None:
    cursor.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s AND conrelid = %s::regclass",
        [BOUND, f"public.{TABLE}"],
    )
    found = cursor.fetchone()
    return UUID(found[0].split("'")[1]) if found else None


def _choose_bound(cursor: CursorWrapper) -> UUID:
    """Of an empty table this month's beginning. Otherwise that of a month to come, after the newest fact."""
    cursor.execute(f"SELECT id, clock_timestamp() FROM {TABLE} ORDER BY id DESC LIMIT 1")  # noqa: S608  a constant
    if (row := cursor.fetchone()) is None:
        cursor.execute("SELECT clock_timestamp()")
        return lowest_id(first_of_month(cursor.fetchone()[0]))
    return lowest_id(following_month(max(_read_moment(row[0]), row[1] + ROOM)))


def divide_facts(connection: BaseDatabaseWrapper, bound: UUID) -> None:
    """Make the table that there is the first part of one of the same name. Nothing is copied; what is put up after migrations
    (triggers of rows, policies, rights) has to be put up again in the same transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {TABLE} IN ACCESS EXCLUSIVE MODE")
        cursor.execute(_ROW_TRIGGERS, [TABLE])
        for (name,) in cursor.fetchall():  # each part gets those of the whole
            cursor.execute(f"DROP TRIGGER {name} ON {TABLE}")
        cursor.execute("SELECT polname FROM pg_policy WHERE polrelid = %s::regclass", [TABLE])
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP POLICY {name} ON {TABLE}")
        cursor.execute(_INDEXES, [TABLE])
        indexes = [each for each in cursor.fetchall() if each[0] != PAIR_INDEX]
        for name, _, _ in indexes:
            cursor.execute(f"ALTER INDEX {name} RENAME TO {name}_before")
        cursor.execute(f"ALTER TABLE {TABLE} RENAME TO {FIRST}")
        cursor.execute(f"ALTER TABLE {FIRST} ENABLE ROW LEVEL SECURITY")
        cursor.execute(f"CREATE TABLE {TABLE} (LIKE {FIRST} {_AS_THE_WHOLE}) PARTITION BY RANGE (id)")
        cursor.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT {BOUND}")
        for name, definition, primary in indexes:
            cursor.execute(f"ALTER TABLE {TABLE} ADD CONSTRAINT {name} PRIMARY KEY (id)" if primary else definition)
        cursor.execute(f"ALTER TABLE {TABLE} ATTACH PARTITION {FIRST} FOR VALUES FROM (MINVALUE) TO ('{bound}')")
        cursor.execute(f"ALTER TABLE {FIRST} DROP CONSTRAINT {BOUND}")


def install_month_functions(connection: BaseDatabaseWrapper) -> None:
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for create, name in ((_ADD, ADD), (_ANALYZE, ANALYZE)):
            cursor.execute(create)
            cursor.execute(f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC")
