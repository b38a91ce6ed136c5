"""How does PostgreSQL hold that each call has its Begin, and each ended call its End?

By constraint triggers that are asked at COMMIT: a call without its Begin, a final state without its End, an End of a call that
has not ended or ended otherwise, and facts of a call that is not there, are refused with all that was done beside them. Who asks
sees all rows, whichever tenant a transaction works for. SQLite cannot put a question off until COMMIT: there the functions that
write both in one transaction are what holds it, and the tests look at each call after each test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.kinds import BEGINS, ENDS, PAIR
from toolhub.kernel.triggers import Trigger, put_up_triggers

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


def _texts(kinds: tuple[str, ...]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)


_REAL, _DRY = zip(BEGINS, ENDS, strict=True)
_ASK = f"""
    CREATE OR REPLACE FUNCTION toolhub_ask_for_pair() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $body$
    DECLARE
        call uuid;
        state text;
        kinds text[];
        begins bigint;
        ends bigint;
        fitting bigint;
        others bigint;
    BEGIN
        IF TG_TABLE_NAME = 'evidence_fact' THEN call := NEW.invocation_id;
        ELSIF TG_OP = 'DELETE' THEN call := OLD.id;
        ELSE call := NEW.id; END IF;
        SELECT CASE WHEN i.finished_at IS NULL THEN '' ELSE i.state END,
               CASE WHEN i.dry_run THEN ARRAY[{_texts(_DRY)}] ELSE ARRAY[{_texts(_REAL)}] END
            INTO state, kinds FROM invocations_invocation i WHERE i.id = call;
        SELECT count(*) FILTER (WHERE f.kind = kinds[1]),
               count(*) FILTER (WHERE f.kind = kinds[2]),
               count(*) FILTER (WHERE f.kind = kinds[2] AND f.outcome = state),
               count(*) FILTER (WHERE f.kind <> ALL (COALESCE(kinds, ARRAY['none'])))
            INTO begins, ends, fitting, others FROM evidence_fact f WHERE f.invocation_id = call AND f.kind IN ({_texts(PAIR)});
        IF others > 0 THEN
            RAISE EXCEPTION 'Call % is not one that a fact of it says.', call USING ERRCODE = 'integrity_constraint_violation';
        ELSIF state IS NOT NULL AND begins = 0 THEN
            RAISE EXCEPTION 'Call % has no Begin.', call USING ERRCODE = 'integrity_constraint_violation';
        ELSIF state <> '' AND fitting = 0 THEN
            RAISE EXCEPTION 'Call % has no End that says %.', call, state USING ERRCODE = 'integrity_constraint_violation';
        ELSIF state = '' AND ends > 0 THEN
            RAISE EXCEPTION 'Call % has an End and goes on.', call USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NULL;
    END $body$"""  # noqa: S608  names of kinds only
_WHEN = {
    ("evidence_fact", "toolhub_fact_of_call"): f"INSERT ON evidence_fact {{}} WHEN (NEW.kind IN ({_texts(PAIR)}))",
    ("invocations_invocation", "toolhub_call_has_begin"): "INSERT OR DELETE ON invocations_invocation {}",
    ("invocations_invocation", "toolhub_call_has_end"): (
        "UPDATE OF id, state, dry_run, finished_at ON invocations_invocation {} "
        "WHEN (NEW.finished_at IS NOT NULL OR OLD.finished_at IS NOT NULL OR NEW.id <> OLD.id OR NEW.dry_run <> OLD.dry_run)"
    ),
}
_AT_COMMIT = "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
TRIGGERS = [
    Trigger(
        table,
        name,
        f"CREATE CONSTRAINT TRIGGER {name} AFTER {when.format(_AT_COMMIT)} EXECUTE FUNCTION toolhub_ask_for_pair()",
        _ASK,
    )
    for (table, name), when in _WHEN.items()
]


def hold_pairs(connection: BaseDatabaseWrapper) -> None:
    if connection.vendor == "postgresql":
        put_up_triggers(connection, TRIGGERS)
