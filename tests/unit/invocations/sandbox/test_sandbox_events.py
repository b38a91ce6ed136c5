from __future__ import annotations

import json
from typing import Any

import pytest

from invocations.sandbox.base import RunEvent
from invocations.sandbox.run_events import EventRelay, parse_progress


def told(*pieces: tuple[str, bytes]) -> list[RunEvent]:
    said: list[RunEvent] = []
    telling = EventRelay(said.append)
    for stream, data in pieces:
        telling(stream, data)
    return said


def test_text_comes_as_it_was_printed_however_it_was_cut() -> None:
    data = "a 中 \0".encode()

    said = told(*[("stdout", data[at : at + 1]) for at in range(len(data))], ("stderr", b"\xff"))

    assert "".join(event.text for event in said if event.stream == "stdout") == "a 中 \N{REPLACEMENT CHARACTER}"
    assert said[-1] == RunEvent("stderr", "\N{REPLACEMENT CHARACTER}")


def test_progress_comes_a_line_at_a_time() -> None:
    line = json.dumps({"fraction": 0.5, "message": "half"}).encode() + b"\n"

    said = told(("progress", line[:5]), ("progress", line[5:] + b'{"message": "more"}\n'))

    assert [event.progress for event in said] == [{"fraction": 0.5, "message": "half"}, {"message": "more"}]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"half",
        b"[]",
        b"{}",
        b'"0.5"',
        b'{"fraction": "0.5"}',
        b'{"fraction": true}',
        b'{"fraction": 1.5}',
        b'{"fraction": NaN}',
        b'{"fraction": 0.5, "state": "succeeded"}',
        b'{"message": 5}',
        b'{"message": {"a": {"b": {}}}}',
        b'{"message": "\\u0000"}',
        b'{"message": "' + b"x" * 5000 + b'"}',
        b"\xff",
    ],
)
def test_progress_of_another_shape_is_nobodys(said: bytes) -> None:
    assert parse_progress(said) is None
    assert told(("progress", said + b"\n")) == []


def test_a_line_without_an_end_is_not_kept_for_ever_and_the_next_one_counts() -> None:
    said = told(*[("progress", b"x" * 10_000)] * 50, ("progress", b'\n{"fraction": 1}\n'))

    assert [event.progress for event in said] == [{"fraction": 1}]


def test_a_long_message_is_cut() -> None:
    assert parse_progress(json.dumps({"message": "m" * 3000}).encode()) == {"message": "m" * 500}


def test_who_cannot_listen_is_told_no_more_and_harms_nobody() -> None:
    calls: list[RunEvent] = []

    def listener(event: RunEvent) -> Any:
        calls.append(event)
        raise RuntimeError("full")

    telling = EventRelay(listener)
    telling("stdout", b"a")
    telling("stdout", b"b")

    assert len(calls) == 1
