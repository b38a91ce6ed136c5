"""Pair constraints: how PostgreSQL holds that each call has its Begin, and each ended call its End.

By constraint triggers that are asked at COMMIT: a call without its Begin, a final state without its End, an End of a call that
has not ended or ended otherwise, a second Begin or End in another month than the first, and facts of a call that is not there, are
refused with all that was done beside them. Who asks
sees all rows, whichever tenant a transaction works for. SQLite cannot put a question off until COMMIT: there the functions that
write both in one transaction are what holds it, and the tests look at each call after each test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.kinds import BEGINS, ENDS, PAIR
from evidence.models.facts import CLOCKS_DIFFER_MS
from kernel.database.triggers import Trigger, install_triggers

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


def _texts(kinds: tuple[str, ...]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)


# The lowest id that a fact of a call may have (evidence.models.facts.oldest_fact_id): no month before it is looked into.
_OLDEST = (
    "CASE WHEN substr({0}::text, 15, 1) = '7' "
    "THEN (lpad(to_hex(greatest(('x' || left(replace({0}::text, '-', ''), 12))::bit(48)::bigint "
    f"- {CLOCKS_DIFFER_MS}, 0)), 12, '0') || repeat('0', 20))::uuid ELSE '00000000-0000-0000-0000-000000000000'::uuid END"
)
# Tables by their schema, and no search path of their own, which would have to be set for each row.
_BEGIN = "SELECT FROM public.evidence_fact f WHERE f.id >= oldest AND f.invocation_id = NEW.id AND f.kind"
_REFUSE = "USING ERRCODE = 'integrity_constraint_violation'"
_ASK_CALL = f"""
    CREATE OR REPLACE FUNCTION toolhub_ask_call() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
    DECLARE
        there boolean;
        oldest uuid;
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF EXISTS (SELECT FROM public.evidence_fact f WHERE f.invocation_id = OLD.id AND f.kind IN ({_texts(PAIR)})) THEN
                RAISE EXCEPTION 'Call % is what facts are about.', OLD.id {_REFUSE};
            END IF;
            RETURN NULL;
        END IF;
        oldest := {_OLDEST.format("NEW.id")};
        IF TG_OP = 'INSERT' OR NEW.id <> OLD.id OR NEW.dry_run <> OLD.dry_run THEN
            IF NEW.dry_run THEN there := EXISTS ({_BEGIN} = '{BEGINS[1]}'); ELSE there := EXISTS ({_BEGIN} = '{BEGINS[0]}'); END IF;
            IF NOT there THEN RAISE EXCEPTION 'Call % has no Begin.', NEW.id {_REFUSE}; END IF;
        END IF;
        IF NEW.finished_at IS NOT NULL THEN
            IF NEW.dry_run THEN there := EXISTS ({_BEGIN} = '{ENDS[1]}' AND f.outcome = NEW.state);
            ELSE there := EXISTS ({_BEGIN} = '{ENDS[0]}' AND f.outcome = NEW.state); END IF;
            IF NOT there THEN RAISE EXCEPTION 'Call % has no End that says %.', NEW.id, NEW.state {_REFUSE}; END IF;
        ELSIF TG_OP = 'UPDATE' THEN
            IF EXISTS ({_BEGIN} IN ({_texts(ENDS)})) THEN
                RAISE EXCEPTION 'Call % has an End and goes on.', NEW.id {_REFUSE};
            END IF;
        END IF;
        RETURN NULL;
    END $body$"""
_ASK_FACT = f"""
    CREATE OR REPLACE FUNCTION toolhub_ask_fact() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $body$
    DECLARE
        call record;
        oldest uuid := {_OLDEST.format("NEW.invocation_id")};
    BEGIN
        SELECT i.state, i.dry_run, i.finished_at INTO call FROM public.invocations_invocation i WHERE i.id = NEW.invocation_id;
        IF NOT FOUND OR call.dry_run <> (NEW.kind IN ('{BEGINS[1]}', '{ENDS[1]}')) THEN
            RAISE EXCEPTION 'Call % is not one that a fact of it says.', NEW.invocation_id {_REFUSE};
        END IF;
        IF NEW.id < oldest THEN
            RAISE EXCEPTION 'Call % is more than a day younger than a fact of it.', NEW.invocation_id {_REFUSE};
        END IF;
        -- Within a month its index refuses it. Two at once cannot be: both would have made the call, or ended it.
        IF EXISTS (SELECT FROM public.evidence_fact f WHERE f.id >= oldest AND f.invocation_id = NEW.invocation_id
            AND f.kind = NEW.kind AND f.id <> NEW.id) THEN
            RAISE EXCEPTION 'Call % has a second % (fact_one_begin_one_end).', NEW.invocation_id, NEW.kind
                USING ERRCODE = 'unique_violation', CONSTRAINT = 'fact_one_begin_one_end';
        END IF;
        IF NEW.kind IN ({_texts(ENDS)}) THEN
            IF call.finished_at IS NULL THEN
                RAISE EXCEPTION 'Call % has an End and goes on.', NEW.invocation_id {_REFUSE};
            ELSIF call.state <> NEW.outcome THEN
                RAISE EXCEPTION 'Call % has no End that says %.', NEW.invocation_id, call.state {_REFUSE};
            END IF;
        END IF;
        RETURN NULL;
    END $body$"""  # noqa: S608  names of kinds only
_WHEN = {
    ("evidence_fact", "toolhub_fact_of_call"): (
        "toolhub_ask_fact",
        f"INSERT ON evidence_fact {{}} WHEN (NEW.kind IN ({_texts(PAIR)}))",
    ),
    ("invocations_invocation", "toolhub_call_has_begin"): (
        "toolhub_ask_call",
        "INSERT OR DELETE ON invocations_invocation {}",
    ),
    ("invocations_invocation", "toolhub_call_has_end"): (
        "toolhub_ask_call",
        "UPDATE OF id, state, dry_run, finished_at ON invocations_invocation {} "
        "WHEN (NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL OR NEW.id <> OLD.id OR NEW.dry_run <> OLD.dry_run)",
    ),
}
_AT_COMMIT = "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
TRIGGERS = [
    Trigger(
        table,
        name,
        f"CREATE CONSTRAINT TRIGGER {name} AFTER {when.format(_AT_COMMIT)} EXECUTE FUNCTION {function}()",
        _ASK_FACT if function == "toolhub_ask_fact" else _ASK_CALL,
    )
    for (table, name), (function, when) in _WHEN.items()
]


def install_pair_triggers(connection: BaseDatabaseWrapper) -> None:
    if connection.vendor == "postgresql":
        install_triggers(connection, TRIGGERS)
