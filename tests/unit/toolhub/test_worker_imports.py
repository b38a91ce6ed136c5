"""Imports of a worker: does one start without what only other processes use?"""

from __future__ import annotations

import subprocess
import sys

from tests.e2e.processes import ROOT, clean_environment

# As `celery -A toolhub worker` does before it takes a call.
PROGRAM = """
import sys
from toolhub.celery import app
app.loader.import_default_modules()
print(*sorted(sys.modules))
"""
OF_WEB_PROCESSES = {"toolhub.urls", "invocations.api", "mcp", "mcp_types"}
OF_CLOUDS_AND_COLLECTORS = {"boto3", "pkcs11", "opentelemetry.exporter.otlp.proto.http.trace_exporter"}


def test_a_worker_starts_without_pages_and_without_libraries_that_few_hubs_use(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=clean_environment(TOOLHUB_DATA_DIR=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert {"invocations.tasks", "invocations.run.execution"} <= imported
    assert imported & (OF_WEB_PROCESSES | OF_CLOUDS_AND_COLLECTORS) == set()
