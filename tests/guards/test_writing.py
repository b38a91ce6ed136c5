"""Writes: does whatever writes record a fact, name what it changed, and name who acts?"""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

import pytest

from access import services as access
from access.consents import services as consents
from access.grants import requests
from access.grants import services as grants
from invocations import services as calls
from kernel.database import rows
from registry.versions import services as tools
from tests.guards.test_architecture import PRODUCT, SERVICES, name_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITES = {
    "create",
    "save",
    "update",
    "delete",
    "get_or_create",
    "update_or_create",
    "aupdate",
    "adelete",
    "_raw_delete",
}
WRITES |= {"bulk_create", "bulk_update"}
FUNCTIONS = {
    "insert_row",
    "update_rows",
    "update_rows_later",
    "expect_updated_row",
    "delete_rows_later",
    "fetch_prepared",
    "fetch_prepared_together",
    "fetch_prepared_later",
    "execute_prepared",
    "execute_prepared_later",
    "execute_prepared_last",
    "assign_perm",
    "remove_perm",
}  # kernel.database.rows, guardian
RECORDS = {"record", "record_opening", "reveal_values", "reveal_committed"}
ROWS_OF_OTHER_THINGS = {  # modules whose rows are no decisions, or are bound by a fact that others write
    "access/budgets/chain_reservations.py": "what a call takes: its Begin says what it holds, its End what it gave",
    "access/budgets/ledger.py": "the same",
    "registry/imports/lister.py": "leases and progress of asking a server for its list, whose end is a fact",
    "registry/installations/drift.py": "when a list was last looked at; what was seen is recorded with the pause",
    "evidence/log/": "the log: made of facts, and verified against them",
    "evidence/sinks/delivery.py": "how far a sink was told; what it is told of are the facts",
    "evidence/exports/": "pieces and leases of an export, whose asking and end are facts",
    "evidence/integrity/": "leases and findings of a verification, whose end is a fact",
    "evidence/search/": "an index of the log, made again from it at any time",
    "evidence/witnesses/": "what witnesses and anchors answer about checkpoints; signed by them",
    "evidence/keys/subject_keys.py": "part of sealing, or of an erasure, whose fact the erasure is",
    "invocations/retention/erasure.py": "carries out an erasure or a retention, whose facts say what went",
    "invocations/playground/erasure.py": "the same",
    "invocations/agent_runs/orchestration.py": "how far a run is: each of its calls has its pair, and so has the run",
    "invocations/agent_runs/run_events.py": "what whoever follows a run is told: of its calls, which have their pairs",
    "invocations/chains/orchestration.py": "how far a chain is: each of its calls has its pair, and so has the chain",
    "invocations/replays/": "leases and progress of a replay, whose begin and end are facts",
    "invocations/sandbox/": "boxes and images, no rows",
    "registry/model_providers/circuits.py": "how a provider does now; the End of each call says what came of asking it",
    "invocations/artifacts/": "part of an End, which says how many and of what digest",
}
WRITTEN_WITHOUT_A_FACT_OF_THEIR_OWN = {
    "evidence/services.py:record": "it is the fact",
    "registry/imports/services.py:_save": "part of reading a source",
    "registry/imports/services.py:_add_drafts": "drafts; what is submitted of them has its facts",
    "registry/imports/services.py:edit_draft": "the same",
    "registry/imports/services.py:remove_draft": "the same",
    "evidence/erasures/free_text.py:FreeTextColumn.forget": "part of asking for an erasure, whose fact counts them",
    "evidence/keys/check_values.py:key_fits": "by what a key is recognised that is in use already",
    "evidence/keys/check_values.py:forget_check_values": "the same, of keys that are gone and have wrapped nothing",
    "evidence/search/indexer.py:index_block": "an index of facts, made again from the log at any time",
    "evidence/search/indexer.py:index_block_again": "the same",
    "evidence/search/indexer.py:_note_span": "the same",
    "evidence/search/indexer.py:take_up_leaves": "the same",
    "evidence/search/indexer.py:forget_index": "the same",
    "evidence/search/saved_searches.py:save_search": "a search that somebody makes again; decides nothing",
    "evidence/search/saved_searches.py:change_search": "the same",
    "evidence/search/saved_searches.py:delete_search": "the same",
    "access/display/services.py:set_display": "how somebody reads times and numbers; decides nothing",
    "invocations/saved_views/services.py:save_view": "a search that somebody makes again; decides nothing",
    "invocations/saved_views/services.py:delete_view": "the same",
    "evidence/services.py:seal_values": "part of a Begin or End, which binds its commitment",
    "invocations/call_hours/rollup.py:count_due_hours": "what calls say, added up; it can be counted again",
    "invocations/call_hours/rollup.py:count_hour": "what calls say, added up; it can be counted again",
    "invocations/queue/outbox.py:relay_due_messages": "a message sent is not a decision",
    "invocations/run_profiles/services.py:keep_profile": "part of a Begin, or of what lets a call go on, which bind its digest",
    "invocations/services.py:free_key": "a key that was kept as long as was promised; the call and its facts stay",
    "invocations/queue/claims.py:_claim": "an attempt; the End names it",
    "invocations/queue/claims.py:_start_next": "the claim itself; the End names its attempt",
    "invocations/queue/claims.py:has_queued_calls": "it reads",
    "invocations/queue/claims.py:_look_beside": "it reads",
    "invocations/queue/run_rows.py:claim_with_rows": "an attempt; the End names it",
    "invocations/accept/call_basis.py:load_call_basis": "it reads",
    "invocations/run/lease_heartbeat.py:_keep_lease": "a lease",
    "invocations/run/lease_heartbeat.py:_keep_leases": "leases",
    "invocations/model_calls/run_keeper.py:find_unwanted": "leases",
    "invocations/files/services.py:_write": "part of storing a file, or of the End of a call that made it",
    "invocations/files/services.py:keep_files": "part of an End, which says how many and of what digest",
    "invocations/tool_files/services.py:keep_tool_files": "part of an End, which says what was kept before and after",
    "invocations/sandbox_hosts/reports.py:write_report": "how the boxes are now; decides nothing",
    "invocations/sandbox_hosts/reports.py:run_reporter": "the same: a process that ends takes its row along",
    "invocations/service_levels/unmapped_errors.py:note_unmapped": "how the hub itself does; decides nothing",
    "invocations/run/live_output.py:write_live": "what is known of a run so far; its End replaces it",
    "invocations/request_tallies.py:tally_request": "the fact of the whole minute, which witness_counted writes",
    "access/grants/requests.py:_answer": "the grant that is given, whose fact names the request, or the refusal",
    "access/notifications/services.py:notify_channels": "a message; what it tells of has its fact",
    "access/authentication/bearer.py:note_use": "when a key was last used; what it was used for has its facts",
    "access/connections/services.py:_replace_code": "of a connection that is open already, whose fact was recorded then",
    "access/connections/connection_tokens.py:add_tokens": "of a connection, whose fact says what they are good for",
    "access/connections/services.py:forget_old_tokens": "they are good for nothing by then",
    "access/members/held_permissions.py:read_held_permissions": "it reads",
    "access/connections/assertions.py:_find_same": "the same",
    "access/connections/services.py:note_connection_use": "when it was last used; what it was used for has its facts",
    "access/server_accounts/services.py:get_server": "a name for what tools name already; who the hub is there is a fact",
    "access/server_accounts/renewals.py:_take": "a lease",
    "access/server_accounts/renewals.py:_go_without": "the same",
    "access/server_accounts/renewals.py:note_token_refused": "that the next call fetches a newer token, which is a fact then",
    "access/server_accounts/authorizations.py:_keep_terms": "what a server says of itself; who the hub is there is a fact",
    "access/server_accounts/authorizations.py:_keep_begun": "what waits for an answer, which is a fact then",
    "access/server_accounts/authorizations.py:take_begun": "the same, used up",
    "access/server_accounts/services.py:return_tokens": "tokens on their way back; that the account has ended is a fact",
    "access/server_accounts/services.py:return_tokens_of": "that the account ends, in the same transaction",
    "access/server_accounts/token_returns.py:_finish": "that tokens which are nobody's are gone; the account has ended before",
    "access/server_accounts/token_returns.py:_put_off": "when they are sent again",
    "access/consents/services.py:_note_asked_through": "who may not decide on a consent; how it was decided is a fact",
    "access/oauth/clients.py:remove_unused_clients": "programs that nobody has let in",
    "access/oauth/clients.py:make_room_for_client": "the same, where too many have registered",
    "access/oauth/clients.py:create_client": "the same: a fact says when somebody lets one in, or has entered it",
    "access/oauth/validator.py:HubValidator.save_authorization_code": "with the connection that it opens, which is a fact",
    "access/oauth/validator.py:HubValidator.invalidate_authorization_code": "a code that was used, of a connection",
    "access/agents/services.py:_make_key": "part of making or rotating a key",
    "access/policies/services.py:_put_in_force": "part of publishing a policy",
    "evidence/deliveries/messages.py:MessageQueue._settle": "a message sent is not a decision; of a callback it is a fact",
    "evidence/deliveries/messages.py:send_again": "the same message again",
    "evidence/deliveries/queue.py:claim_row": "a lease",
    "evidence/deliveries/signing_secrets.py:add_secret": "part of making a receiver, or of giving it another secret",
    "evidence/deliveries/signing_secrets.py:rotate_secret": "the same",
    "evidence/keys/rotation.py:_rewrap_batch": "one batch of a rotation, whose fact says how many",
    "invocations/callbacks/services.py:write_delivery": "a message; what it tells of has its fact, and so has its delivery",
    "invocations/call_costs/services.py:write_cost": "what a call took stands in its End",
    "invocations/run/live_output.py:_still_runs": "a lease",
    "registry/dependencies/states.py:report_progress": "how far an installation is; its end is a fact",
    "registry/dependencies/states.py:give_back": "a lease",
    "registry/dependencies/states.py:put_off": "the same; what is given up in the end is a fact",
    "registry/decision_statement.py:_fetch": "it reads",
    "access/members/services.py:_make_groups": "part of making a tenant",
    "access/members/services.py:_end_links": "part of what is given or taken",
}


