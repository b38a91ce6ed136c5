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
from schemathesis.checks import CHECKS, load_all_checks, not_a_server_error
from schemathesis.core.failures import Failure
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
CHECKS_OF_ANSWERS = [not_a_server_error, status_code_conformance, content_type_conformance]
# What no schema of OpenAPI 3.0 can say, so that something which fits the document is refused, or the other way round.
OF_OTHERS = "A body in the format of somebody else, whose own document describes it (docs/reference/served-formats.md)."
EXPLAINED = {
    "GET /api/v1/tools": "With a dialect there is no page: query parameters cannot depend on each other.",
    "POST /api/v1/capsules": "What is in an archive.",
    "POST /api/v1/configuration/apply": "What a file says, sent as text or as a document of a version.",
    "POST /api/v1/configuration/plan": "The same.",
    "POST /api/v1/tools": "A manifest, whose JSON Schema is a document of its own.",
    **dict.fromkeys(
        (
            "POST /v1/chat/completions",
            "POST /v1/embeddings",
            "POST /v1/messages",
            "POST /v1/messages/count_tokens",
            "POST /v1/rerank",
            "POST /v1/responses",
        ),
        OF_OTHERS,
    ),
}
# Others that refuse something which fits the document, so far: a number that only goes down.
OPEN = 16
KNOWN_PLACES = {"tool_id": "sample.tools.echo", "version": "1.0.0"}  # so that more than the address is looked at


def try_all(caller: Caller, checks: list[Any], *, examples: int) -> tuple[int, dict[str, set[str]]]:
    """Requests to every operation of the document that this hub serves: how many there were, and what was found wrong, by
    operation.
    """
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", get_wsgi_application())
    schema.config.generation.update(allow_x00=False)  # no JSON holds one here, also where anything else goes
    sent, wrong = 0, dict[str, set[str]]()
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
                try:
                    case.call_and_validate(headers=caller.headers(), checks=checks)
                except* Failure as found:
                    said = {f"{each.title}: {each.message}" for each in found.exceptions if isinstance(each, Failure)}
                    wrong.setdefault(case.operation.label, set()).update(said)

            send()
    return sent, wrong


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
    sent, wrong = try_all(caller, CHECKS_OF_ANSWERS, examples=examples)

    assert sent > 200
    assert wrong == {}


@pytest.mark.long
@pytest.mark.req("CONN-6")
def test_few_operations_refuse_what_fits_the_document_or_take_what_does_not(ready: None, caller: Caller) -> None:
    load_all_checks()

    _, wrong = try_all(caller, CHECKS.get_all(), examples=2)

    others = {name: said for name, said in wrong.items() if name not in EXPLAINED}
    assert len(others) <= OPEN, others
    assert {each for said in wrong.values() for each in said if "Server error" in each or "auth" in each} == set()
