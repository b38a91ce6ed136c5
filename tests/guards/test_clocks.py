"""Clocks: is a lease or a deadline, which another host judges, ever set or judged by the clock of this one?"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("access", "evidence", "invocations", "llm", "registry", "toolhub")
OF_THIS_HOST = ("timezone.now()", "datetime.now(UTC)", "time.time()")
LOOKS = re.compile(r"\b(now|time)\s*\(")  # each of them, however its lines are broken
# Columns that one host writes and another judges, and what is asked with a moment to hold them against.
JUDGED = ("lease_until", "expires_at", "seen_at", "held_until", "key_until", "next_attempt_at")
ASKED = ("load_decision_context", "load_decision_contexts", "in_force", "spent_or_valid", "window_number")
ENDS_A_LEASE = "a lease ends here, and the moment is for people to read"
EXCEPTIONS = {
    "evidence/sinks/delivery.py:_advance": "when it was sent, for people to read",
    "evidence/exports/jobs.py:_end": ENDS_A_LEASE,
    "evidence/exports/jobs.py:_give_up": ENDS_A_LEASE,
    "invocations/end/end_record.py:_end_call": ENDS_A_LEASE,
    "invocations/explanations/services.py:explain_call": "when the timeline of steps begins",
    "invocations/replays/worker.py:_end": ENDS_A_LEASE,
    "invocations/queue/retries.py:requeue_call": ENDS_A_LEASE,
}


def _names(function: ast.AST) -> set[str]:
    """Also of a filter such as ``expires_at__lte``."""
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found.add(name.split("__")[0])
            case ast.Constant(value=str(name)):
                found.add(name.split("__")[0])
    return found


def _is_judged(name: str) -> bool:
    return name in JUDGED or name in ASKED or name.endswith(("_deadline", "_deadline_at"))


def judged_by_this_host(source: str) -> list[str]:
    """The functions that mention what others judge, and look at the clock of this host."""
    if not LOOKS.search(source):  # most modules, and looking takes a hundredth of parsing
        return []
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(map(_is_judged, _names(node)))
        and _looks(ast.unparse(node))
    ]


def _looks(source: str) -> bool:
    return any(clock in source for clock in OF_THIS_HOST)


def test_leases_and_deadlines_are_set_and_judged_by_the_clock_of_the_database() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{name}"
        for folder in OURS
        for path in (ROOT / folder).rglob("*.py")
        if "migrations" not in path.parts
        for name in judged_by_this_host(path.read_text())
    }

    assert found - EXCEPTIONS.keys() == set(), "Take database_time() or database_now() (kernel.database.connections)."
    assert EXCEPTIONS.keys() - found == set(), "These need no exception any more."


def test_a_filter_a_column_and_a_deadline_are_seen() -> None:
    for said in ("rows.filter(expires_at__lte=timezone.now())", "row.lease_until = timezone.now() + LEASE"):
        assert judged_by_this_host(f"def one():\n    {said}\n") == ["one"]
    assert judged_by_this_host("def one(queue_deadline_at):\n    return queue_deadline_at < datetime.now(UTC)") == [
        "one"
    ]
    assert judged_by_this_host("def one():\n    row.lease_until = database_time()\n    row.at = decided_at") == []
