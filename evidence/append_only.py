"""Append-only triggers: the rows that the database keeps as they are, whoever asks.

The third of three: models and managers refuse first (:mod:`evidence.models.append_only`). Here the database refuses what went
past them: UPDATE, DELETE, TRUNCATE and upserts, by whichever role, superusers of PostgreSQL included; on SQLite also
``INSERT OR REPLACE`` and ``UPDATE OR REPLACE``, which take other rows away unseen by a DELETE trigger. Who may alter tables
can take the triggers down: against that the log is kept, with checkpoints outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evidence.keys.triggers import key_triggers
from evidence.kinds import PAIR
from kernel.database.triggers import Trigger, install_triggers

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

ALWAYS = "1 = 1"


def _equal(*columns: str) -> str:
    return "(" + " AND ".join(f"o.{column} = NEW.{column}" for column in columns) + ")"


def _changed(*columns: str) -> str:
    return " OR ".join(f"NEW.{column} <> {{old}}.{column}" for column in columns)


def _set_once(column: str) -> str:
    return f"{{old}}.{column} IS NOT NULL AND (NEW.{column} IS NULL OR NEW.{column} <> {{old}}.{column})"


@dataclass(frozen=True, slots=True)
class AppendOnlyTable:
    """``keys``: what only one row has. ``rewritten``: when NEW in the place of ``{old}`` would change what is kept."""

    table: str
    keys: tuple[str, ...]
    rewritten: str = ALWAYS
    goes: bool = False  # whether rows may be deleted


_PAIR = ", ".join(f"'{kind}'" for kind in PAIR)
KEPT = (
    AppendOnlyTable("evidence_fact", (_equal("id"), f"{_equal('invocation_id', 'kind')} AND NEW.kind IN ({_PAIR})")),
    AppendOnlyTable("evidence_seal", (_equal("fact_id"), _equal("tenant_id", "leaf_index"))),
    # The signatures below the text of a checkpoint are made again; the text is not.
    AppendOnlyTable(
        "evidence_checkpoint",
        (_equal("id"), _equal("tenant_id", "size"), _equal("global_index")),
        f"{_changed('id', 'tenant_id', 'size', 'root', 'created_at')} OR {_set_once('global_index')}",
    ),
    # A tile grows by further hashes until it is full.
    AppendOnlyTable(
        "evidence_tile",
        (_equal("tenant_id", "level", "n"),),
        f"{_changed('tenant_id', 'level', 'n')} OR substr(NEW.hashes, 1, length({{old}}.hashes)) <> {{old}}.hashes",
    ),
    # Old keys verify what they have signed, for ever.
    AppendOnlyTable("evidence_logkey", (_equal("name"),), _changed("name", "public", "clock")),
    # The sealer takes them away. Nobody sets one on another fact.
    AppendOnlyTable("evidence_pending", (_equal("fact_id"),), goes=True),
)
# What roles that do not own the tables may do with them (toolhub.database.hub_role).
READ_AND_ADDED = (*(each.table for each in KEPT), "evidence_log")
READ_ONLY = ("evidence_seal", "evidence_checkpoint", "evidence_tile", "evidence_logkey", "evidence_log")  # for requests
CHANGED_BY_KEEPER = {
    "evidence_pending": "DELETE",
    "evidence_checkpoint": "UPDATE",
    "evidence_tile": "UPDATE",
    "evidence_logkey": "UPDATE",
    "evidence_log": "UPDATE",
}

_REFUSE = """
    CREATE OR REPLACE FUNCTION toolhub_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
        RAISE EXCEPTION 'Evidence is append-only: % of % is refused.', TG_OP, TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
    END $body$"""


def _on_postgresql(kept: AppendOnlyTable) -> list[Trigger]:
    condition = kept.rewritten.format(old="OLD")
    events = {
        "toolhub_no_update": f"BEFORE UPDATE ON {kept.table} FOR EACH ROW WHEN ({condition})",
        "toolhub_no_truncate": f"BEFORE TRUNCATE ON {kept.table} FOR EACH STATEMENT",
    }
    if not kept.goes:
        events["toolhub_no_delete"] = f"BEFORE DELETE ON {kept.table} FOR EACH ROW"
    return [
        Trigger(kept.table, name, f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION toolhub_refuse_change()", _REFUSE)
        for name, when in events.items()
    ]


def _on_sqlite(kept: AppendOnlyTable) -> list[Trigger]:
    """A row can be replaced by each of its keys, and by the rowid, which all tables here have beside them."""
    same = " OR ".join([*kept.keys, _equal("rowid")])
    another = f"SELECT 1 FROM {kept.table} o WHERE o.rowid <> OLD.rowid AND ({same})"  # noqa: S608  names of tables only
    replaced = f"SELECT 1 FROM {kept.table} o WHERE ({same}) AND ({kept.rewritten.format(old='o')})"  # noqa: S608
    events = {
        f"{kept.table}_no_replace": f"BEFORE INSERT ON {kept.table} WHEN EXISTS ({replaced})",
        f"{kept.table}_no_update": f"BEFORE UPDATE ON {kept.table} WHEN {kept.rewritten.format(old='OLD')} OR EXISTS ({another})",
    }
    if not kept.goes:
        events[f"{kept.table}_no_delete"] = f"BEFORE DELETE ON {kept.table}"
    refuse = f"SELECT RAISE(ABORT, 'Evidence is append-only: a change of {kept.table} is refused.')"
    return [
        Trigger(kept.table, name, f"CREATE TRIGGER {name} {when} BEGIN {refuse}; END") for name, when in events.items()
    ]


def triggers_for(vendor: str) -> list[Trigger]:
    make = _on_postgresql if vendor == "postgresql" else _on_sqlite
    return [*(trigger for kept in KEPT for trigger in make(kept)), *key_triggers(vendor)]


def keep_evidence(connection: BaseDatabaseWrapper) -> None:
    """Put the triggers up, or up again. Called after each migration."""
    install_triggers(connection, triggers_for(connection.vendor))
