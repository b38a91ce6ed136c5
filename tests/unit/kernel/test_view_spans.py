"""View spans: is the part of a request within Django traced where traces go somewhere, and does it cost nothing elsewhere?"""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.figures import ROOT
from tests.e2e.processes import clean_environment

ASKED = """
from opentelemetry.instrumentation.django import DjangoInstrumentor
from kernel.observability import telemetry
telemetry.setup_telemetry("web")
print(DjangoInstrumentor().is_instrumented_by_opentelemetry)
"""


@pytest.mark.req("CARD-2")
@pytest.mark.parametrize(("collector", "traced"), [("http://127.0.0.1:9", "True"), ("", "False")])
def test_the_part_of_a_request_within_django_is_a_span_where_spans_go_somewhere(
    collector: str, traced: str, tmp_path: object
) -> None:
    env = clean_environment(TOOLHUB_DATA_DIR=str(tmp_path), DJANGO_SETTINGS_MODULE="toolhub.settings")
    env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_SDK_DISABLED": "", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}

    done = subprocess.run([sys.executable, "-c", ASKED], cwd=ROOT, env=env, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == traced
