"""Probe failures: is what stopped a server or an object of others told as what it was, with what can be done about it?"""

from __future__ import annotations

import pytest

from invocations.run import object_probe, server_probe
from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.sandbox.results import PROCESSOR

SPENT = RunOutcome(RunStatus.TIMED_OUT, error_code=PROCESSOR)
SLOW = RunOutcome(RunStatus.TIMED_OUT)


@pytest.mark.req("BRING-2")
def test_a_server_that_used_all_its_processor_time_is_not_told_that_a_minute_went_by() -> None:
    spent, slow = server_probe.describe_failure(SPENT), server_probe.describe_failure(SLOW)

    assert spent.message == "The server used 20 seconds of processor time, all that it has, before it listed its tools."
    assert "prepares less when it starts" in spent.remedy
    assert slow.message == "The server did not list its tools within 60 seconds."
    assert "prepares less" not in slow.remedy
    assert spent.code == slow.code == "server_unstartable"


@pytest.mark.req("BRING-2")
def test_what_such_a_server_says_itself_counts_for_more() -> None:
    told = RunOutcome(RunStatus.TIMED_OUT, error_code=PROCESSOR, stderr="API_KEY environment variable is not set")

    assert "API_KEY" in server_probe.describe_failure(told).remedy


@pytest.mark.req("BRING-4")
def test_an_object_that_used_all_its_processor_time_is_told_so() -> None:
    assert "60 seconds of processor time" in object_probe.describe_failure(SPENT).message
    assert object_probe.describe_failure(SLOW).message == "The object was not made within 60 seconds."
