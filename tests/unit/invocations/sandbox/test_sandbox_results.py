from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invocations.sandbox.base import Limits, RunOutcome, RunStatus
from invocations.sandbox.results import NotStrictJson, build_outcome, check_report, parse_strict
from sandbox import protocol, run_monitor

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), inner),
    max_leaves=30,
)  # fmt: skip


def parse(data: bytes, *, max_bytes: int = 100_000, max_depth: int = 64) -> Any:
    return parse_strict(data, max_bytes=max_bytes, max_depth=max_depth)


@given(JSON, st.booleans())
def test_all_ordinary_json_comes_back_as_it_was(value: Any, ascii_only: bool) -> None:
    assert parse(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"nothing",
        b"1 2",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"1" * 21,
        b"0." + b"1" * 70,
        b'{"a":1,"a":2}',
        b'"\\ud800"',
        b'{"\\udfff":1}',
        b'"a\\u0000b"',
        b'{"\\u0000":1}',
        b'"a\0b"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        "\ufeff1".encode(),
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"'a'",
        b"[1,]",
    ],
)
def test_what_is_not_strict_is_refused(data: bytes) -> None:
    with pytest.raises(NotStrictJson):
        parse(data)


@pytest.mark.parametrize("text", ['"[[[["', '"\\\\"', '"\\"[{"', '"\\\\u0000"', '"\\ud83d\\ude00"', '"]"'])
def test_brackets_and_escapes_inside_strings_are_harmless(text: str) -> None:
    assert parse(text.encode(), max_depth=1) == json.loads(text)


@pytest.mark.parametrize(
    "data", [b'"' * 10**6, b'"\\' * 500_000, b"[" * 10**6, b'["\\"' * 250_000, b"{" * 10**6, b'"' + b"\\" * 10**6]
)
def test_a_hostile_megabyte_is_refused_in_no_time(data: bytes) -> None:
    begun = time.perf_counter()

    with pytest.raises(NotStrictJson):
        parse(data, max_bytes=2 * 10**6)

    assert time.perf_counter() - begun < 1


def test_the_size_is_checked_first() -> None:
    with pytest.raises(NotStrictJson, match="bytes"):
        parse(b"[" * 11, max_bytes=10)


@pytest.mark.parametrize(
    "report",
    [
        [],
        {"more": 1},
        {"sources": {}},
        {"sources": [{"type": "a", "name": "b"}]},
        {"sources": [{"type": "a", "name": "b", "version": 1}]},
        {"sources": [{"type": "a", "name": "b", "version": "x" * 501}]},
        {"warnings": ["x"] * 101},
        {"warnings": [None]},
        {"ttl_seconds": -1},
        {"ttl_seconds": True},
        {"ttl_seconds": "5"},
        {"ttl_seconds": 31_536_001},
    ],
)
def test_a_report_of_another_shape_is_refused(report: Any) -> None:
    with pytest.raises(NotStrictJson):
        check_report(report)


def test_an_empty_report_is_filled_up() -> None:
    assert check_report({}) == {"sources": [], "warnings": [], "ttl_seconds": None}


def outcome(said: bytes, limits: Limits | None = None, **more: Any) -> RunOutcome:
    head = {
        "ended": run_monitor.EXITED, "started": True, "why_not": "", "exit": {"code": 0}, "out_of_memory": False, "clean": True,
        "run_ms": 1.0, "cpu_ms": 1.0, "max_rss_bytes": 1,
    }  # fmt: skip
    return build_outcome(head | more, [said, b"", b""], limits or Limits())


def report(kind: int, value: bytes = b"", **rest: Any) -> bytes:
    about = json.dumps({"report": {}, "attempts": [], "error": {"type": "T", "message": "M"}} | rest).encode()
    return protocol.IMPORTED + protocol.REPORT.pack(kind, len(value), len(about)) + value + about


