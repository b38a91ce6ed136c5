"""How does PostgreSQL keep tenants apart by itself?

After each migration, every table that leads to a tenant gets a row level security policy, made from the models: a table with
a tenant is held against it, a table without one against the row that it belongs to. The role that requests run as owns no
table, so the policies bind it; the owner (migrations, background work) sees all.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models

from toolhub.kernel.postgresql.base import ROLE, SETTING

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.backends.utils import CursorWrapper

POLICY = "toolhub_tenant"
OURS = ("evidence", "access", "registry", "invocations")
ME = f"NULLIF(current_setting('{SETTING}', true), '')::uuid"

# What more than one tenant may see. `{table}` is the table itself; the rest is read under the policies of its own tables.
_INSTALLED = f"SELECT tool_id FROM registry_installation WHERE tenant_id = {ME}"  # noqa: S608  constants only
_INSTALLED_VERSIONS = f"SELECT version_id FROM registry_installation WHERE tenant_id = {ME}"  # noqa: S608
_PUBLISHERS = f"SELECT t.tenant_id FROM registry_tool t WHERE t.id IN ({_INSTALLED})"  # noqa: S608
SEEN_BY_OTHERS = {
    # A tenant knows of itself; whom a person belongs to is asked before a tenant is chosen.
    "access_tenant": f"id = {ME}",
    # What binds the whole hub binds every tenant.
    "access_policyversion": f"tenant_id = {ME} OR tenant_id IS NULL",
    # A kill switch of a tool or a version reaches whoever has installed a tool of who threw it.
    "access_halt": f"tenant_id = {ME} OR tenant_id IS NULL OR reach IN ('tool', 'version') AND tenant_id IN ({_PUBLISHERS})",
    # A shared tool can be found by all, and one that was installed stays what it was.
    "registry_tool": f"tenant_id = {ME} OR shared OR id IN ({_INSTALLED})",
    # Of a foreign tool: what was approved, and what is installed here whatever became of it.
    "registry_toolversion": (
        "EXISTS (SELECT FROM registry_tool o WHERE o.id = registry_toolversion.tool_id "
        f"AND (o.tenant_id = {ME} OR registry_toolversion.review_state = 'approved')) "
        f"OR id IN ({_INSTALLED_VERSIONS})"
    ),
}
SOMEBODY = f"{ME} IS NOT NULL"  # nobody sees what everybody sees either
# The hub's own rows are written by the hub only, and a foreign tool is only read. What belongs to a row that others see
# stands here as well: seeing the parent must not suffice for writing.
WRITTEN_BY_OWNER = {
    "access_policyversion": f"tenant_id = {ME}",
    "access_halt": f"tenant_id = {ME}",
    "registry_tool": f"tenant_id = {ME}",
    "registry_toolversion": (
        f"EXISTS (SELECT FROM registry_tool o WHERE o.id = registry_toolversion.tool_id AND o.tenant_id = {ME})"
    ),
    "registry_review": (
        "EXISTS (SELECT FROM registry_toolversion v JOIN registry_tool o ON o.id = v.tool_id "
        f"WHERE v.id = registry_review.version_id AND o.tenant_id = {ME})"
    ),
}


def tables() -> dict[str, type[models.Model]]:
    """Every table of ours by name."""
    return {model._meta.db_table: model for name in OURS for model in apps.get_app_config(name).get_models()}


def condition_of(model: type[models.Model]) -> str:
    """The SQL condition under which a row is the tenant's. Raises for a table that leads to no tenant."""
    table = model._meta.db_table
    if table in SEEN_BY_OTHERS:
        return f"{SOMEBODY} AND ({SEEN_BY_OTHERS[table]})"
    columns = {field.column: field for field in model._meta.concrete_fields}
    if "tenant_id" in columns:
        return f"tenant_id = {ME}"
    for column, field in columns.items():
        parent: Any = field.related_model
        if isinstance(field, models.ForeignKey) and not field.null and parent._meta.db_table in tables():
            owner = parent._meta.db_table
            return f"EXISTS (SELECT FROM {owner} o WHERE o.{parent._meta.pk.column} = {table}.{column})"
    raise LookupError(f"{table} has no tenant and belongs to nothing that has one.")


