"""OpenAPI: does every endpoint answer as the OpenAPI document says, whatever is sent to it?

Schemathesis makes requests from the document, for each operation right ones and wrong ones. They go through the whole
application: middleware, authentication, views, the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, Verbosity, given
from hypothesis import settings as fuzzing
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
KNOWN_PLACES = {"tool_id": "sample.tools.echo", "version": "1.0.0"}  # so that more than the address is looked at


def try_all(caller: Caller, *, examples: int) -> int:
    """Requests to every operation of the document that this hub serves; how many there were."""
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
    sent = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        places = {each.name: KNOWN_PLACES[each.name] for each in operation.path_parameters if each.name in KNOWN_PLACES}
        for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:

            @fuzzing(
                max_examples=examples,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                verbosity=Verbosity.quiet,
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(mode, path_parameters=places or None))
            def send(case: Any) -> None:
                nonlocal sent
                sent += 1
                case.call_and_validate(headers=caller.headers(), checks=CHECKS)

            send()
    return sent


@pytest.fixture
def one_connection() -> Iterator[None]:
    """The application is called as a server calls it, and leaves the connection of the test's transaction open."""
    for signal in request_started, request_finished:
        signal.disconnect(close_old_connections)
    yield
    for signal in request_started, request_finished:
        signal.connect(close_old_connections)


@pytest.fixture
def ready(
    one_connection: None,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    settings: Any,
) -> None:
    settings.TOOLHUB_RATE_REFUSED_CALLS = settings.TOOLHUB_RATE_FAILED_KEYS = 0
    enable()
    grant()


@pytest.mark.req("SPEC-6", "TOOLS-24")
@pytest.mark.parametrize("examples", [2, pytest.param(40, marks=pytest.mark.long)])
def test_no_operation_fails_or_answers_what_is_not_documented(examples: int, ready: None, caller: Caller) -> None:
    assert try_all(caller, examples=examples) > 200
