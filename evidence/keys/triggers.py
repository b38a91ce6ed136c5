"""Key triggers: what keeps a value from being written under a key that is destroyed.

A foreign key alone would not: of a key that is destroyed the row stays. On PostgreSQL the check also holds the key until the
transaction of the snapshot ends; on SQLite writers take turns.
"""

from __future__ import annotations

from kernel.database.triggers import Trigger

_REFUSED = "The key of this snapshot is not in use."
_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION toolhub_key_in_use() RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
        PERFORM 1 FROM evidence_subjectkey k WHERE k.id = NEW.subject_key_id AND k.destroyed_at IS NULL FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION '{_REFUSED}' USING ERRCODE = 'foreign_key_violation';
        END IF;
        RETURN NEW;
    END $body$"""


def key_triggers(vendor: str) -> list[Trigger]:
    """No snapshot under a key that is destroyed."""
    table = "evidence_snapshot"
    if vendor == "postgresql":
        when = f"BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW WHEN (NEW.subject_key_id IS NOT NULL)"
        made = f"CREATE TRIGGER toolhub_key_in_use {when} EXECUTE FUNCTION toolhub_key_in_use()"
        return [Trigger(table, "toolhub_key_in_use", made, _FUNCTION)]
    alive = "SELECT 1 FROM evidence_subjectkey k WHERE k.id = NEW.subject_key_id AND k.destroyed_at IS NULL"
    when = f"BEFORE INSERT ON {table} WHEN NEW.subject_key_id IS NOT NULL AND NOT EXISTS ({alive})"
    refuse = f"SELECT RAISE(ABORT, '{_REFUSED}');"
    return [Trigger(table, f"{table}_key_in_use", f"CREATE TRIGGER {table}_key_in_use {when} BEGIN {refuse} END")]