def statements(model: type[models.Model]) -> list[str]:
    """What puts up the wall around a table. The last one notes what was put up."""
    table = model._meta.db_table
    written, seen = _conditions(model)
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS {POLICY} ON {table}",
        f"DROP POLICY IF EXISTS {POLICY}_read ON {table}",
        f"CREATE POLICY {POLICY} ON {table} TO {ROLE} USING ({written}) WITH CHECK ({written})",
        *([f"CREATE POLICY {POLICY}_read ON {table} FOR SELECT TO {ROLE} USING ({seen})"] if written != seen else []),
        f"COMMENT ON POLICY {POLICY} ON {table} IS '{_note(written, seen)}'",
    ]


def _conditions(model: type[models.Model]) -> tuple[str, str]:
    """Which rows may be written, and which seen."""
    seen = condition_of(model)
    return WRITTEN_BY_OWNER.get(model._meta.db_table, seen), seen


def _note(written: str, seen: str) -> str:
    return hashlib.sha256(f"{written}\n{seen}".encode()).hexdigest()


def tables_without(cursor: CursorWrapper) -> list[str]:
    """Our tables that have no wall, or one of another version of this module."""
    cursor.execute(
        "SELECT c.relname, obj_description(p.oid, 'pg_policy') FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid "
        "WHERE p.polname = %s AND c.relrowsecurity AND c.relnamespace = 'public'::regnamespace",
        [POLICY],
    )
    there = dict(cursor.fetchall())
    return [name for name, model in sorted(tables().items()) if there.get(name) != _note(*_conditions(model))]


def _make_role() -> str:
    """Without the right to make roles the walls stay down; `doctor` says which statement a superuser must run."""
    return f"""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN CREATE ROLE {ROLE} NOLOGIN; END IF;
            IF NOT pg_has_role(session_user, '{ROLE}', 'MEMBER') THEN EXECUTE format('GRANT {ROLE} TO %I', session_user); END IF;
        EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
            RAISE NOTICE 'The role {ROLE} cannot be made or taken here.';
        END $$"""


def raise_walls(connection: BaseDatabaseWrapper) -> bool:
    """Make the role, its rights and the policies. False when the role cannot be had; then nothing was changed."""
    with connection.cursor() as cursor:
        cursor.execute(_make_role())
        connection.look_for_walls()  # type: ignore[attr-defined]
        if not connection.walls:  # type: ignore[attr-defined]
            return False
        cursor.execute(f"GRANT USAGE ON SCHEMA public TO {ROLE}")
        cursor.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE}")
        cursor.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {ROLE}")
        for name in tables_without(cursor):
            for statement in statements(tables()[name]):
                cursor.execute(statement)
    return True


def what_is_missing(connection: BaseDatabaseWrapper) -> str:
    """In sentences: why the walls are down and what puts them up. Empty when they stand."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT session_user::text")
        (user,) = cursor.fetchone()
        cursor.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = %s", [ROLE])
        role = cursor.fetchone()
        connection.look_for_walls()  # type: ignore[attr-defined]
        if not connection.walls:  # type: ignore[attr-defined]
            make = "" if role else f"CREATE ROLE {ROLE} NOLOGIN; "
            return (
                f"{user} cannot act as the role {ROLE}, so row level security binds nobody. As a superuser of PostgreSQL: "
                f'{make}GRANT {ROLE} TO "{user}"; then type `.venv/bin/python manage.py migrate`.'
            )
        if role[0]:
            return f"Row level security does not bind the role {ROLE}. As a superuser: ALTER ROLE {ROLE} NOSUPERUSER NOBYPASSRLS;"
        bare = tables_without(cursor)
    if bare:
        return f"Without the row level security that this version needs: {', '.join(bare)}. Type `.venv/bin/python manage.py migrate`."
    return ""
