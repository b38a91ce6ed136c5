"""Queue: what do callers see when broker, worker or database are slow or gone?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID, uuid4

import pytest
from celery import Celery
from django.db import InterfaceError, OperationalError, connection
from django.test import Client
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from evidence.models import Fact
from invocations import services
from invocations.accept import begin_record
from invocations.accept.earlier_requests import OF_REQUEST
from invocations.models import Attempt, Invocation, State
from invocations.queue import claims, outbox, sweeper
from invocations.queue.run_rows import OF_CLAIM, write_claim
from invocations.unfinished_calls.models import build_unfinished_filter
from kernel.database.prepared_statements import fetch_prepared
from kernel.database.rows import PreparedQuery, get_row_values
from kernel.names import RUN_INVOCATION
from kernel.outages import Outage
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from toolhub.probes.readiness import STOOD_IN

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.database.prepared_statements import Parameters
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


@pytest.fixture
def ready(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    enable()
    grant()


def assert_cancelled(answer: Any) -> Invocation:
    error = answer.json()["error"]
    assert (answer.status_code, error["reason"], error["code"]) == (503, "QUEUE.UNAVAILABLE", "UPSTREAM_ERROR")
    assert int(answer.headers["Retry-After"]) > 0
    assert error["retryable"] == "yes"
    row = row_of(answer)
    assert row.state == "cancelled"
    assert kinds_of(row) == PAIR
    return row


@pytest.mark.parametrize("error", [BrokerError("gone"), ConnectionRefusedError(111, "refused"), TimeoutError("slow")])
def test_where_neither_broker_nor_bell_answers_the_call_is_cancelled(
    error: Exception,
    ready: None,
    caller: Caller,
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(invocation_id: object, work_class: str) -> NoReturn:
        raise error

    monkeypatch.setattr(outbox, "send_wake_up", fail)
    row = assert_cancelled(caller.invoke(ECHO, {"text": "x"}))
    monkeypatch.setattr(outbox, "send_wake_up", bell.ring)

    sweeper.sweep_once()  # the broker is back: what was cancelled stays so
    bell.deliver()

    row.refresh_from_db()
    assert row.state == "cancelled"
    assert sandbox.calls == []
    assert caller.invoke(ECHO, {"text": "x"}).status_code == 200


def test_a_call_whose_row_went_while_its_caller_waited_is_not_there(
    ready: None, caller: Caller, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        services, "FOR_WORK", PreparedQuery(lambda pk: Invocation.objects.filter(pk=pk, tool="none"), pk=UUID)
    )
    assert_problem(caller.invoke(ECHO, {"text": "x"}), 404, "RESOURCE.NOT_FOUND")


def test_a_broker_behind_a_closed_port_is_one_that_does_not_answer(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable()
    grant()
    monkeypatch.setattr(outbox, "notify_by_postgresql", lambda what: False)
    monkeypatch.setattr(outbox, "outage", Outage(outbox.log, gone="gone", back="back"))
    app = Celery("closed", broker="redis://127.0.0.1:1/0", set_as_current=False)
    app.conf.broker_transport_options = {"max_retries": 0}
    monkeypatch.setattr(outbox, "get_wake_up_sender", lambda: outbox.WakeUpSender(app, RUN_INVOCATION))

    assert_cancelled(caller.invoke(ECHO, {"text": "x"}))


def test_a_caller_is_not_kept_waiting_for_workers_that_do_not_come(
    ready: None, caller: Caller, bell: Bell, settings: Any, sandbox: ScriptedSandbox
) -> None:
    settings.TOOLHUB_QUEUE_WAIT_S = 0
    bell.answers = False

    answer = caller.invoke(ECHO, {"text": "x"})

    assert (answer.status_code, answer.json()["error"]["reason"]) == (504, "QUEUE.TIMEOUT")
    assert kinds_of(row_of(answer)) == PAIR
    bell.deliver()  # the worker comes at last
    assert sandbox.calls == []


def test_a_caller_who_has_waited_long_enough_gets_the_address_of_the_answer(
    ready: None, caller: Caller, bell: Bell, settings: Any
) -> None:
    settings.TOOLHUB_SYNC_WAIT_S = 0
    bell.answers = False

    answer = caller.invoke(ECHO, {"text": "x"})

    assert answer.status_code == 202
    assert answer.json()["call"]["status"] == "pending"
    assert answer.json()["call"]["state"] == "queued"


@pytest.mark.parametrize("how", ["asked by the caller", "said by the manifest"])
def test_an_asynchronous_call_is_answered_with_its_address(
    how: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    asked = how == "asked by the caller"
    enable(**({} if asked else {"async": True}))
    grant()

    answer = caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"} if asked else {})

    row = row_of(answer)
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/api/v1/invocations/{row.wire_id}"
    assert answer.headers["Retry-After"] == "1"
    assert answer.json()["data"] is None
    pending = caller.get(f"/invocations/{row.wire_id}")
    assert (pending.status_code, pending.headers["Retry-After"]) == (202, "1")
    assert kinds_of(row) == PAIR[:1]

    bell.deliver()

    done = caller.get(f"/invocations/{row.wire_id}")
    assert done.status_code == 200
    assert done.json()["data"] == {"text": "scripted"}
    assert kinds_of(row)[:2] == PAIR


# The database.


def gone(*args: Any, **more: Any) -> NoReturn:
    raise OperationalError("connection to server at 127.0.0.1 failed: secret-host")


def closed(*args: Any) -> NoReturn:
    raise InterfaceError("connection already closed")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("error", [gone, closed])
def test_the_api_says_that_the_database_is_gone(error: Callable[..., NoReturn], ready: None, caller: Caller) -> None:
    with connection.execute_wrapper(error):
        answers = [caller.get("/tools"), caller.invoke(ECHO, {})]

    for answer in answers:
        body = answer.json()
        assert (answer.status_code, body["error"]["reason"]) == (503, "EVIDENCE.UNAVAILABLE")
        assert int(answer.headers["Retry-After"]) > 0
        assert "secret-host" not in answer.content.decode()
    assert not Invocation.objects.exists()


def test_a_page_says_that_the_database_is_gone(operator: Person) -> None:
    client = operator.client()
    client.raise_request_exception = False

    with connection.execute_wrapper(gone):
        answers = [client.get("/"), client.get("/tools", headers={"HX-Request": "true"}), Client().get("/healthz")]

    for answer in answers[:2]:
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert "secret-host" not in answer.content.decode()
    assert "<html" in answers[0].content.decode()
    assert "<html" not in answers[1].content.decode()
    assert answers[2].status_code == 200


def test_a_database_that_goes_away_while_a_call_is_accepted_leaves_nothing(
    ready: None, caller: Caller, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(begin_record, "reserve_call_budgets", gone)  # the last that is written

    answer = caller.invoke(ECHO, {"text": "x"})

    assert (answer.status_code, answer.json()["error"]["reason"]) == (503, "EVIDENCE.UNAVAILABLE")
    assert not Invocation.objects.exists()
    assert not Fact.objects.filter(kind__startswith="invocation.").exists()
    assert bell.rung == []


def test_readiness_names_the_part_that_does_not_answer(settings: Any) -> None:
    parts = ("database", "migrations", "broker", "keys", "process")
    assert Client().get("/readyz").json() == {"ok": True, "checks": dict.fromkeys(parts, "ok")}
    settings.TOOLHUB_REDIS_URL = "redis://127.0.0.1:1/0"

    with connection.execute_wrapper(gone):
        answer = Client().get("/readyz")

    assert answer.status_code == 503
    wrong = {"database": "does not answer", "migrations": "not known", "broker": STOOD_IN}
    assert answer.json() == {"ok": False, "checks": dict.fromkeys(parts, "ok") | wrong}
    assert answer.headers["Retry-After"]


def test_the_kept_message_says_what_celery_would_have_said() -> None:
    app = Celery("kept", broker="memory://kept", set_as_current=False)
    id = "019c0000-0000-7000-8000-000000000000"
    said = []
    with app.connection_for_read() as connection:
        channel: Any = connection.default_channel
        channel.queue_declare("rung")
        app.send_task(RUN_INVOCATION, kwargs={"invocation_id": id}, queue="rung", ignore_result=True)
        outbox.WakeUpSender(app, RUN_INVOCATION).send("rung", invocation_id=id)
        for _ in range(2):
            message = channel.basic_get("rung", no_ack=True)
            args, kwargs, embedded = message.decode()
            assert message.properties["correlation_id"] == message.headers["id"] == message.headers["root_id"]
            assert (args, kwargs) == ([], {"invocation_id": id})
            alike = {
                name: value for name, value in message.headers.items() if name not in ("id", "root_id", "kwargsrepr")
            }
            said.append((alike, embedded, message.content_type, message.content_encoding))

    assert said[0] == said[1]


@pytest.mark.django_db
def test_no_statement_of_the_queue_goes_through_all_calls_there_ever_were() -> None:
    """They read the narrow rows of those that have not ended."""
    looks: list[tuple[bytes, Parameters]] = [
        (claims.WAITING, ()),
        OF_REQUEST.fill_in(agent=uuid4(), request="x", before=uuid4()),
    ]
    if connection.vendor == "postgresql":
        begun = get_row_values(Attempt(worker="host:1", started_at=timezone.now()), except_for=OF_CLAIM)
        looks.append((claims.WAITING_BESIDE, {"full": []}))
        looks.append(
            (write_claim(claims.POSTGRESQL), {"classes": [], "full": [], "lease_s": 1, "is_first": True, **begun})
        )
    else:
        looks.append((claims.SQLITE, {"classes": [], "full": [], "started": None, "lease_until": None}))
    explain = b"EXPLAIN " if connection.vendor == "postgresql" else b"EXPLAIN QUERY PLAN "
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")  # of the few rows of a test it would be right

    plans = [str(line) for statement, values in looks for line in fetch_prepared(explain + statement, values)]
    plans.append(Invocation.objects.filter(build_unfinished_filter(state=State.QUEUED))[:1].explain())

    assert len(plans) > len(looks)
    assert [line for line in plans if re.search(r"(Seq Scan on|SCAN) (invocations_invocation|i\b)", line)] == []
