"""Canaries: is a person's value found anywhere but sealed: in logs, traces, metrics, facts, rows, or in what others are told?"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any

import prometheus_client
import pytest
from django.test import Client
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from access.consents import services as consents
from evidence.models import Fact, Snapshot
from invocations.callbacks import delivery, services
from invocations.chains import orchestration
from invocations.run import execution
from invocations.sandbox.base import LeftArtifact, RunEvent, RunOutcome, RunStatus
from tests.support.calls import kinds_of, row_of, writer
from tests.support.chains import ENVELOPE, TEXT, of, step
from tests.support.chains import submit as submit_plan
from tests.support.erasures import cells, dump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
WRITE = "sample.tools.write"
CANARY = "zq7Lindqvist"
HEADERS = ("X-Own", "traceparent", "Prefer", "User-Agent", "Referer")


def canary(place: str) -> str:
    """Each place says its own, so that a find says where it came from."""
    return f"{CANARY}-{place}-13812345678"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], str]]:
    """All that leaves a process beside its answers: logs of every level, spans, metrics."""
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    reader = InMemoryMetricReader()
    metrics = MeterProvider([reader])
    for module in (execution, orchestration):
        monkeypatch.setattr(module, "tracer", provider.get_tracer("tests"))
    caplog.set_level(logging.DEBUG)
    for name in ("toolhub", "django", "django.request", "uvicorn", "celery"):
        caplog.set_level(logging.DEBUG, logger=name)

    def everything() -> str:
        logs = "\n".join(f"{record.getMessage()} {record.exc_text or ''}" for record in caplog.records)
        traced = "\n".join(span.to_json() for span in spans.get_finished_spans())
        data = reader.get_metrics_data()
        measured = data.to_json() if data else ""
        return "\n".join([logs, caplog.text, traced, measured, prometheus_client.generate_latest().decode()])

    yield everything
    metrics.shutdown()


@pytest.fixture
def ready(
    caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    settings: Any,
) -> None:
    settings.TOOLHUB_SEGMENT_S = 0
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    sandbox.missing = lambda profile, *, by_gate=False: ()  # type: ignore[method-assign]
    writer(enable, limits={"artifacts": 5}, output_schema=TEXT)
    grant()
    asked = consents.request_consent(tool=WRITE, versions="^1", purpose="a test", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=asked.pk, reason="for a test", by=operator.by)
    services.make_endpoint(
        agent_id=caller.agent.pk, name="orders", url="http://127.0.0.1:9/hook", include_answer=True, by=operator.by
    )


def sent(caller: Caller, body: str, content_type: str = "application/json") -> Any:
    address = f"/api/v1/tools/{WRITE}/invoke"
    return Client().post(address, body.encode(), content_type=content_type, headers=caller.headers())


def send_canaries(caller: Caller, bell: Bell, sandbox: ScriptedSandbox) -> list[str]:
    """Through every path; returns what problems told others than their caller's values, by their reason."""

    def call(text: Any, **more: Any) -> Any:
        return caller.invoke(WRITE, {"text": text}, user_id=canary("user"), session_id=canary("session"), **more)

    def speak() -> None:
        sandbox.tell(RunEvent("stdout", canary("stdout") + "\n"))
        sandbox.tell(RunEvent("stderr", canary("stderr") + "\n"))
        sandbox.tell(RunEvent("progress", progress={"fraction": 0.5, "message": canary("progress")}))
        sandbox.tell(RunEvent("progress", progress={"log": canary("told")}))

    sandbox.during = speak
    left = (LeftArtifact("left.txt", "text/plain", canary("content").encode()),)
    sandbox.outcome = RunOutcome(
        RunStatus.OK, value={"text": canary("result")}, stdout=canary("out"), stderr=canary("err"), artifacts=left
    )
    answers = [call(canary("argument"), callback="orders", idempotency_key="one")]
    answers.append(call(canary("argument"), callback="orders", idempotency_key="one"))
    answers.append(call(canary("else"), idempotency_key="one"))  # the key, with other arguments
    sandbox.during = lambda: None
    for outcome in (
        RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message=canary("raised")),
        RunOutcome(RunStatus.RAISED, error_type=canary("type"), error_message="x"),
        RunOutcome(RunStatus.OK, value={"text": [canary("misshapen")]}),
        RunOutcome(RunStatus.OK, value={canary("name"): 1}),
        RunOutcome(RunStatus.OK, value=canary("bare")),
        RunOutcome(RunStatus.OK, value={"text": "x"}, attempts=(f"net:{canary('host')}.example.org",)),
        RunOutcome(RunStatus.START_FAILED, error_message="the engine"),
        RunOutcome(RunStatus.LOST),
    ):
        sandbox.outcome = outcome
        answers.append(call(canary("argument")))
    sandbox.outcome = RunOutcome(RunStatus.OK, value={"text": canary("delivered")})
    answers += [
        call([canary("wrong-type")]),
        call(canary("too-long") * 100),
        caller.invoke(WRITE, {canary("argument-name"): 1}),
        caller.invoke(WRITE, [canary("no-object")]),
        caller.invoke(f"sample.tools.{CANARY.lower()}", {"text": "x"}),
        caller.post("/proposals", {"name": canary("proposed"), "arguments": canary("not-json")}),
        caller.post(f"/tools/{WRITE}/preflight", ENVELOPE | {"arguments": {"text": [canary("preflight")]}}),
        sent(caller, '{"text": "' + canary("broken")),
        sent(caller, canary("media"), content_type="text/plain"),
        Client().get(f"/api/v1/tools?q={canary('query')}&x={canary('query')}", headers=caller.headers()),
        Client().get(f"/api/v1/tools/{canary('path')}", headers=caller.headers()),
        Client().get(f"/api/v1/invocations/{canary('path')}", headers={"Authorization": f"Bearer {canary('key')}"}),
        Client().get(f"/api/v1/tools?after={canary('after')}", headers=caller.headers() | dict.fromkeys(HEADERS, canary("header"))),
    ]  # fmt: skip
    submit_plan(caller, step("first", "write", text=canary("plan")), step("second", "write", text=of("first")))
    first = step("first", "write", text=canary("plan"))
    submit_plan(caller, first, step("second", "write", text=of("first", "/" + canary("at"))))
    bell.deliver()
    delivery.send_due_deliveries()
    return [answer.content.decode() for answer in answers]


