"""Row-level security: how PostgreSQL keeps tenants apart by itself.

After each migration, every table that leads to a tenant gets a row level security policy, made from the models: a table with
a tenant is held against it, a table without one against the row that it belongs to. What is written may refer only to rows
that its tenant sees: foreign keys alone are checked past all policies. The role that requests run as owns no table, so the
policies bind it; the owner (migrations, background work) sees all.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connection, models, transaction

from kernel.database.postgresql.base import ROLE, SETTING

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
    # Whoever has installed a version gets its code, and is told whose signature it has.
    "registry_capsule": (
        f"tenant_id = {ME} OR EXISTS (SELECT FROM registry_toolversion v "
        f"WHERE v.capsule_id = registry_capsule.id AND v.id IN ({_INSTALLED_VERSIONS}))"
    ),
    "registry_publisherkey": (
        f"tenant_id = {ME} OR EXISTS (SELECT FROM registry_capsule c WHERE c.signed_by_id = registry_publisherkey.id)"
    ),
    # What the hosts of sandboxes have; the page shows a tenant its own boxes only.
    "invocations_sandboxhost": "true",
    # What goes wrong in the hub itself: a number, a place in our code and a class.
    "invocations_unmapped": "true",
    # Of people, not of tenants: read and written for who is signed in, hub-wide.
    "access_displaysettings": "false",
    # Public halves of the keys that logs are signed with.
    "evidence_logkey": "true",
    # By what master keys are recognised: of the hub, and nothing can be made from it.
    "evidence_masterkey": "true",
    # Who outside keeps the hub's checkpoints, and what became of asking them.
    "evidence_anchor": "true",
}
SOMEBODY = f"{ME} IS NOT NULL"  # nobody sees what everybody sees either
# The hub's own rows are written by the hub only, and a foreign tool is only read. What belongs to a row that others see
# stands here as well: seeing the parent must not suffice for writing.
WRITTEN_BY_OWNER = {
    "access_policyversion": f"tenant_id = {ME}",
    "access_halt": f"tenant_id = {ME}",
    "registry_tool": f"tenant_id = {ME}",
    "registry_capsule": f"tenant_id = {ME}",
    "registry_publisherkey": f"tenant_id = {ME}",
    "registry_toolversion": (
        f"EXISTS (SELECT FROM registry_tool o WHERE o.id = registry_toolversion.tool_id AND o.tenant_id = {ME})"
    ),
    **{
        table: (
            "EXISTS (SELECT FROM registry_toolversion v JOIN registry_tool o ON o.id = v.tool_id "
            f"WHERE v.id = {table}.version_id AND o.tenant_id = {ME})"
        )
        for table in ("registry_review", "registry_dependencies")
    },
    # The database itself keeps them after the calls, which are within the wall.
    "invocations_unfinishedcall": "false",
    "invocations_sandboxhost": "false",
    "invocations_unmapped": "false",
    "evidence_masterkey": "false",
    # The keeper alone seals, and shows others what is sealed.
    "evidence_anchor": "false",
    **dict.fromkeys(
        (
            "evidence_indexed",
            "evidence_indexblock",
            "evidence_posting",
            "evidence_postingbucket",
            "evidence_log",
            "evidence_logkey",
            "evidence_seal",
            "evidence_tile",
            "evidence_checkpoint",
        ),
        "false",
    ),
}
# Of what others may see too, a row refers to no more than fits its own tool. Columns of the row are in braces.
_OF_THE_TOOL = "EXISTS (SELECT FROM registry_toolversion o WHERE o.id = {version} AND o.tool_id = {tool})"
FITS_ITS_TOOL = {
    ("registry_installation", "version_id"): _OF_THE_TOOL.format(version="{version_id}", tool="{tool_id}"),
    ("registry_tool", "current_id"): _OF_THE_TOOL.format(version="{current_id}", tool="{id}"),
    ("registry_toolversion", "base_id"): _OF_THE_TOOL.format(version="{base_id}", tool="{tool_id}"),
    ("registry_toolversion", "capsule_id"): (
        "EXISTS (SELECT FROM registry_capsule o JOIN registry_tool t ON t.tenant_id = o.tenant_id "
        "WHERE o.id = {capsule_id} AND t.id = {tool_id})"
    ),
    ("registry_capsule", "signed_by_id"): (
        "EXISTS (SELECT FROM registry_publisherkey o WHERE o.id = {signed_by_id} AND o.tenant_id = {tenant_id})"
    ),
    ("invocations_invocation", "version_id"): (
        "EXISTS (SELECT FROM registry_installation i JOIN registry_toolversion o ON o.tool_id = i.tool_id "
        "WHERE i.id = {installation_id} AND o.id = {version_id})"
    ),
}
# Of a table that each call writes: what is asked at once before it is asked one by one, and for which columns.
AT_ONCE = {
    "invocations_invocation": (
        ("version_id", "installation_id"),
        "EXISTS (SELECT FROM registry_installation i WHERE i.id = {installation_id} AND i.version_id = {version_id})",
    ),
}
# Written for each call, and not asked about: each question would cost it some 20 µs.
NOT_ASKED = {
    ("evidence_pending", "fact_id"): "evidence.services.record() names the fact that it has just written",
    ("evidence_seal", "fact_id"): "no tenant writes seals",
    (
        "access_reservation",
        "window_id",
    ): "access.budgets.ledger names the window that it has just updated, within its wall",
    (
        "invocations_invocation",
        "agent_id",
    ): "who calls is who was authenticated, and is looked up within the tenant only",
    ("invocations_invocation", "grant_id"): "what a call rests on is looked up again within the tenant before it runs",
}


def list_tables() -> dict[str, type[models.Model]]:
    """Every table of ours by name."""
    return {model._meta.db_table: model for name in OURS for model in apps.get_app_config(name).get_models()}


def build_tenant_condition(model: type[models.Model]) -> str:
    """The SQL condition under which a row is the tenant's. Raises for a table that leads to no tenant."""
    table = model._meta.db_table
    if table in SEEN_BY_OTHERS:
        return f"{SOMEBODY} AND ({SEEN_BY_OTHERS[table]})"
    if "tenant_id" in {field.column for field in model._meta.concrete_fields}:
        return f"tenant_id = {ME}"
    field = _owner(model)
    if field is None:
        raise LookupError(f"{table} has no tenant and belongs to nothing that has one.")
    return _seen(field, f"{table}.{field.column}")


