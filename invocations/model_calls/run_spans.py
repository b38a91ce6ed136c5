"""Run spans: what traces say of a call of a model, by the names of OpenTelemetry's GenAI conventions. No text of it is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opentelemetry.trace import SpanKind, StatusCode

from kernel import names
from kernel.ids import encode
from kernel.observability.telemetry import extract_context, tracer

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from invocations.end.endings import Ending
    from invocations.models import Invocation
    from unitools.manifest import ModelPart


def begin_model_span(invocation: Invocation, part: ModelPart) -> Span:
    operation = names.MODEL_OPERATIONS[part.operation]
    return tracer.start_span(
        f"{operation} {part.name}",
        context=extract_context(invocation.trace),
        kind=SpanKind.CLIENT,
        attributes={
            names.ATTR_OPERATION: operation,
            names.ATTR_PROVIDER: part.provider,
            names.ATTR_REQUEST_MODEL: part.name,
            names.ATTR_AGENT_ID: encode("agt", invocation.agent_id),
            names.ATTR_CALL_ID: invocation.wire_id,
            names.ATTR_TENANT: str(invocation.tenant_id),
        },
    )


def end_model_span(span: Span, ending: Ending) -> None:
    report = ending.model
    if report is not None:
        span.set_attribute(names.ATTR_INPUT_TOKENS, report.counted.input_tokens)
        span.set_attribute(names.ATTR_OUTPUT_TOKENS, report.counted.output_tokens)
        if report.finish:
            span.set_attribute(names.ATTR_FINISH_REASONS, [report.finish])
    span.set_attribute(names.ATTR_OUTCOME, str(ending.state))
    if ending.problem is not None:
        span.set_attribute(names.ATTR_ERROR, ending.problem.reason)
        span.set_status(StatusCode.ERROR)
    span.end()