@pytest.mark.parametrize(
    "ended", [run_monitor.TIMED_OUT, run_monitor.CANCELLED, run_monitor.LOG_FLOOD, run_monitor.RESULT_TOO_LARGE]
)
def test_a_tool_that_was_stopped_has_no_say(ended: str) -> None:
    stopped = outcome(report(protocol.RETURNED, b"1"), ended=ended)

    assert stopped.status == ended
    assert stopped.value is None


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"exit": {"signal": 9}, "out_of_memory": True}, RunStatus.OUT_OF_MEMORY),
        ({"exit": {"signal": 9}}, RunStatus.EXITED),
        ({"exit": {"signal": 9}, "cpu_ms": 11_000.0}, RunStatus.TIMED_OUT),
        ({"exit": {"signal": 24}}, RunStatus.TIMED_OUT),
        ({"exit": {"signal": 31}}, RunStatus.CAPABILITY_BLOCKED),
        ({"exit": {}}, RunStatus.EXITED),
        ({"started": False, "why_not": "no walls"}, RunStatus.START_FAILED),
    ],
)
@pytest.mark.parametrize("said", [b"", protocol.IMPORTED])
def test_a_silent_end_is_explained_by_the_kernel(said: bytes, more: dict[str, Any], status: RunStatus) -> None:
    assert outcome(said, **more).status is status


def test_a_box_that_has_spent_its_processor_time_was_stopped_and_it_is_said_what_was_counted() -> None:
    stopped = outcome(report(protocol.RETURNED, b"1"), Limits(cpu_s=3), ended=run_monitor.SPENT, cpu_exact=True)

    assert (stopped.status, stopped.value, stopped.cpu_exact) == (RunStatus.TIMED_OUT, None, True)
    assert "3 s of processor time" in stopped.error_message
    assert not outcome(report(protocol.RETURNED, b"1")).cpu_exact


def test_what_nobody_may_be_believed_on_is_not_known() -> None:
    lost = outcome(report(protocol.RETURNED, b"1"), ended=run_monitor.UNKNOWN, started=False, why_not="no walls")

    assert (lost.status, lost.value, lost.nothing_ran) == (RunStatus.LOST, None, False)


def test_nothing_ran_can_only_be_said_by_the_runner() -> None:
    claims = {outcome(report(kind, error={"type": "", "message": "", "blocked": ""})).status for kind in range(256)}

    assert claims.isdisjoint(
        {RunStatus.START_FAILED, RunStatus.LOST, RunStatus.CANCELLED, RunStatus.TIMED_OUT, RunStatus.LOG_FLOOD}
    )


@pytest.mark.parametrize(
    "said",
    [
        b"x",
        b"L" + b"\0" * 5,
        report(protocol.RETURNED, b"1")[:-1],
        report(protocol.RETURNED, b"1") + b"x",
        report(protocol.RETURNED, b"1") * 2,
        report(protocol.RETURNED, b"nonsense"),
        report(protocol.RETURNED, b"1", report=5),
        report(protocol.RETURNED, b"1", attempts=5),
        report(protocol.RETURNED, b"1", attempts=["x"] * 101),
        report(protocol.RAISED, error=5),
        report(protocol.RAISED, error={"type": 1, "message": 2}),
        protocol.IMPORTED + protocol.REPORT.pack(1, 1, 2) + b"1[]",
    ],
)
def test_what_is_not_a_report_is_a_bad_result(said: bytes) -> None:
    assert outcome(said).status is RunStatus.BAD_RESULT


def test_a_result_may_be_as_large_and_deep_as_the_limits_and_no_more() -> None:
    limits = Limits(result_bytes=10, result_depth=3)

    assert outcome(report(protocol.RETURNED, b'"' + b"x" * 8 + b'"'), limits).status is RunStatus.OK
    assert outcome(report(protocol.RETURNED, b'"' + b"x" * 9 + b'"'), limits).status is RunStatus.RESULT_TOO_LARGE
    assert outcome(report(protocol.RETURNED, b"[[[]]]"), limits).status is RunStatus.OK
    assert outcome(report(protocol.RETURNED, b"[[[[]]]]"), limits).status is RunStatus.BAD_RESULT


@pytest.mark.parametrize("code", ["lower", "", "A" * 65, "A B", "Ä"])
def test_an_invented_error_code_is_an_exception_like_any_other(code: str) -> None:
    said = report(protocol.DOMAIN_ERROR, error={"type": "T", "message": "M", "code": code, "details": {}})

    assert outcome(said).status is RunStatus.RAISED


@pytest.mark.parametrize(("said", "pointers"), [(["/n", "/tags/1"], ["/n", "/tags/1"]), ([["/n"]], None), ("/n", None)])
def test_a_result_that_the_sdk_saw_to_be_wrong_says_where(said: Any, pointers: list[str] | None) -> None:
    error = {"type": "ResultInvalid", "message": "n: no", "pointers": said}

    found = outcome(report(protocol.NOT_AS_DECLARED, error=error))

    assert found.status is RunStatus.BAD_RESULT
    assert found.error_details.get("pointers") == pointers
