"""Fuzzed calls: is everything that anybody may send about calls answered, and each refusal from the catalogue?

Well-formed requests with something changed in them, so that most get past the first look. The whole way: real views, the
database, a sandbox that runs nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as fuzzing
from hypothesis import strategies as st

from invocations.models import Invocation
from kernel.problems import collect_problem_classes
from tests.support.calls import PAIR, kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
TOOLS = st.sampled_from([ECHO, "sample.tools.write", "sample.tools.nothing"])
# Text with what texts hold: all of Unicode but lone surrogates, which no UTF-8 has.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
ARGUMENTS = (
    st.fixed_dictionaries({}, optional={"text": TEXT}) | st.fixed_dictionaries({"text": JSON, "more": JSON}) | JSON
)
RIGHT = {
    "envelope": st.just("1"),
    "user_id": TEXT,
    "session_id": TEXT,
    "locale": st.sampled_from(["de-DE", "en", "zh_Hans_CN"]),
    "currency": st.just("EUR"),
    "timezone": st.sampled_from(["UTC", "Europe/Berlin"]),
    "client": st.fixed_dictionaries({"app": TEXT.filter(str.strip)}, optional={"model": TEXT.filter(str.strip)}),
    "dry_run": st.booleans(),
    "idempotency_key": st.sampled_from(["order-7", "order-8", ""]),
    "trace": st.just({"span_id": "0123456789abcdef"}),
    "on_consent": st.sampled_from(["refuse", "ask", "hold"]),
    "purpose": st.just("For a test."),
}
WRONG = {
    "request_id": st.sampled_from(["x", "", None]) | TEXT,
    "actor": st.sampled_from([{"type": "robot", "id": "x"}, {}, None]) | JSON,
    "envelope": st.sampled_from(["2", 1]),
    "timezone": st.sampled_from(["../etc", "Etc", "posixrules", ""]) | TEXT,
    "idempotency_key": st.sampled_from(["order 7", "k" * 256]) | TEXT,
    "oter": JSON,
}
KNOWN = {problem.reason for problem in collect_problem_classes()} - {"UNKNOWN.INTERNAL"}
FUZZED = fuzzing(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def bodies(**more: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Most are right; others have one field that is not, or are any JSON."""
    required = {"request_id": st.just("test-request-1"), "actor": st.just({"type": "agent", "id": "x"})}
    right = st.fixed_dictionaries(required | more, optional=RIGHT)
    names = st.sampled_from(sorted(WRONG | RIGHT))
    wrong = names.flatmap(lambda name: st.fixed_dictionaries({name: WRONG.get(name, JSON)}))
    mixed = st.tuples(right, wrong).map(lambda both: both[0] | both[1])
    return st.sampled_from([right] * 6 + [mixed] * 3 + [JSON]).flatmap(lambda chosen: chosen)


HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Idempotency-Key": st.sampled_from(['"order-7"', "order-9"]),
        "Prefer": st.sampled_from(["respond-async", "wait=0", "respond-async, wait=0", "x=y"]),
        "traceparent": st.sampled_from(["", "00-0-0-00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]),
        "X-Request-Id": st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
    },
)


@pytest.fixture
def ready(
    enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox, settings: Any
) -> ScriptedSandbox:
    settings.TOOLHUB_RATE_REFUSED_CALLS = 0  # beyond it every refusal would read the same
    enable()
    enable("write", side_effect="Write", idempotency="keyed")
    grant()
    return sandbox


def assert_catalogued(answer: Any) -> None:
    body = answer.json()
    assert body["ok"] is (body["error"] is None)
    if body["error"] is None:
        assert answer.status_code in (200, 202)
    else:
        assert body["error"]["reason"] in KNOWN, body
        assert 400 <= answer.status_code < 500, body


def post(caller: Caller, path: str, body: Any, headers: dict[str, str]) -> Any:
    return Client(raise_request_exception=False).generic(
        "POST",
        f"/api/v1{path}",
        body if isinstance(body, bytes) else json.dumps(body).encode(),
        content_type="application/json",
        headers=caller.headers() | headers,
    )


@pytest.mark.req("SPEC-1", "SPEC-6", "TOOLS-24", "TOOLS-18")
@FUZZED
@given(tool=TOOLS, body=bodies(arguments=ARGUMENTS), headers=HEADERS, asks=st.booleans())
def test_a_fuzzed_envelope_is_answered_or_refused_by_name(
    ready: ScriptedSandbox, caller: Caller, tool: str, body: Any, headers: dict[str, str], asks: bool
) -> None:
    assert_catalogued(post(caller, f"/tools/{tool}/{'preflight' if asks else 'invoke'}", body, headers))
    assert_pairs()


@pytest.mark.req("TOOLS-14", "TOOLS-24")
@FUZZED
@given(
    body=bodies(
        calls=st.lists(st.fixed_dictionaries({"tool": TOOLS | TEXT, "arguments": ARGUMENTS}), min_size=1, max_size=4)
    ),
    headers=HEADERS,
)
def test_a_fuzzed_plan_is_answered_or_refused_by_name(
    ready: ScriptedSandbox, caller: Caller, body: Any, headers: dict[str, str]
) -> None:
    assert_catalogued(post(caller, "/preflight", body, headers))


@pytest.mark.req("TOOLS-30", "TOOLS-24", "TOOLS-18")
@FUZZED
@given(
    body=bodies(
        name=TOOLS | TEXT,
        call_id=st.sampled_from(["call_7Qx1"] * 9 + ["x y"]),
        arguments=ARGUMENTS | ARGUMENTS.map(json.dumps) | TEXT,
    ),
    headers=HEADERS,
)
def test_a_fuzzed_proposal_is_answered_or_refused_by_name(
    ready: ScriptedSandbox, caller: Caller, body: Any, headers: dict[str, str]
) -> None:
    assert_catalogued(post(caller, "/proposals", body, headers))
    assert_pairs()


@pytest.mark.req("SPEC-6", "TOOLS-24")
@fuzzing(FUZZED, max_examples=30)
@given(raw=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()[:-1]))
def test_bytes_that_are_no_envelope_are_refused_by_name(ready: ScriptedSandbox, caller: Caller, raw: bytes) -> None:
    for path in (f"/tools/{ECHO}/invoke", f"/tools/{ECHO}/preflight", "/preflight", "/proposals"):
        assert_catalogued(post(caller, path, raw, {}))


def assert_pairs() -> None:
    """Every call has its Begin, and its End once it has ended."""
    for row in Invocation.objects.all():
        found = [kind for kind in kinds_of(row) if kind in (*PAIR, "dry_run.began", "dry_run.ended")]
        assert len(found) == (2 if row.is_final else 1), found
