"""A call stays one trace, from its caller to the run of the tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from invocations.run import execution
from kernel.observability.log_context import bind_log_context, read_log_field
from tests.support.calls import row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(execution, "tracer", provider.get_tracer("tests"))
    return provider, exporter


@pytest.mark.req("SVC-5", "SPEC-3")
def test_each_run_is_a_span_of_its_own_in_the_trace_of_its_caller(
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    spans: tuple[TracerProvider, InMemorySpanExporter],
) -> None:
    enable("echo")
    grant()
    provider, exporter = spans

    with provider.get_tracer("tests").start_as_current_span("the caller") as outer:
        answer = caller.invoke("sample.tools.echo", {"text": "hello"})

    trace_id = format(outer.get_span_context().trace_id, "032x")
    run = next(span for span in exporter.get_finished_spans() if span.name != "the caller")
    assert run.name == "tool_execution:sample.tools.echo"
    assert format(run.context.trace_id, "032x") == trace_id
    assert run.attributes is not None
    assert run.attributes["gen_ai.tool.name"] == "sample.tools.echo"
    assert run.attributes["gen_ai.agent.id"] == caller.agent.wire_id
    assert run.attributes["gen_ai.tool.call.id"] == row_of(answer).wire_id
    assert run.attributes["gen_ai.operation.name"] == "execute_tool"
    assert "toolhub.queue_ms" in run.attributes
    given = sandbox.calls[0][1].context["traceparent"]
    assert given.split("-")[1:3] == [trace_id, format(run.context.span_id, "016x")]
    assert answer.json()["call"]["trace_id"] == trace_id


def test_the_lines_of_a_run_are_of_the_request_that_brought_the_call(
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    bell: Bell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable("echo")
    grant()
    bell.answers = False
    known = []
    run = execution.execute_call

    def noted(invocation: Any) -> Any:
        known.append({field: read_log_field(field) for field in ("request_id", "call_id")})
        return run(invocation)

    monkeypatch.setattr(execution, "execute_call", noted)
    with bind_log_context(request_id="request-of-a-test"):
        answer = caller.invoke("sample.tools.echo", {"text": "hello"}, headers={"Prefer": "respond-async"})
    bell.deliver()

    assert known == [{"request_id": "request-of-a-test", "call_id": row_of(answer).wire_id}]
    assert "x-request-id" not in answer.content.decode()


@pytest.mark.req("SVC-3")
def test_a_tool_does_not_run_with_arguments_that_its_schema_refuses(
    caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> None:
    enable("echo")
    grant()

    answer = caller.invoke("sample.tools.echo", {"text": 7})

    assert answer.status_code == 422
    assert [finding["pointer"] for finding in answer.json()["error"]["details"]["findings"]] == ["/text"]
    assert sandbox.calls == []
