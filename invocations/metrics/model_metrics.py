"""Model metrics: how many tokens calls of models took, how long they took, and how soon the first token came.

By OpenTelemetry's GenAI conventions. Attributes are words of closed sets and names of models, never texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import names
from kernel.observability import telemetry
from kernel.singleton import Once

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from invocations.end.endings import Ending

TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)


class _ModelInstruments:
    def __init__(self, meter: Meter) -> None:
        self.tokens = meter.create_histogram(
            names.METRIC_MODEL_TOKENS,
            unit="{token}",
            description="Tokens of one call of a model, by input and output",
            explicit_bucket_boundaries_advisory=TOKENS,
        )
        self.duration = meter.create_histogram(
            names.METRIC_MODEL_DURATION,
            unit="s",
            description="From the request to the end of the answer",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self.first_token = meter.create_histogram(
            names.METRIC_MODEL_FIRST_TOKEN,
            unit="s",
            description="From the request to the first piece of the answer",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self.meter_differences = meter.create_counter(
            names.METRIC_METER_DIFFERENCES,
            description="Times that a provider was found to report other figures than was to be expected",
        )


@Once
def get_model_instruments() -> _ModelInstruments:
    return _ModelInstruments(telemetry.get_meter())


def count_model_run(ending: Ending, duration_ms: float) -> None:
    """One run that has ended, however it did."""
    report = ending.model
    if report is None:
        return
    instruments = get_model_instruments()
    of = {
        names.ATTR_OPERATION: names.MODEL_OPERATIONS[report.part.operation],
        names.ATTR_PROVIDER: report.part.provider,
        names.ATTR_REQUEST_MODEL: report.part.name,
    }
    failed = {names.ATTR_ERROR: ending.problem.reason} if ending.problem is not None else {}
    instruments.duration.record(duration_ms / 1000, of | failed)
    instruments.tokens.record(report.counted.input_tokens, of | {names.ATTR_TOKEN_TYPE: "input"})
    instruments.tokens.record(report.counted.output_tokens, of | {names.ATTR_TOKEN_TYPE: "output"})
    if report.first_token_ms is not None:
        instruments.first_token.record(report.first_token_ms / 1000, of)


def count_meter_difference(provider: str, model: str, figure: str) -> None:
    of = {names.ATTR_PROVIDER: provider, names.ATTR_REQUEST_MODEL: model, names.ATTR_TOKEN_TYPE: figure}
    get_model_instruments().meter_differences.add(1, of)
