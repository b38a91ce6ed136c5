"""Hub role: whose the tables are, and what the processes of the hub may do with them.

Where one role owns the tables and another is connected as, nobody who takes over a web process or a worker can switch off what
keeps evidence as it is. The members of ``toolhub_hub`` see every tenant's rows, as background work must, and alter no table.
Whoever owns the tables runs `migrate` and nothing else. `manage.py doctor` says which it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from psycopg import sql

from evidence.append_only import CHANGED_BY_KEEPER, READ_AND_ADDED, READ_ONLY
from evidence.months.partitions import ADD, ANALYZE, is_divided, list_months
from kernel.database.postgresql.base import ROLE
from toolhub.database.row_level_security import list_tables

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

HUB_ROLE = "toolhub_hub"
_MAKE = f"""
    DO $$ BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{HUB_ROLE}') THEN CREATE ROLE {HUB_ROLE} NOLOGIN; END IF;
        IF NOT pg_has_role('{HUB_ROLE}', '{ROLE}', 'MEMBER') THEN GRANT {ROLE} TO {HUB_ROLE}; END IF;
    EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
        RAISE NOTICE 'The role {HUB_ROLE} cannot be made here.';
    END $$"""
_OPEN = (
    "SELECT c.relname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid "
    "WHERE p.polname = %s AND c.relnamespace = 'public'::regnamespace"
)
_MAY = (
    "SELECT session_user::text, r.rolsuper, pg_has_role(session_user, c.relowner, 'MEMBER') FROM pg_class c, pg_roles r "
    "WHERE c.oid = 'evidence_fact'::regclass AND r.rolname = session_user"
)


def grant_rights(connection: BaseDatabaseWrapper) -> None:
    """Who may do what with the tables: requests, and the processes of the hub where they do not own them."""
    with connection.cursor() as cursor, transaction.atomic(using=connection.alias):
        cursor.execute(_MAKE)
        cursor.execute("SELECT count(*) FROM pg_roles WHERE rolname = %s", [HUB_ROLE])
        roles = f"{ROLE}, {HUB_ROLE}" if cursor.fetchone() == (1,) else ROLE
        # Everybody's until PostgreSQL 15: what somebody makes there others may call for something of ours. Where the schema is not the
        # owner's to give, nothing is taken.
        cursor.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        cursor.execute(f"GRANT USAGE ON SCHEMA public TO {roles}")
        cursor.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {roles}")
        cursor.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {roles}")
        # A member of the hub's role has what requests may as well, so of these tables only the owner has all rights.
        cursor.execute(f"REVOKE UPDATE, DELETE, TRUNCATE ON {', '.join(READ_AND_ADDED)} FROM {roles}")
        cursor.execute(f"REVOKE INSERT ON {', '.join(READ_ONLY)} FROM {ROLE}")
        if is_divided(cursor):  # a month by itself has no policy, and is for nobody
            cursor.execute(f"REVOKE ALL ON {', '.join(month.table for month in list_months(cursor))} FROM {roles}")
        if roles == ROLE:
            return
        cursor.execute(f"GRANT EXECUTE ON FUNCTION {ADD}, {ANALYZE} TO {HUB_ROLE}")
        for table, rights in CHANGED_BY_KEEPER.items():
            cursor.execute(f"GRANT {rights} ON {table} TO {HUB_ROLE}")
        cursor.execute(_OPEN, [HUB_ROLE])
        for table in sorted(list_tables().keys() - {name for (name,) in cursor.fetchall()}):
            cursor.execute(f"CREATE POLICY {HUB_ROLE} ON {table} TO {HUB_ROLE} USING (true) WITH CHECK (true)")


def may_alter_tables(connection: BaseDatabaseWrapper) -> str:
    """In a sentence: why who is connected could take down what keeps evidence as it is. Empty when it could not."""
    with connection.cursor() as cursor:
        cursor.execute(_MAY)
        user, superuser, owner = cursor.fetchone()
    if superuser:
        return f"{user} is a superuser of PostgreSQL and could switch off what keeps evidence append-only"
    return f"{user} owns the tables and could switch off what keeps evidence append-only" if owner else ""


def let_hub_log_in(connection: BaseDatabaseWrapper, password: str) -> None:
    """Give the hub's role a password. The server is told its hash only, so that no log of statements holds it."""
    hashed = connection.connection.pgconn.encrypt_password(
        password.encode(), HUB_ROLE.encode(), b"scram-sha-256"
    ).decode()
    statement = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(HUB_ROLE), sql.Literal(hashed))
    with connection.cursor() as cursor:
        cursor.execute(statement.as_string(cursor.connection))
