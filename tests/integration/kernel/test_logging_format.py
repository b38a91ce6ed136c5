"""Logging format: what does a line of the log say, in the form that machines read?"""

from __future__ import annotations

import io
import json
import logging
import logging.config
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from kernel.database.tenancy import act_for, acting_for, acting_for_nobody
from kernel.ids import new_id
from kernel.observability.log_context import FIELDS, JsonLogFormatter, LogContextFilter, bind_log_context, note_for_log
from toolhub.logs import build_logging

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def lines() -> Iterator[Any]:
    """``lines()``: what was logged, read as JSON."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLogFormatter())
    handler.addFilter(LogContextFilter())
    logging.getLogger().addHandler(handler)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logging.getLogger().removeHandler(handler)


def test_a_line_says_when_who_and_of_what_it_is(lines: Any) -> None:
    tenant = new_id()

    with acting_for_nobody(), bind_log_context(request_id="req-12345678", trace_id="ab" * 16):
        act_for(tenant)
        note_for_log(call_id="inv_1")
        logging.getLogger("tests.of").error("said %s", "it", extra={"request": object()})
    logging.getLogger("tests.of").error("outside")

    within, outside = lines()
    assert within.pop("time").endswith("+00:00")
    assert within == {
        "level": "ERROR",
        "logger": "tests.of",
        "message": "said it",
        "request_id": "req-12345678",
        "call_id": "inv_1",
        "tenant": str(tenant),
        "trace_id": "ab" * 16,
    }
    assert {outside[field] for field in FIELDS} == {""}


def test_the_tenant_that_a_piece_of_work_acts_for_is_in_its_lines_and_not_in_those_after_it(lines: Any) -> None:
    first, second = new_id(), new_id()
    log = logging.getLogger("tests.of")

    with bind_log_context():
        with acting_for(first):
            log.error("for the first")
            with acting_for(second):
                log.error("for the second")
            log.error("for the first")
        log.error("for nobody")
    with acting_for(first):
        log.error("outside")

    assert [each["tenant"] for each in lines()] == [str(first), str(second), str(first), "", ""]


def test_a_fault_is_one_line_with_its_stack(lines: Any) -> None:
    try:
        int("a\nb")
    except ValueError:
        logging.getLogger("tests").exception("It broke")

    (line,) = lines()
    assert line["message"] == "It broke"
    assert "ValueError: invalid literal" in line["exc_info"]


@pytest.mark.django_db
def test_a_host_that_is_not_the_hubs_is_one_line_and_no_error(
    capsys: pytest.CaptureFixture[str], settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    before = logging.getLogger("django.security.DisallowedHost").filters[:]
    logging.config.dictConfig(build_logging(ours="INFO", rest="WARNING", form="line"))
    try:
        answer = Client().get("/sign-in", headers={"host": "evil.example" + "x" * 1000})
    finally:
        logging.getLogger("django.security.DisallowedHost").filters[:] = before
        logging.config.dictConfig(settings.LOGGING)

    assert answer.status_code == 400
    (line,) = capsys.readouterr().err.splitlines()
    assert " WARNING django.security.DisallowedHost Invalid HTTP_HOST header: 'evil.example" in line
    assert len(line) < 200