def found_in(text: str) -> list[str]:
    return sorted(set(re.findall(rf".{{0,60}}{CANARY}[-\w]*", text)))


@pytest.mark.req("SPEC-10", "TOOLS-21")
def test_values_of_persons_are_nowhere_but_sealed(
    ready: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox, seen: Callable[[], str], capfd: Any
) -> None:
    answers = send_canaries(caller, bell, sandbox)

    assert any(CANARY in answer for answer in answers)  # callers get theirs
    assert Snapshot.objects.count() > 30
    assert found_in(seen()) == []
    printed = capfd.readouterr()
    assert found_in(printed.out + printed.err) == []
    assert found_in("\n".join(bytes(fact.leaf).decode() for fact in Fact.objects.all())) == []
    assert found_in("\n".join(cells())) == []
    assert found_in(dump()) == []


@pytest.mark.req("SPEC-10")
@pytest.mark.unmapped
def test_a_value_in_a_failure_of_the_hub_itself_is_not_logged(
    ready: None,
    caller: Caller,
    sandbox: ScriptedSandbox,
    seen: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What nobody has thought of leaves its class and its stack, and what it says only where the hub wrote it."""

    class Unthought(Exception):
        pass

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise Unthought("of the hub's own words")

    monkeypatch.setattr(execution, "build_ending", fail)
    answer = caller.invoke(WRITE, {"text": canary("argument")})

    assert answer.status_code == 500
    assert "Unthought" in seen()
    assert found_in(seen()) == []
    call = row_of(answer)
    assert kinds_of(call)[-1] == "invocation.ended"
    leaf = json.loads(bytes(Fact.objects.get(invocation_id=call.pk, kind="invocation.ended").leaf))
    assert "Unthought" not in json.dumps(leaf)
