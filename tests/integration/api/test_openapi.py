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

from tests.support.text_formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test import Client

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
CHECKS_OF_ANSWERS = [not_a_server_error, status_code_conformance, content_type_conformance]
# What no schema of OpenAPI 3.0 can say, so that something which fits the document is refused.
BOXES = "How many alternatives a condition has is a product over its parts, and a schema bounds only each of them."
STEPS = "The steps of a plan have ids of their own; no schema says that a field differs from one entry to the next."
EXPLAINED = {
    "POST /api/v1/chains": STEPS,
    "POST /api/v1/chains/preflight": STEPS,
    "POST /api/v1/configuration/apply": "What a file says, sent as text or as a document: it names what must be there.",
    "POST /api/v1/configuration/plan": "The same.",
    "POST /api/v1/dispatch": "What a model has answered, in the format of any provider, told by its shape.",
    "POST /api/v1/policies": BOXES,
    "POST /api/v1/tools": "A manifest: it has schemas in it, and names code that this hub must have.",
    "PUT /api/v1/policies/{policy_id}": BOXES,
}
ASKS_ANOTHER = "POST /api/v1/imports/remote"  # a server that is not there: 502 is what becomes of it
FAILING = 5  # at most so many of them fail in one run: a number that only goes down
OF_OPENAPI = {"binary", "date", "date-time", "double", "email", "float", "int32", "int64", "uri", "uuid"}
KNOWN_PLACES = {"tool_id": "sample.tools.echo", "version": "1.0.0"}  # so that more than the address is looked at


def try_all(caller: Caller, checks: list[Any], *, examples: int) -> tuple[int, dict[str, set[str]]]:
    """Requests to every operation of the document that this hub serves: how many there were, and what was found wrong, by
    operation.
    """
    for name, texts in FORMATS.items():
        schemathesis.openapi.format(name, texts)
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


def find_formats(said: Any) -> Iterator[str]:
    """The formats that schemas in a document name."""
    if isinstance(said, dict):
        if isinstance(name := said.get("format"), str) and said.get("type") in ("string", "integer", "number"):
            yield name
        for each in said.values():
            yield from find_formats(each)
    elif isinstance(said, list):
        for each in said:
            yield from find_formats(each)


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
    assert wrong.pop(ASKS_ANOTHER, {"Server error: "}) == {"Server error: "}
    assert wrong == {}


def test_there_are_texts_of_every_format_that_the_document_names(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()

    own = set(find_formats(document)) - OF_OPENAPI

    assert own == set(FORMATS)


@pytest.mark.long
@pytest.mark.req("CONN-6")
def test_few_operations_refuse_what_fits_the_document_or_take_what_does_not(ready: None, caller: Caller) -> None:
    load_all_checks()

    _, wrong = try_all(caller, CHECKS.get_all(), examples=2)
    wrong.pop(ASKS_ANOTHER, None)

    assert {name: said for name, said in wrong.items() if name not in EXPLAINED} == {}
    assert len(wrong) <= FAILING, wrong
    assert {each for said in wrong.values() for each in said if "Server error" in each or "auth" in each} == set()
