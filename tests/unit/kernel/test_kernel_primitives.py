"""Kernel primitives: are ids, canonical bytes, bodies, problems and steps what everything else takes them for?"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from invocations.accept.value_shape import describe_value_shape
from invocations.step_log import StepLog
from kernel.canonical import canonicalize, compute_digest, encode_hash_input
from kernel.http.parsers import MAX_DEPTH, read_json
from kernel.ids import ALPHABET, PREFIXES, build_converters, decode, encode, new_id
from kernel.observability import access_log, telemetry
from kernel.principal import ActorKind, Principal
from kernel.problems import (
    Forbidden,
    Internal,
    Malformed,
    PlatformCode,
    Problem,
    Retryable,
    collect_problem_classes,
    find_problem_class,
)
from unitools.strict_json import measure_depth

if TYPE_CHECKING:
    from uuid import UUID

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e15, 1e15)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner, max_size=4)
    ),
    max_leaves=12,
)

# Ids.


@given(st.sampled_from(PREFIXES), st.uuids())
def test_an_id_comes_back_from_its_wire_form(prefix: str, id: UUID) -> None:
    text = encode(prefix, id)

    assert decode(prefix, text) == id
    assert text.startswith(f"{prefix}_")
    assert len(text) == len(prefix) + 27


@given(st.uuids(), st.uuids())
def test_wire_ids_sort_like_ids(a: UUID, b: UUID) -> None:
    assert (encode("inv", a) < encode("inv", b)) == (a.int < b.int)


@given(st.text(max_size=40))
def test_no_other_text_is_an_id(text: str) -> None:
    try:
        found = decode("inv", text)
    except ValueError:
        return
    assert encode("inv", found) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "inv_",
        "agt_" + "0" * 26,
        "inv_" + "0" * 25,
        "inv_" + "0" * 27,
        "inv_" + "8" + "0" * 25,
        "inv_" + "u" * 26,
        "INV_" + "0" * 26,
        "inv_" + "O" * 26,
        "inv_" + "0" * 25 + " ",
        "inv_" + "٣" * 26,
    ],
)
def test_what_only_looks_like_an_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="inv_"):
        decode("inv", text)


def test_new_ids_grow_with_time() -> None:
    ids = [new_id() for _ in range(1000)]

    assert ids == sorted(ids)
    assert {id.version for id in ids} == {7}


def test_every_prefix_has_its_url_converter() -> None:
    assert set(build_converters()) == set(PREFIXES)
    assert "i" not in ALPHABET
    assert len(ALPHABET) == 32


# Canonical bytes.


@given(json_values)
def test_canonical_bytes_read_back_as_the_same_value_and_stay(value: Any) -> None:
    raw = canonicalize(value)

    assert canonicalize(json.loads(raw)) == raw


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 9), min_size=2))
def test_the_order_of_names_does_not_change_a_digest(value: dict[str, int]) -> None:
    assert compute_digest(dict(reversed(list(value.items())))) == compute_digest(value)


def test_canonical_bytes_are_those_of_rfc_8785() -> None:
    value = {"€": 1, "\r": 2, "1": 1e21, "a": [0.1, -0.0, 1.0]}

    assert canonicalize(value) == b'{"\\r":2,"1":1e+21,"a":[0.1,0,1],"\xe2\x82\xac":1}'


def test_what_is_outside_i_json_is_hashed_as_given_and_says_so() -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        canonicalize({"n": 2**60})
    alg, raw = encode_hash_input({"b": 1, "a": 2**60})

    assert (alg, raw) == ("sha256-raw", b'{"a":1152921504606846976,"b":1}')
    assert encode_hash_input({"a": 1})[0] == "sha256-jcs"
    assert compute_digest({"a": 1}) == "sha256:" + hashlib.sha256(b'{"a":1}').hexdigest()


# Bodies.


def test_a_body_of_very_many_names_is_judged_at_once() -> None:
    names = [f'"{number:x}":0' for number in range(100_000)]
    begun = time.perf_counter()

    with pytest.raises(Malformed, match="'1869f' appears twice"):
        read_json(("{" + ",".join([*names, names[-1]]) + "}").encode())

    assert time.perf_counter() - begun < 5  # it took minutes when every name was counted by itself


@given(json_values)
def test_a_body_is_read_as_what_was_sent(value: Any) -> None:
    assert read_json(json.dumps(value).encode()) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_malformed(raw: bytes) -> None:
    try:
        read_json(raw)
    except Malformed as problem:
        assert problem.status == 400


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": NaN}',
        b"[Infinity]",
        b"-Infinity",
        b'{"a":1,"a":1}',
        b'"\\ud800"',
        b"\xff",
        b"1 2",
        b"'a'",
        b"\xef\xbb\xbf1",
        b'"\\u0000"',
    ],
)
def test_what_parsers_disagree_about_is_refused(raw: bytes) -> None:
    with pytest.raises(Malformed):
        read_json(raw)


def test_a_mistake_is_named_with_its_place() -> None:
    with pytest.raises(Malformed, match="line 2, column 8") as caught:
        read_json(b'{\n  "a": }')
    assert caught.value.details == {"line": 2, "column": 8}


@pytest.mark.parametrize(
    ("raw", "depth"), [(b"[]", 1), (b'[{"a":[]}]', 3), (b'["[[[["]', 1), (b'["\\"[["]', 1), (b"1", 0)]
)
def test_depth_is_counted_outside_strings(raw: bytes, depth: int) -> None:
    assert measure_depth(raw) == depth


def test_the_deepest_body_that_is_read() -> None:
    read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(Malformed):
        read_json(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))


# Problems.


class Sample(Problem):
    """A sample is the case.

    More about it.
    """

    code, status = PlatformCode.CONFLICT, 409
    retryable, retry_after_s = Retryable.YES, 5


def test_a_problem_speaks_its_title_when_nothing_else_was_said() -> None:
    problem = Sample()

    assert problem.detail == Sample.title() == "A sample is the case."
    assert problem.to_error() == {
        "code": "CONFLICT",
        "reason": "",
        "message": "A sample is the case.",
        "details": {},
        "retryable": "yes",
        "retry_after_s": 5,
    }
    assert Sample("x", retry_after_s=0).to_error()["retry_after_s"] == 0
    assert Sample("x", remedy="do y").to_error()["remedy"] == "do y"


@pytest.mark.req("SPEC-6", "TOOLS-24")
def test_every_reason_is_found_again_and_what_is_unknown_is_internal() -> None:
    assert all(find_problem_class(cls.reason) is cls for cls in collect_problem_classes())
    assert find_problem_class("NO.SUCH") is Internal


@pytest.mark.req("SPEC-6")
def test_the_platform_set_is_the_closed_one_of_the_specification() -> None:
    specified = (
        "INVALID_ARGUMENT UNAUTHORIZED FORBIDDEN NOT_FOUND CONFLICT RATE_LIMITED TIMEOUT UPSTREAM_ERROR "
        "NEEDS_USER_CONFIRMATION COMPLIANCE_BLOCKED PRICE_CHANGED OUT_OF_STOCK ADDRESS_INVALID"
    )

    assert {str(code) for code in PlatformCode} == {*specified.split(), "INTERNAL"}


def test_a_principal_without_the_permission_is_told_which_one() -> None:
    by = Principal(ActorKind.USER, "usr_1", "Olivia", new_id(), frozenset({"a.b"}))
    by.check("a.b")

    with pytest.raises(Forbidden) as caught:
        by.check("c.d")
    assert caught.value.details == {"missing": "c.d"}
    assert caught.value.remedy == "Ask an owner of the tenant for the permission c.d."


@pytest.mark.parametrize(("token", "what"), [("", "key"), ("digest", "token")])
def test_an_agent_without_the_scope_is_told_to_use_another_key(token: str, what: str) -> None:
    by = Principal(ActorKind.AGENT, "agt_1", "assistant", new_id(), frozenset({"a:b"}), token=token)

    with pytest.raises(Forbidden, match="does not hold the scope c:d") as caught:
        by.check("c:d")
    assert caught.value.remedy == f"Use a {what} with the scope c:d, or ask for one."


# Steps and shapes.


def test_steps_follow_each_other_and_a_failure_is_marked() -> None:
    log = StepLog(datetime.now(UTC))
    with log.step("one") as told:
        told["note"] = "fine"
    with pytest.raises(ZeroDivisionError), log.step("two"):
        _ = 1 / 0

    one, two = log.steps
    assert (one["status"], one["note"], two["status"]) == ("ok", "fine", "failed")
    assert 0 <= one["begin_ms"] <= one["end_ms"] <= two["begin_ms"] <= two["end_ms"]


def test_a_clock_that_was_set_back_makes_no_step_negative() -> None:
    log = StepLog(datetime.now(UTC) + timedelta(hours=1))
    log.add("x", "control", 5, 3)

    assert log.now_ms() >= 0
    assert log.steps[0]["end_ms"] == 5


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=5))
def test_a_shape_holds_no_value(value: dict[str, Any]) -> None:
    declared = {name for name in value if name.isalpha()}
    shape = describe_value_shape(value, declared)
    others = shape.pop("*", "0 more")

    assert set(shape) == declared
    assert others == f"{len(value) - len(declared)} more"
    for kind in shape.values():
        word = kind.partition("(")[0]
        assert word in {"boolean", "null", "number", "string", "array", "object"}


ART = "art_" + "0" * 26


def test_a_shape_names_nothing_that_the_schema_did_not_choose() -> None:
    said = describe_value_shape({"text": "x", "alice@example.com": 1, "\x01": 2}, ["text", "absent", "\x01", "y" * 100])

    assert said == {"text": "string(1)", "*": "2 more"}


@pytest.mark.req("SPEC-10")
def test_the_log_of_the_web_server_holds_no_signature_and_no_word_of_a_caller(caplog: pytest.LogCaptureFixture) -> None:
    logger, quiet = logging.getLogger(access_log.OF_UVICORN), access_log.PathMaskFilter(2)
    logger.addFilter(quiet)
    try:
        with caplog.at_level(logging.INFO, access_log.OF_UVICORN):
            logger.info('%s - "%s %s HTTP/%s" %d', "::1", "GET", f"/api/v1/artifacts/{ART}?signature=ab", "1.1", 200)
    finally:
        logger.removeFilter(quiet)

    assert caplog.messages == [f'::1 - "GET /api/v1/artifacts/{ART} HTTP/1.1" 200']
    assert access_log.mask_path("/api/v1/tools/a.b.c/invoke") == "/api/v1/tools/a.b.c/invoke"
    assert access_log.mask_path("/api/v1/files/Ann Lindqvist/13812345678?q=x") == "/api/v1/files/…/…"


def test_a_trace_holds_no_signature() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    said = {
        "http.url": "https://hub.example.org/a?signature=ab",
        "http.target": "/a?signature=ab",
        "url.query": "signature=ab",
    }

    with provider.get_tracer("tests").start_as_current_span("GET", attributes=said) as span:
        telemetry.leave_out_query(span, None)

    (seen,) = exporter.get_finished_spans()
    assert dict(seen.attributes or {}) == {
        "http.url": "https://hub.example.org/…",
        "http.target": "/…",
        "url.query": "",
    }
