"""Sent files in a hub: what is looked at of each before a call is accepted, and again before it runs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.problems import RateLimited
from invocations import services
from invocations.calls import CallRequest
from invocations.models import Invocation
from invocations.run import sent_files
from kernel.http.envelopes import RequestEnvelope
from kernel.problems import TooLarge
from tests.egress.services import answer_with
from tests.egress.shop import PDF, TOOL, sending
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.models import StoredFile
    from registry.models import ToolVersion
    from tests.conftest import Caller
    from tests.egress.services import Service

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shop_boxes")]


@pytest.fixture
def left(bring_operation: Callable[..., ToolVersion], caller: Caller, service: Service) -> str:
    """The id of what a call has left."""
    service.answers = [answer_with(PDF, content_type="application/pdf")]
    bring_operation(sending(service.port))
    return str(caller.invoke(TOOL, {"item": "7"}).json()["call"]["artifacts"][0]["id"])


@pytest.mark.req("BRING-1")
def test_the_sizes_are_asked_for_before_any_content_is_fetched(
    left: str, caller: Caller, notes: StoredFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = CallRequest(TOOL, {"item": "7", "sheets": [left, notes.wire_id]}, RequestEnvelope("r", {}))
    row = Invocation.objects.select_related("version").get(tool=TOOL)
    assert row.version is not None
    with CaptureQueriesContext(connection) as accepting:
        sent_files.check_sent_files(row.version.view, call, by=caller.by)
    monkeypatch.setattr(sent_files, "MAX_BYTES", len(PDF))
    with CaptureQueriesContext(connection) as running, pytest.raises(TooLarge):
        sent_files.load_sent_files(row, row.version.view, call.arguments)

    asked = [each["sql"] for each in (*accepting, *running)]
    assert any('"size"' in each for each in asked)
    assert not [each for each in asked if '"ciphertext"' in each]


@pytest.mark.req("BRING-1")
def test_a_call_that_comes_too_fast_has_no_file_looked_for(
    left: str, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise RateLimited("Too fast.", retry_after_s=1)

    monkeypatch.setattr(services, "check_rates", refuse)

    answer = caller.invoke(TOOL, {"item": "7", "sheets": ["fil_00000000000000000000000000"]})

    assert_problem(answer, 429, RateLimited.reason)