def writers(path: Path) -> Iterator[tuple[str, bool]]:
    """Functions that write rows, and whether each records a fact, itself or through a helper of its module."""
    functions = dict(functions_of(path))

    def calls(node: ast.AST) -> Iterator[ast.Call]:
        return (each for each in ast.walk(node) if isinstance(each, ast.Call))

    def records(name: str, seen: frozenset[str] = frozenset()) -> bool:
        for call in calls(functions[name]):
            if _called(call) in RECORDS:
                return True
            helper = call.func.id if isinstance(call.func, ast.Name) else ""
            if helper in functions and helper not in seen | {name} and records(helper, seen | {name}):
                return True
        return False

    for name, node in functions.items():
        if any(is_write(call) for call in calls(node)):
            yield name, records(name)


def functions_of(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in parsed(path).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, ast.FunctionDef))


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def is_write(call: ast.Call) -> bool:
    """Of rows: a dict is updated with a dict, a hash with bytes, and neither with names."""
    if isinstance(call.func, ast.Name):
        return call.func.id in FUNCTIONS
    name = _called(call)
    if name not in WRITES or ast.unparse(getattr(call.func, "value", call)) == "super()":
        return False
    return bool(call.keywords) if name in ("update", "aupdate") else name != "delete" or not call.args


def needs_no_fact(path: Path, name: str) -> bool:
    place = name_of(path)
    return f"{place}:{name}" in WRITTEN_WITHOUT_A_FACT_OF_THEIR_OWN or any(
        place.startswith(each) for each in ROWS_OF_OTHER_THINGS
    )


