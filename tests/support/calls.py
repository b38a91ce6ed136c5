"""Calls: how do tests run calls without a worker, and read what a call has left?"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS, connections

from evidence.models import Fact
from invocations import calls, services
from invocations.decide import rules
from invocations.models import Invocation
from invocations.queue import outbox
from invocations.run import execution, lease_heartbeat
from invocations.run.live_output import LiveReport
from invocations.sandbox.base import RunOutcome, RunStatus
from kernel.ids import decode
from kernel.outages import Outage
from kernel.problems import Retryable, find_problem_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    import pytest

    from invocations.sandbox.base import Profile, RunEvent, SandboxCall
    from registry.models import Tool
    from tests.conftest import Caller


def row_of(answer: Any) -> Invocation:
    """The invocation that an answer names."""
    return Invocation.objects.get(pk=decode("inv", answer.json()["call"]["call_id"]))


def kinds_of(invocation: Invocation) -> list[str]:
    """The kinds of the facts about a call, in their order."""
    return list(Fact.objects.filter(invocation_id=invocation.pk).order_by("id").values_list("kind", flat=True))


PAIR = ["invocation.began", "invocation.ended"]


class Bell:
    """Stands in for broker, worker and waker: who waits for a call runs it itself, in its own thread."""

    def __init__(self) -> None:
        self.rung: list[UUID] = []
        self.answers = True  # False: messages are taken, and nobody works on them

    def ring(self, invocation_id: UUID, work_class: str = "quick") -> None:
        self.rung.append(invocation_id)

    def deliver(self) -> None:
        while self.rung:
            self.rung.pop(0)
            execution.run_queued_calls()

    @contextmanager
    def listen(self, invocation_id: UUID) -> Iterator[Bell]:
        yield self

    def wait(self, seconds: float) -> None:
        if self.answers:
            self.deliver()

    async def wait_async(self, seconds: float) -> None:
        await sync_to_async(self.wait)(seconds)

    def wake(self, invocation_id: UUID) -> None:
        """Nobody sleeps."""


def run_calls_here(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Bell:
    """Calls run in the thread of who waits for them."""
    settings.TOOLHUB_LEASE_S = 60  # no heartbeat comes in between: it could not see rows that are not committed
    _write_down_what_is_committed(monkeypatch)
    bell = Bell()
    monkeypatch.setattr(outbox, "send_wake_up", bell.ring)
    monkeypatch.setattr(outbox, "notify_by_postgresql", lambda what: False)  # nobody listens to PostgreSQL either
    monkeypatch.setattr(outbox, "outage", Outage(outbox.log, gone="gone", back="back", ask_again_s=0))
    for module in (calls, services):
        monkeypatch.setattr(module, "get_waker", lambda: bell)
    return bell


def _write_down_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that writes down what a tool says meanwhile sees no call of a test's own transaction: on PostgreSQL it finds none,
    and on SQLite it would wait half a minute for that transaction to end, as the test waits for it."""
    of_the_test, write_down = connections[DEFAULT_DB_ALIAS], LiveReport._write_down
    monkeypatch.setattr(
        LiveReport, "_write_down", lambda report: None if of_the_test.in_atomic_block else write_down(report)
    )


def run_calls_in(sandbox: Any, monkeypatch: pytest.MonkeyPatch, *more: Any) -> None:
    """``more``: modules beside those that every call goes through."""
    for module in (execution, lease_heartbeat, rules, *more):
        monkeypatch.setattr(module, "current_sandbox", lambda: sandbox)


class ScriptedSandbox:
    """A sandbox that runs nothing: it keeps what it was asked and answers what the test says."""

    closing = False

    def __init__(self) -> None:
        self.calls: list[tuple[Profile, SandboxCall]] = []
        self.killed: list[str] = []
        self.outcome = RunOutcome(RunStatus.OK, value={"text": "scripted"}, report={})
        self.during: Callable[[], None] = lambda: None  # happens while the tool runs
        self.tell: Callable[[RunEvent], None] = lambda event: None  # what the tool says meanwhile goes here

    def missing(self, profile: Profile, *, by_gate: bool = False) -> tuple[str, ...]:
        return profile.outside

    def run(
        self, profile: Profile, call: SandboxCall, on_event: Callable[[RunEvent], None] | None = None
    ) -> RunOutcome:
        self.calls.append((profile, call))
        self.tell = on_event or (lambda event: None)
        self.during()
        return self.outcome

    def kill(self, name: str) -> None:
        self.killed.append(name)

    def snapshot(self) -> None:
        """There are no boxes."""

    def check(self) -> str:
        return "scripted"

    def close(self) -> None:
        """Nothing runs."""


def assert_problem(answer: Any, status: int, reason: str) -> dict[str, Any]:
    """The answer is the catalogued problem: an RFC 9457 document and an envelope at once."""
    body: dict[str, Any] = answer.json()
    cls = find_problem_class(reason)
    assert cls.reason == reason
    assert (answer.status_code, body["error"]["reason"]) == (status, reason), body
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert body["ok"] is False
    assert body["data"] is None
    assert body["error"]["code"] == cls.code
    assert body["error"]["retryable"] in (cls.retryable, Retryable.AFTER_ACTION)  # a limit of 0 is no matter of time
    assert body["title"] == cls.title()
    assert body["status"] == status == cls.status
    assert body["type"].endswith(f"/api/v1/errors/{reason}")
    assert body["detail"] == body["error"]["message"]
    assert set(body) >= {"ok", "data", "warnings", "error", "ttl_seconds", "evidence"}
    return body


def ask(caller: Caller, tool: str, arguments: Any = None, **envelope: Any) -> dict[str, Any]:
    """What preflight says of a call."""
    body = {
        "request_id": "test-request-1",
        "actor": {"type": "agent", "id": "x"},
        "arguments": {} if arguments is None else arguments,
        **envelope,
    }
    answer = caller.post(f"/tools/{tool}/preflight", body)
    assert answer.status_code == 200, answer.json()
    data: dict[str, Any] = answer.json()["data"]
    return data


def writer(enable: Callable[..., Tool], **changes: Any) -> Tool:
    """The sample tool that writes, enabled."""
    return enable("write", **({"side_effect": "Write", "idempotency": "keyed"} | changes))