def _owner(model: type[models.Model]) -> models.ForeignKey[Any] | None:
    """What a row without a tenant of its own belongs to."""
    if "tenant_id" in {field.column for field in model._meta.concrete_fields}:
        return None
    return next((each for each in _leading(model) if not each.null), None)


def _leading(model: type[models.Model]) -> list[models.ForeignKey[Any]]:
    """The columns that lead to rows of tenants."""
    found = []
    for field in model._meta.concrete_fields:
        parent: Any = field.related_model
        if isinstance(field, models.ForeignKey) and parent._meta.db_table in list_tables().keys() - {"access_tenant"}:
            found.append(field)
    return found


def _seen(field: models.ForeignKey[Any], column: str) -> str:
    """The condition under which the tenant sees what the column refers to."""
    parent: Any = field.related_model
    return f"EXISTS (SELECT FROM {parent._meta.db_table} o WHERE o.{parent._meta.pk.column} = {column})"


def build_reference_conditions(model: type[models.Model]) -> dict[str, str]:
    """By column: the condition under which a row may refer to that, beside the one that makes the row the tenant's."""
    table = model._meta.db_table
    return {
        field.column: FITS_ITS_TOOL.get((table, field.column)) or _seen(field, f"{{{field.column}}}")
        for field in _leading(model)
        if field != _owner(model) and (table, field.column) not in NOT_ASKED
    }