WRITERS = [
    path
    for path in PRODUCT
    if name_of(path).split("/")[0] in ("access", "registry", "invocations", "evidence")
    and path.name not in ("keystore.py", "models.py")
    and "models" not in path.parts
]


def test_every_function_that_writes_records_a_fact() -> None:
    silent = [
        f"{name_of(path)}:{name}"
        for path in WRITERS
        for name, records in writers(path)
        if not records and not needs_no_fact(path, name)
    ]

    assert silent == []


def test_what_needs_no_fact_still_writes() -> None:
    found = {f"{name_of(path)}:{name}" for path in WRITERS for name, _ in writers(path)}

    assert set(WRITTEN_WITHOUT_A_FACT_OF_THEIR_OWN) - found == set()
    assert [each for each in ROWS_OF_OTHER_THINGS if not any(place.startswith(each) for place in found)] == []


@pytest.mark.parametrize(
    ("source", "writes"),
    [
        ("rows.update(state='x')", True),
        ("mine.filter(pk=1).delete()", True),
        ("row.delete()", True),
        ("row.save(update_fields=['x'])", True),
        ("Fact._base_manager.bulk_create(rows)", True),
        ("rows.bulk_update(found, ['x'])", True),
        ("update_rows(Invocation, {'id': 1}, {'state': 'x'})", True),
        ("insert_row(row)", True),
        ("fetch_prepared(b'UPDATE x', [1])", True),
        ("assign_perm('tools.view', user, tenant)", True),
        ("said.update({'a': 1})", False),
        ("hashed.update(b'x')", False),
        ("rows.filter(state='x')", False),
    ],
)
def test_a_write_is_seen_however_it_is_written(source: str, writes: bool) -> None:
    call = ast.parse(source, mode="eval").body

    assert isinstance(call, ast.Call)
    assert is_write(call) is writes


def test_every_function_that_writes_rows_past_the_orm_is_known() -> None:
    public = {name for name, each in inspect.getmembers(rows, inspect.isfunction) if each.__module__ == rows.__name__}

    public -= {"fetch_together", "get_row_values", "write_row_columns"}  # which read, and write words
    assert {name for name in public if not name.startswith("_")} <= FUNCTIONS


def test_views_tasks_and_endpoints_write_nothing_themselves() -> None:
    edges = [path for path in SERVICES if path.name in ("pages.py", "api.py", "tasks.py", "forms.py", "serializers.py")]

    assert {f"{name_of(path)}:{name}" for path in edges for name, _ in writers(path)} == set()


def test_saving_names_what_it_changed() -> None:
    for path in (each for each in SERVICES if "save" in each.read_text()):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "save":
                owner = ast.unparse(node.func.value)
                named = any(keyword.arg in ("update_fields", "force_insert") for keyword in node.keywords)
                assert named or owner in ("super()", "fact") or owner.startswith("Image."), (
                    f"{name_of(path)}:{node.lineno}"
                )


def test_the_signature_of_every_service_names_who_acts() -> None:
    verbs = re.compile(
        r"(approve|deny|revoke|request|create|give|submit|review|enable|pause|deprecate|reveal|invoke)_?"
    )
    nobody_yet = {"create_tenant"}
    for module in (access, consents, grants, requests, tools, calls):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and verbs.match(name) and name not in nobody_yet:
                by = inspect.signature(function).parameters.get("by")
                assert by is not None, name
                assert by.kind is inspect.Parameter.KEYWORD_ONLY, name
