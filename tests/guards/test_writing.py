"""Does whatever writes record a fact, name what it changed, and name who acts?"""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

from access import consents, grant_requests, grants
from access import services as access
from invocations import services as calls
from registry import services as tools
from tests.guards.test_architecture import SERVICES, name_of, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITES = {"create", "save", "update", "delete", "get_or_create", "bulk_create", "update_or_create"}
WRITTEN_WITHOUT_A_FACT_OF_THEIR_OWN = {
    "evidence/services.py:record": "it is the fact",
    "evidence/search/indexing.py:index_block": "an index of facts, made again from the log at any time",
    "evidence/search/indexing.py:_note_span": "the same",
    "evidence/search/indexing.py:index_tenant": "the same",
    "evidence/search/indexing.py:forget_index": "the same",
    "evidence/search/saved.py:save_search": "a search that somebody makes again; decides nothing",
    "evidence/search/saved.py:change_search": "the same",
    "evidence/search/saved.py:delete_search": "the same",
    "evidence/services.py:seal_values": "part of a Begin or End, which binds its commitment",
    "invocations/queue.py:ring_again": "a message sent is not a decision",
    "invocations/services.py:free_key": "a key that was kept as long as was promised; the call and its facts stay",
    "invocations/claiming.py:_claim": "an attempt; the End names it",
    "invocations/minding.py:_keep_lease": "a lease",
    "invocations/stored_files.py:_write": "part of storing a file, or of the End of a call that made it",
    "invocations/stored_files.py:keep_files": "part of an End, which says how many and of what digest",
    "invocations/sandbox_hosts.py:report": "how the boxes are now; decides nothing",
    "invocations/sandbox_hosts.py:run": "the same: a process that ends takes its row along",
    "invocations/unmapped.py:note_unmapped": "how the hub itself does; decides nothing",
    "invocations/live.py:write_live": "what is known of a run so far; its End replaces it",
    "invocations/endings.py:finish": "write_end, in the same transaction",
    "invocations/rejecting.py:count": "the fact of the whole minute, which witness_counted writes",
    "access/consents.py:request_consent": "the request, once",
    "access/grant_requests.py:_answer": "the grant that is given, whose fact names the request, or the refusal",
    "access/notifications.py:notify": "a message; what it tells of has its fact",
    "access/channels.py:redeliver": "the same message again",
    "access/deliveries.py:_claim": "a lease",
    "access/deliveries.py:_settle": "a message sent is not a decision",
    "access/authentication.py:note_use": "when a key was last used; what it was used for has its facts",
    "access/agents.py:_make_key": "part of making or rotating a key",
    "access/members.py:_make_groups": "part of making a tenant",
    "access/members.py:_end_links": "part of what is given or taken",
}


def writers(path: Path) -> Iterator[tuple[str, bool]]:
    """Functions that write rows, and whether each records a fact, itself or through a helper of its module."""
    functions = {node.name: node for node in parsed(path).body if isinstance(node, ast.FunctionDef)}

    def calls(node: ast.AST) -> Iterator[ast.Call]:
        return (each for each in ast.walk(node) if isinstance(each, ast.Call))

    def records(name: str, seen: frozenset[str] = frozenset()) -> bool:
        for call in calls(functions[name]):
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("record", "reveal"):
                return True
            helper = call.func.id if isinstance(call.func, ast.Name) else ""
            if helper in functions and helper not in seen | {name} and records(helper, seen | {name}):
                return True
        return False

    for name, node in functions.items():
        if any(
            (
                isinstance(call.func, ast.Attribute)
                and call.func.attr in WRITES
                and ("objects" in ast.unparse(call.func) or call.func.attr in ("save", "create", "get_or_create"))
            )
            or (
                isinstance(call.func, ast.Name) and call.func.id in ("insert", "update", "delete")
            )  # toolhub.kernel.rows
            for call in calls(node)
        ):
            yield name, records(name)


def test_every_function_that_writes_records_a_fact() -> None:
    silent = [
        f"{name_of(path)}:{name}"
        for path in SERVICES
        if path.name not in ("models.py", "keystore.py")
        for name, records in writers(path)
        if not records and f"{name_of(path)}:{name}" not in WRITTEN_WITHOUT_A_FACT_OF_THEIR_OWN
    ]

    assert silent == []


def test_views_tasks_and_endpoints_write_nothing_themselves() -> None:
    edges = [
        path for path in SERVICES if path.name in ("views.py", "api.py", "tasks.py", "consents_api.py", "forms.py")
    ]

    assert {f"{name_of(path)}:{name}" for path in edges for name, _ in writers(path)} == set()


def test_saving_names_what_it_changed() -> None:
    for path in SERVICES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "save":
                owner = ast.unparse(node.func.value)
                named = any(keyword.arg == "update_fields" for keyword in node.keywords)
                assert named or owner in ("super()", "fact"), f"{name_of(path)}:{node.lineno}"


def test_the_signature_of_every_service_names_who_acts() -> None:
    verbs = re.compile(
        r"(approve|deny|revoke|request|create|give|submit|review|enable|pause|deprecate|reveal|invoke)_?"
    )
    nobody_yet = {"create_tenant"}
    for module in (access, consents, grants, grant_requests, tools, calls):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and verbs.match(name) and name not in nobody_yet:
                by = inspect.signature(function).parameters.get("by")
                assert by is not None, name
                assert by.kind is inspect.Parameter.KEYWORD_ONLY, name