def _function(model: type[models.Model]) -> tuple[str, str]:
    """The function that holds a row's references against what its tenant sees, and how it is called. Empty without any.

    A function, since its plans are made once a connection: within the policy they would be made with every statement. It runs
    as the role that calls it, so what it reads is read under the policies of its tables. What a row refers to already, it may
    go on to: a call stays one of a tool that is shared no more. Nothing is left to AND and OR, for which PostgreSQL would plan
    anew with each value.
    """
    table, conditions = model._meta.db_table, build_reference_conditions(model)
    if not conditions:
        return "", ""
    asked = {
        column: f"IF {{{column}}} IS NOT NULL THEN IF NOT {condition} THEN "
        f"IF NOT EXISTS (SELECT FROM {table} o WHERE o.id = {{id}} AND o.{column} = {{{column}}}) THEN "
        "RETURN false; END IF; END IF; END IF;"
        for column, condition in conditions.items()
    }
    at_once, together = AT_ONCE.get(table, ((), ""))
    body = " ".join(asked[column] for column in asked if column not in at_once)
    if at_once:
        body += f" IF {together} THEN RETURN true; END IF; {' '.join(asked[column] for column in at_once)}"
    columns = {str(each.column): str(each.db_type(connection)) for each in model._meta.concrete_fields}
    named = [column for column in columns if f"{{{column}}}" in body]
    for at, column in enumerate(named, 1):
        body = body.replace(f"{{{column}}}", f"${at}")
    name, types = f"toolhub_refers_home_{table}", ", ".join(columns[each] for each in named)
    return (
        f"CREATE FUNCTION {name}({types}) RETURNS boolean LANGUAGE plpgsql STABLE "
        f"AS $body$ BEGIN {body} RETURN true; END $body$",
        f"{name}({', '.join(named)})",
    )


def build_policy_statements(model: type[models.Model]) -> list[str]:
    """What puts up the wall around a table. The last one notes what was put up."""
    table = model._meta.db_table
    written, seen = _conditions(model)
    function, call = _function(model)
    checked = f"({written}) AND {call}" if call else written
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS {POLICY} ON {table}",
        f"DROP POLICY IF EXISTS {POLICY}_read ON {table}",
        f"DROP FUNCTION IF EXISTS toolhub_refers_home_{table}",
        *([function] if function else []),
        f"CREATE POLICY {POLICY} ON {table} TO {ROLE} USING ({written}) WITH CHECK ({checked})",
        *([f"CREATE POLICY {POLICY}_read ON {table} FOR SELECT TO {ROLE} USING ({seen})"] if written != seen else []),
        f"COMMENT ON POLICY {POLICY} ON {table} IS '{_note(model)}'",
    ]


def _conditions(model: type[models.Model]) -> tuple[str, str]:
    """Which rows may be written, and which seen."""
    seen = build_tenant_condition(model)
    return WRITTEN_BY_OWNER.get(model._meta.db_table, seen), seen


def _note(model: type[models.Model]) -> str:
    return hashlib.sha256("\n".join([*_conditions(model), *_function(model)]).encode()).hexdigest()


def list_unprotected_tables(cursor: CursorWrapper) -> list[str]:
    """Our tables that have no wall, or one of another version of this module."""
    cursor.execute(
        "SELECT c.relname, obj_description(p.oid, 'pg_policy') FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid "
        "WHERE p.polname = %s AND c.relrowsecurity AND c.relnamespace = 'public'::regnamespace",
        [POLICY],
    )
    there = dict(cursor.fetchall())
    return [name for name, model in sorted(list_tables().items()) if there.get(name) != _note(model)]


def _make_role() -> str:
    """Without the right to make roles the walls stay down; `doctor` says which statement a superuser must run."""
    return f"""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN CREATE ROLE {ROLE} NOLOGIN; END IF;
            IF NOT pg_has_role(session_user, '{ROLE}', 'MEMBER') THEN EXECUTE format('GRANT {ROLE} TO %I', session_user); END IF;
        EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN
            RAISE NOTICE 'The role {ROLE} cannot be made or taken here.';
        END $$"""


def install_policies(connection: BaseDatabaseWrapper) -> bool:
    """Make the role and the policies. False when the role cannot be had; then nothing was changed."""
    with connection.cursor() as cursor:
        cursor.execute(_make_role())
        connection.look_for_walls()  # type: ignore[attr-defined]
        if not connection.walls:  # type: ignore[attr-defined]
            return False
        for name in list_unprotected_tables(cursor):
            # All of a table's or none: without its policy a tenant would see none of its rows, and so no kill switch or limit.
            with transaction.atomic(using=connection.alias):
                for statement in build_policy_statements(list_tables()[name]):
                    cursor.execute(statement)
    return True


def describe_missing_policies(connection: BaseDatabaseWrapper) -> str:
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
        bare = list_unprotected_tables(cursor)
    if bare:
        return f"Without the row level security that this version needs: {', '.join(bare)}. Type `.venv/bin/python manage.py migrate`."
    return ""
